#include "kube/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace heddle::kube {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

// Of one scheduler, one kubelet and a few scrapers. Each takes four descriptors, and of 1,024, which is all that many a
// process has, enough are left for what else a daemon does.
constexpr std::size_t kMaxSessions = 128;
constexpr std::size_t kMaxHead = 16 << 10;
constexpr std::size_t kChunk = 64 << 10;
// Longer than the 90 s for which Go's clients keep a connection, so that it is theirs to close.
constexpr auto kIdle = std::chrono::seconds(120);
constexpr auto kOneRequest = std::chrono::seconds(30);  // to read one, and as long again to send its answer
constexpr auto kLinger = std::chrono::seconds(2);

// ADDRESS:PORT; without an address, all of them.
base::Result<tcp::endpoint> ParseAddress(const std::string& listen) {
  const std::size_t colon = listen.rfind(':');
  int port = -1;
  error_code bad;
  asio::ip::address address = asio::ip::address_v6::any();
  if (colon != std::string::npos) {
    const char* end = listen.data() + listen.size();
    const auto [read, error] = std::from_chars(listen.data() + colon + 1, end, port);
    if (read != end || error != std::errc{}) port = -1;
    std::string host = listen.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    if (host == "localhost") host = "127.0.0.1";
    if (!host.empty()) address = asio::ip::make_address(host, bad);
  }
  if (port < 0 || port > 65535 || bad) {
    return base::Fail(base::Code::kInvalid,
                      "cannot listen on \"" + listen + "\": write ADDRESS:PORT, as 127.0.0.1:8010");
  }
  return tcp::endpoint(address, std::uint16_t(port));
}

std::string ToString(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", address, endpoint.port())
                                    : fmt::format("{}:{}", address, endpoint.port());
}

ServedAnswer Handled(const HttpServer::Handler& handler, const ServedRequest& request) {
  try {
    return handler(request);
  } catch (const std::exception& error) {
    return {.status = 500, .body = std::string("this request could not be handled: ") + error.what() + "\n"};
  }
}

// One connection, with a thread of its own: threads that share connections wake each other for each piece of a body.
// Every member but Stop runs on that thread.
class Session {
 public:
  Session(const HttpServer::Handler& handler, std::size_t max_body)
      : handler_(handler), max_body_(max_body) {}

  tcp::socket& socket() { return stream_.socket(); }
  void Run() {
    error_code ignored;
    socket().set_option(tcp::no_delay(true), ignored);
    buffer_.reserve(kChunk);  // what it has room for is what one read takes: 512 bytes otherwise
    Await();
    context_.run();
    ended_ = true;
  }
  bool ended() const { return ended_; }
  // Ends it as soon as no request is in progress. From any thread.
  void Stop() {
    asio::post(context_, [this] {
      stopping_ = true;
      if (!busy_) Close();
    });
  }

 private:
  void Await() {
    if (stopping_) return Close();
    parser_.emplace();
    parser_->header_limit(kMaxHead);
    parser_->body_limit(max_body_);
    stream_.expires_after(kIdle);
    http::async_read_header(stream_, buffer_, *parser_,
                            [this](error_code error, std::size_t) { Head(error); });
  }
  void Head(error_code error) {
    stream_.expires_after(kOneRequest);
    // A body that is announced as too large is not even read.
    if (error == http::error::body_limit) return Serve(true);
    if (error) return Refuse(error);
    if (!beast::iequals(parser_->get()[http::field::expect], "100-continue")) return Body();
    static const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(go_on),
                      [this](error_code failed, std::size_t) { failed ? Close() : Body(); });
  }
  void Body() {
    http::async_read(stream_, buffer_, *parser_, [this](error_code error, std::size_t) {
      if (error && error != http::error::body_limit) return Refuse(error);
      Serve(error == http::error::body_limit);
    });
  }
  void Refuse(error_code error) {
    const bool no_http = error.category() == make_error_code(http::error::bad_target).category() &&
                         error != http::error::end_of_stream && error != http::error::partial_message;
    if (!no_http) return Close();
    Reply({.status = 400, .body = fmt::format("this is no HTTP request: {}\n", error.message())}, 11, false);
  }
  void Serve(bool too_large) {
    auto& asked = parser_->get();
    const std::string target(asked.target());
    const std::size_t end = std::min(target.find('?'), target.size());
    ServedRequest request{.method = std::string(asked.method_string()),
                          .path = target.substr(0, end),
                          .body = too_large ? std::string() : std::move(asked.body()),
                          .body_too_large = too_large,
                          .query = target.substr(std::min(end + 1, target.size())),
                          .host = std::string(asked[http::field::host])};
    head_only_ = asked.method() == http::verb::head;
    Reply(Handled(handler_, request), asked.version(), asked.keep_alive() && !too_large);
  }
  void Reply(ServedAnswer answer, unsigned version, bool keep) {
    busy_ = true;
    answer_ = {static_cast<http::status>(answer.status), version};
    answer_.set(http::field::content_type, answer.content_type);
    for (const HttpHeader& header : answer.headers) answer_.set(header.name, header.value);
    answer_.keep_alive(keep);
    answer_.body() = std::move(answer.body);
    answer_.prepare_payload();  // Content-Length
    if (std::exchange(head_only_, false)) answer_.body().clear();
    stream_.expires_after(kOneRequest);  // a handler may have waited for news
    http::async_write(stream_, answer_, [this](error_code error, std::size_t) {
      busy_ = false;
      if (error) return Close();
      if (!answer_.keep_alive()) return Linger();
      Await();
    });
  }
  // Who still sends would lose the answer if we closed now: it is let finish for a moment.
  void Linger() {
    if (stopping_) return Close();
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(kLinger);
    Drain();
  }
  void Drain() {
    stream_.async_read_some(asio::buffer(rest_),
                            [this](error_code error, std::size_t) { error ? Close() : Drain(); });
  }
  void Close() {
    error_code ignored;
    stream_.socket().close(ignored);
  }

  asio::io_context context_{1};
  beast::tcp_stream stream_{context_};
  const HttpServer::Handler& handler_;
  const std::size_t max_body_;
  beast::flat_buffer buffer_{kMaxHead + kChunk};
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> answer_;
  std::array<char, 4096> rest_{};
  bool busy_ = false, stopping_ = false, head_only_ = false;
  std::atomic<bool> ended_{false};
};

}  // namespace

