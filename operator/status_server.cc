#include "operator/status_server.h"

#include <cpprest/http_listener.h>

#include <charconv>

namespace heddle::operators {
namespace {

using web::http::http_request;
using status_codes = web::http::status_codes;

base::Result<std::string> ListenUri(const std::string& listen) {
  const std::size_t colon = listen.rfind(':');
  int port = 0;
  if (colon != std::string::npos) {
    std::from_chars(listen.data() + colon + 1, listen.data() + listen.size(), port);
  }
  if (port < 1 || port > 65535) {
    return base::Fail(base::Code::kInvalid,
                      "cannot listen on \"" + listen + "\": write ADDRESS:PORT, as 127.0.0.1:8081");
  }
  const std::string host = colon == 0 ? "0.0.0.0" : listen.substr(0, colon);
  return "http://" + host + ":" + std::to_string(port);
}

}  // namespace

class StatusServer::Listener {
 public:
  Listener(const std::string& uri, Answers answers)
      : answers_(std::move(answers)), listener_(utility::string_t(uri)) {
    listener_.support(web::http::methods::GET, [this](const http_request& request) { Answer(request); });
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
  void Answer(const http_request& request) const {
    const std::string path = request.relative_uri().path();
    if (path == "/metrics") {
      request.reply(status_codes::OK, answers_.metrics(), "text/plain; version=0.0.4; charset=utf-8");
    } else if (path == "/healthz") {
      request.reply(status_codes::OK, "ok\n", "text/plain");
    } else if (path == "/readyz") {
      const bool ready = answers_.ready();
      request.reply(ready ? status_codes::OK : status_codes::ServiceUnavailable,
                    ready ? "ok\n" : "waiting for the first full list of Nodes, NodeTopologies and Fabrics\n",
                    "text/plain");
    } else {
      request.reply(status_codes::NotFound, "here are /metrics, /healthz and /readyz\n", "text/plain");
    }
  }

  const Answers answers_;
  web::http::experimental::listener::http_listener listener_;
};

StatusServer::StatusServer(std::unique_ptr<Listener> listener) : listener_(std::move(listener)) {}
StatusServer::~StatusServer() = default;

base::Result<std::unique_ptr<StatusServer>> StatusServer::Start(const std::string& listen, Answers answers) {
  if (listen.empty()) return nullptr;
  ASSIGN_OR_RETURN(const std::string uri, ListenUri(listen));
  try {
    return std::unique_ptr<StatusServer>(
        new StatusServer(std::make_unique<Listener>(uri, std::move(answers))));
  } catch (const std::exception& error) {
    return base::Fail(base::Code::kUnavailable, "cannot listen on " + listen + ": " + error.what());
  }
}

}  // namespace heddle::operators
