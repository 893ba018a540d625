#include "kube/http_server.h"

#include <arpa/inet.h>
#include <cpprest/http_listener.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <optional>

namespace heddle::kube {
namespace {

using web::http::http_request;

struct Address {
  std::string host;
  int port = 0;
  std::string ToString() const { return host + ":" + std::to_string(port); }
};

base::Result<Address> ParseAddress(const std::string& listen) {
  const std::size_t colon = listen.rfind(':');
  Address address;
  int port = -1;
  if (colon != std::string::npos) {
    const char* end = listen.data() + listen.size();
    const auto [read, error] = std::from_chars(listen.data() + colon + 1, end, port);
    if (read != end || error != std::errc{}) port = -1;
  }
  if (port < 0 || port > 65535) {
    return base::Fail(base::Code::kInvalid,
                      "cannot listen on \"" + listen + "\": write ADDRESS:PORT, as 127.0.0.1:8010");
  }
  address.host = colon == 0 ? "0.0.0.0" : listen.substr(0, colon);
  address.port = port;
  return address;
}

// The listener cannot say which port it was given, so a free one is asked for first.
std::optional<int> FreePort(const std::string& host) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool bound = inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1 &&
                     bind(fd, generic, size) == 0 && getsockname(fd, generic, &size) == 0;
  close(fd);
  return bound ? std::optional(int(ntohs(address.sin_port))) : std::nullopt;
}

void Reply(const http_request& request, const ServedAnswer& answer) {
  web::http::http_response response(static_cast<web::http::status_code>(answer.status));
  response.set_body(answer.body, answer.content_type);  // a string body sets Content-Length
  request.reply(response);
}

}  // namespace

class HttpServer::Listener {
 public:
  Listener(const std::string& address, std::size_t max_body, Handler handler)
      : handler_(std::move(handler)), max_body_(max_body), listener_(utility::string_t("http://" + address)) {
    listener_.support([this](const http_request& request) { Handle(request); });
    listener_.open().wait();
  }
  ~Listener() {
    try {
      listener_.close().wait();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the process ends either way
    }
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  void Handle(const http_request& request) const {
    // A body that is announced as too large is not even read.
    if (request.headers().content_length() > max_body_) return Serve(request, {}, true);
    request.extract_vector().then([this, request](const pplx::task<std::vector<unsigned char>>& read) {
      try {
        const std::vector<unsigned char>& body = read.get();
        const bool too_large = body.size() > max_body_;
        Serve(request, too_large ? std::string() : std::string(body.begin(), body.end()), too_large);
      } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the other side left in the middle
      }
    });
  }
  void Serve(const http_request& request, std::string body, bool too_large) const {
    ServedAnswer answer{.status = 500, .body = "this request could not be handled; see the log\n"};
    try {
      answer = handler_({request.method(), request.relative_uri().path(), std::move(body), too_large});
    } catch (const std::exception& error) {
      answer.body = std::string("this request could not be handled: ") + error.what() + "\n";
    }
    Reply(request, answer);
  }

  const Handler handler_;
  const std::size_t max_body_;
  web::http::experimental::listener::http_listener listener_;
};

HttpServer::HttpServer(std::string address, std::unique_ptr<Listener> listener)
    : address_(std::move(address)), listener_(std::move(listener)) {}
HttpServer::~HttpServer() = default;

base::Result<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& listen, std::size_t max_body,
                                                            const Handler& handler) {
  ASSIGN_OR_RETURN(Address address, ParseAddress(listen));
  const bool any_port = address.port == 0;
  std::string why = "no free port";
  for (int tries = any_port ? 5 : 1; tries > 0; --tries) {
    if (any_port) address.port = FreePort(address.host).value_or(0);
    try {
      return std::unique_ptr<HttpServer>(new HttpServer(
          address.ToString(), std::make_unique<Listener>(address.ToString(), max_body, handler)));
    } catch (const std::exception& error) {
      why = error.what();
    }
  }
  return base::Fail(base::Code::kUnavailable, "cannot listen on " + listen + ": " + why);
}

}  // namespace heddle::kube