class HttpServer::Listener {
 public:
  Listener(std::size_t max_body, Handler handler) : handler_(std::move(handler)), max_body_(max_body) {}
  ~Listener() {
    asio::post(context_, [this] {
      error_code ignored;
      acceptor_.close(ignored);
      pause_.cancel();
    });
    if (accepting_.joinable()) accepting_.join();
    for (const Served& one : served_) one.session->Stop();
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  error_code Open(tcp::endpoint endpoint) {
    const bool any = endpoint.address().is_v6() && endpoint.address().is_unspecified();
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (error && any) {  // a kernel without IPv6
      endpoint = {asio::ip::address_v4::any(), endpoint.port()};
      acceptor_.open(endpoint.protocol(), error);
    }
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error && any && endpoint.address().is_v6()) acceptor_.set_option(asio::ip::v6_only(false), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    return error;
  }
  std::string address() const { return ToString(acceptor_.local_endpoint()); }
  void Run() {
    Accept();
    accepting_ = std::jthread([this] { context_.run(); });
  }

 private:
  struct Served {
    std::unique_ptr<Session> session;
    std::jthread thread;  // ends before its session goes
  };

  void Accept() {
    next_.reset();  // one whose accept failed has descriptors, too
    try {
      next_ = std::make_unique<Session>(handler_, max_body_);
    } catch (const std::exception&) {  // its context takes descriptors
      return Pause();
    }
    acceptor_.async_accept(next_->socket(), [this](error_code error) {
      if (!acceptor_.is_open()) return;
      if (error) return Pause();
      Begin();
      Accept();
    });
  }
  // Out of descriptors, as a rule: asked again at once, it would say so again at once.
  void Pause() {
    Forget();  // sessions that have ended hold some, and no connection comes to sweep them
    pause_.expires_after(std::chrono::milliseconds(100));
    pause_.async_wait([this](error_code) {
      if (acceptor_.is_open()) Accept();
    });
  }
  void Forget() {
    std::erase_if(served_, [](const Served& one) { return one.session->ended(); });
  }
  void Begin() {
    Forget();
    if (served_.size() >= kMaxSessions) return;  // the next Accept closes it
    Session& session = *next_;
    try {
      served_.push_back({std::move(next_), std::jthread([&session] { session.Run(); })});
    } catch (const std::system_error&) {
      // No more threads may be made: the connection went with its session.
    }
  }

  const Handler handler_;
  const std::size_t max_body_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  asio::steady_timer pause_{context_};
  std::unique_ptr<Session> next_;  // the one that the next connection gets
  std::vector<Served> served_;
  std::jthread accepting_;
};

HttpServer::HttpServer(std::string address, std::unique_ptr<Listener> listener)
    : address_(std::move(address)), listener_(std::move(listener)) {}
HttpServer::~HttpServer() = default;

base::Result<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& listen, std::size_t max_body,
                                                            const Handler& handler) {
  ASSIGN_OR_RETURN(const tcp::endpoint endpoint, ParseAddress(listen));
  auto listener = std::make_unique<Listener>(max_body, handler);
  if (const error_code error = listener->Open(endpoint)) {
    return base::Fail(base::Code::kUnavailable, "cannot listen on " + listen + ": " + error.message());
  }
  listener->Run();
  std::string address = listener->address();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(address), std::move(listener)));
}

}  // namespace heddle::kube
