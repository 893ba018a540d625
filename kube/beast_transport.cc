#include "kube/beast_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/answer_parser.h"
#include "kube/base64.h"
#include "kube/name_lookup.h"
#include "kube/proxy.h"
#include "kube/server_url.h"
#include "kube/tls_context.h"
#include "kube/wire.h"

namespace heddle::kube {
namespace {

namespace http = boost::beast::http;
using base::Code;
using base::Error;
using base::Fail;
using base::Result;
using base::Status;
using boost::beast::error_code;

constexpr std::size_t kMostKept = 16;  // of an operator's watches and writers; more are made and not kept
// Shorter than the 90 s after which an API server ends an idle connection (IdleTimeout in staging/src/k8s.io/apiserver/
// pkg/server/secure_serving.go), so that ours is not ended in the moment in which we write: a write is not sent again.
// Longer than the time between two renewals of an agent's Lease (kHeartbeatPeriod with its jitter, 72 s), or each of
// them would make a connection, with TLS.
constexpr std::chrono::seconds kLongestIdle{80};
constexpr std::size_t kFirstRead = 16 << 10;
constexpr std::size_t kLargestRead = 128 << 10;  // is parsed while it is in the processor's cache
// What of an answer can wait for its rest: one line of a head, or of a chunk.
constexpr std::size_t kMostUnparsed = AnswerParser::kMaxHead;

struct Connection {
  explicit Connection(base::Clock& clock) : wire(clock) {}
  Wire wire;
  boost::beast::flat_buffer buffer{kMostUnparsed + kLargestRead};
  std::size_t read_size = kFirstRead;
  bool heard = false;  // something of an answer to the request in progress
};

// Connections that nobody uses, the last used first: an old one is ended by its age and not kept alive in turn.
// Thread rule: every member may be called from any thread.
class KeptConnections {
 public:
  // Null where there is none that a request can be sent on.
  std::unique_ptr<Connection> Take(base::MonotonicTime now) {
    std::vector<Kept> dropped;  // ended after the lock is given back
    const std::lock_guard lock(mutex_);
    while (!kept_.empty()) {
      Kept last = std::move(kept_.back());
      kept_.pop_back();
      if (now - last.since < kLongestIdle && last.connection->wire.Quiet()) return std::move(last.connection);
      dropped.push_back(std::move(last));
    }
    return nullptr;
  }
  void Keep(std::unique_ptr<Connection> connection, base::MonotonicTime now) {
    if (connection->buffer.capacity() > kFirstRead) {
      connection->buffer.clear();
      connection->buffer.shrink_to_fit();
    }
    connection->read_size = kFirstRead;
    std::vector<Kept> dropped;
    const std::lock_guard lock(mutex_);
    kept_.push_back({std::move(connection), now});
    const auto old = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const Kept& one) { return now - one.since < kLongestIdle; });
    const auto keep =
        std::max(old, kept_.end() - std::min<std::ptrdiff_t>(kept_.end() - kept_.begin(), kMostKept));
    std::move(kept_.begin(), keep, std::back_inserter(dropped));
    kept_.erase(kept_.begin(), keep);
  }
  void Clear() {
    std::vector<Kept> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(kept_);
  }

 private:
  struct Kept {
    std::unique_ptr<Connection> connection;
    base::MonotonicTime since;
  };
  std::mutex mutex_;
  std::vector<Kept> kept_;  // the oldest first
};

bool IsVisible(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > 0x20 && byte < 0x7f;
}

// Of a header's value: a line break in it would begin another header, or another request.
bool IsText(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= 0x20 && byte != 0x7f) || byte == '\t';
}

// Never quotes a value: it may be a token.
Status CheckHeader(const HttpHeader& header) {
  const bool name = !header.name.empty() && header.name.find(':') == std::string::npos &&
                    std::all_of(header.name.begin(), header.name.end(), IsVisible);
  if (name && std::all_of(header.value.begin(), header.value.end(), IsText)) return {};
  return Fail(Code::kInvalid, fmt::format("the header {} has a line break or another character in it that no "
                                          "header may have",
                                          name ? header.name : "without a usable name"));
}

std::string ProxyLogin(const ServerUrl& proxy) {
  return proxy.login.empty() ? std::string()
                             : fmt::format("Proxy-Authorization: Basic {}\r\n", EncodeBase64(proxy.login));
}

Error ErrorOf(const error_code& error, std::size_t max_body) {
  if (error == http::error::body_limit) {
    return {Code::kTooLarge, fmt::format("an answer over {} bytes", max_body), std::nullopt};
  }
  if (error == http::error::partial_message) return {Code::kUnavailable, "the answer was cut", std::nullopt};
  return {Code::kUnavailable, fmt::format("this is no HTTP answer: {}", error.message()), std::nullopt};
}

// One read, which takes more the next time where it was filled.
Result<std::size_t> Fill(Connection& connection) {
  const auto space = connection.buffer.prepare(connection.read_size);
  ASSIGN_OR_RETURN(const std::size_t got,
                   connection.wire.Read(static_cast<char*>(space.data()), space.size()));
  connection.buffer.commit(got);
  if (got > 0) connection.heard = true;
  if (got == space.size()) connection.read_size = std::min(connection.read_size * 4, kLargestRead);
  return got;
}

enum class Until { kHead, kEnd };

// Reads and parses. False where the body's reader has enough. `deadline` is asked for each read.
Result<bool> Pull(Connection& connection, AnswerParser& answer, Until until, std::size_t max_body,
                  const std::function<base::MonotonicTime()>& deadline) {
  answer.eager(until == Until::kEnd);
  bool wants_more = false;
  while (until == Until::kHead ? !answer.is_header_done() : !answer.is_done()) {
    if (wants_more || connection.buffer.size() == 0) {
      connection.wire.WaitUntil(deadline());
      ASSIGN_OR_RETURN(const std::size_t got, Fill(connection));
      if (got == 0) {
        if (!answer.got_some()) return Fail(Code::kUnavailable, "the connection was ended before an answer");
        error_code cut;
        answer.put_eof(cut);
        if (cut) return Fail(ErrorOf(cut, max_body));
        continue;
      }
    }
    error_code error;
    const std::size_t parsed = answer.put(connection.buffer.cdata(), error);
    connection.buffer.consume(parsed);
    wants_more = error == http::error::need_more;
    if (error == boost::asio::error::operation_aborted) return false;
    if (error && !wants_more) return Fail(ErrorOf(error, max_body));
    if (connection.buffer.size() >= kMostUnparsed) return Fail(ErrorOf(http::error::header_limit, max_body));
  }
  return true;
}

}  // namespace

class BeastTransport::Impl {
 public:
  Impl(ClientConfig config, base::Clock& clock, BeastOptions options)
      : config_(std::move(config)), clock_(clock), options_(options) {
    StartTls();
    if (auto read = ReadUrls(); !read) unusable_ = std::move(read).error();
  }

  Result<HttpResponse> Exchange(const HttpRequest& request, const ChunkReader* on_chunk,
                                const std::stop_token& stop);

 private:
  // A request and what has come of it.
  struct Call {
    const HttpRequest& request;
    const ChunkReader* on_chunk;
    const std::stop_token& stop;
    std::string text;  // of the request
    base::MonotonicTime deadline{};
    std::optional<AnswerParser> answer = std::nullopt;
  };

  Status ReadUrls();
  Result<std::string> Compose(const HttpRequest& request) const;
  Status Open(Connection& connection, const Call& call) const;
  Status Tunnel(Connection& connection, const Call& call) const;
  Result<bool> Converse(Connection& connection, Call& call) const;
  Error Told(const Error& error, const Call& call) const;

  const ClientConfig config_;
  base::Clock& clock_;
  const BeastOptions options_;
  ServerUrl server_;
  std::optional<ServerUrl> proxy_;
  const std::string way_ = WayTo(config_);  // as errors name it
  std::optional<Error> unusable_;           // why nothing can be asked
  KeptConnections kept_;
};

Status BeastTransport::Impl::ReadUrls() {
  const std::string quoted =
      config_.server.find('@') == std::string::npos ? fmt::format("server \"{}\"", config_.server) : "server";
  ASSIGN_OR_RETURN(server_, ParseServerUrl(config_.server), quoted);
  if (!server_.login.empty()) {
    return Fail(Code::kInvalid, "the server's URL has a login in it, which belongs to the user");
  }
  if (config_.proxy_url.empty()) return {};
  auto proxy = ParseServerUrl(config_.proxy_url);
  if (proxy && !proxy->tls) {
    proxy_ = *std::move(proxy);
    return {};
  }
  const bool variable = config_.proxy_from != ClientConfig{}.proxy_from;
  return Fail(
      Code::kInvalid,
      fmt::format("{}: {}; a proxy is spoken to over http:// only, not over https:// or socks5://{}",
                  config_.proxy_from, proxy ? "it begins with https://" : proxy.error().message,
                  variable ? "; name the server's host in NO_PROXY where it is reached without" : ""));
}

Result<std::string> BeastTransport::Impl::Compose(const HttpRequest& request) const {
  std::vector<HttpHeader> headers = request.headers;
  if (config_.authenticator != nullptr) {
    ASSIGN_OR_RETURN(const auto credentials, config_.authenticator->Headers(), "get credentials");
    headers.insert(headers.end(), credentials.begin(), credentials.end());
  }
  if (request.method.empty() || !std::all_of(request.method.begin(), request.method.end(), IsVisible) ||
      !request.target.starts_with('/') ||
      !std::all_of(request.target.begin(), request.target.end(), IsVisible)) {
    return Fail(Code::kInvalid,
                fmt::format("{} {}: this cannot be asked for by HTTP", request.method, request.target));
  }
  std::string text = fmt::format("{} ", request.method);
  const bool whole_url = proxy_ && !server_.tls;
  if (whole_url) text += "http://" + server_.authority;
  text += fmt::format("{}{} HTTP/1.1\r\nHost: {}\r\n", server_.prefix, request.target, server_.authority);
  if (whole_url) text += ProxyLogin(*proxy_);
  for (const HttpHeader& header : headers) {
    TRY(CheckHeader(header));
    text += header.name + ": " + header.value + "\r\n";
  }
  const bool reads = request.method == "GET" || request.method == "HEAD" || request.method == "DELETE";
  if (!request.body.empty() || !reads) text += fmt::format("Content-Length: {}\r\n", request.body.size());
  text += "\r\n";
  // With the head in one piece: one record of TLS, and one packet, for most.
  text += request.body;
  return text;
}

Status BeastTransport::Impl::Open(Connection& connection, const Call& call) const {
  const ServerUrl& first = proxy_ ? *proxy_ : server_;
  ASSIGN_OR_RETURN(const auto addresses, LookUp(first.host, first.port, call.deadline, call.stop));
  connection.wire.WaitUntil(call.deadline);
  TRY(connection.wire.Connect(addresses));
  if (!server_.tls) return {};
  if (proxy_) {
    TRY(Tunnel(connection, call));
  }
  return connection.wire.Secure(config_.tls, config_.authenticator.get(), server_.host);
}

Status BeastTransport::Impl::Tunnel(Connection& connection, const Call& call) const {
  const std::string to = server_.HostAndPort();
  TRY(connection.wire.Write(
      fmt::format("CONNECT {} HTTP/1.1\r\nHost: {}\r\n{}\r\n", to, to, ProxyLogin(*proxy_))));
  AnswerParser answer(nullptr, 0);
  answer.skip(true);
  const auto head = Pull(connection, answer, Until::kHead, 0, [&] { return call.deadline; });
  if (!head) return Fail(head.error());
  if (answer.response.status / 100 != 2) {
    return Fail(Code::kUnavailable, fmt::format("CONNECT {} is answered {}", to, answer.response.status));
  }
  // In TLS the client speaks first.
  if (connection.buffer.size() > 0) return Fail(Code::kUnavailable, "something stands behind its answer");
  connection.heard = false;
  return {};
}

// False where the body's reader has enough.
Result<bool> BeastTransport::Impl::Converse(Connection& connection, Call& call) const {
  connection.heard = false;
  connection.wire.WaitUntil(call.deadline);
  TRY(connection.wire.Write(call.text));
  const auto by_deadline = [&] { return call.deadline; };
  do {
    call.answer.emplace(call.on_chunk, options_.max_body_bytes);
    if (call.request.method == "HEAD") call.answer->skip(true);
    ASSIGN_OR_RETURN([[maybe_unused]] const bool head,
                     Pull(connection, *call.answer, Until::kHead, options_.max_body_bytes, by_deadline));
    // 100 and 103 announce the answer; 101 would be one to a question that is not asked here.
  } while (call.answer->response.status / 100 == 1 && call.answer->response.status != 101);
  if (!call.answer->streaming()) {
    return Pull(connection, *call.answer, Until::kEnd, options_.max_body_bytes, by_deadline);
  }
  if (!(*call.on_chunk)("")) return false;
  return Pull(connection, *call.answer, Until::kEnd, options_.max_body_bytes,
              [&] { return clock_.Now() + call.request.idle_timeout; });
}

Error BeastTransport::Impl::Told(const Error& error, const Call& call) const {
  if (error.code == Code::kCancelled) return error;
  if (error.code != Code::kTimeout) return error.In(way_);
  const bool head = call.answer && call.answer->is_header_done();
  const bool streaming = head && call.answer->streaming();
  return {Code::kTimeout,
          fmt::format("{}: {} for {} ms", way_,
                      streaming ? "silence"
                      : head    ? "no complete answer"
                                : "no answer",
                      (streaming ? call.request.idle_timeout : call.request.timeout).count()),
          std::nullopt};
}

Result<HttpResponse> BeastTransport::Impl::Exchange(const HttpRequest& request, const ChunkReader* on_chunk,
                                                    const std::stop_token& stop) {
  if (unusable_) return Fail(*unusable_);
  if (stop.stop_requested()) return Fail(Code::kCancelled, "stopped");
  Call call{.request = request, .on_chunk = on_chunk, .stop = stop, .text = {}};
  ASSIGN_OR_RETURN(call.text, Compose(request));
  call.deadline = clock_.Now() + request.timeout;
  const bool harmless = request.method == "GET" || request.method == "HEAD";
  std::unique_ptr<Connection> connection = kept_.Take(clock_.Now());
  for (;;) {
    const bool kept = connection != nullptr;
    if (!kept) connection = std::make_unique<Connection>(clock_);
    Wire& wire = connection->wire;
    TRY(wire.Begin(stop));
    call.answer.reset();
    if (!kept) {
      if (const Status open = Open(*connection, call); !open) return Fail(Told(open.error(), call));
    }
    const Result<bool> whole = Converse(*connection, call);
    if (!whole) {
      // Whatever ended or silenced this one has likely done so to the others.
      if (whole.error().code == Code::kUnavailable || whole.error().code == Code::kTimeout) kept_.Clear();
      const bool again = kept && whole.error().code == Code::kUnavailable && !connection->heard &&
                         (harmless || wire.sent() == 0);
      if (!again) return Fail(Told(whole.error(), call));
      connection.reset();
      continue;
    }
    const bool refused = call.answer->response.status == 401 && config_.authenticator != nullptr;
    if (refused) {
      // Connections may have been made with the certificate that is refused.
      kept_.Clear();
      config_.authenticator->Rejected();
    } else if (*whole && call.answer->keep_alive() && call.answer->response.status != 101 &&
               connection->buffer.size() == 0) {
      wire.End();
      kept_.Keep(std::move(connection), clock_.Now());
    }
    return std::move(call.answer->response);
  }
}

BeastTransport::BeastTransport(ClientConfig config, base::Clock& clock, BeastOptions options)
    : impl_(std::make_unique<Impl>(std::move(config), clock, options)) {}
BeastTransport::~BeastTransport() = default;

Result<HttpResponse> BeastTransport::Do(const HttpRequest& request, std::stop_token stop) {
  return impl_->Exchange(request, nullptr, stop);
}

Result<HttpResponse> BeastTransport::Stream(const HttpRequest& request, const ChunkReader& on_chunk,
                                            std::stop_token stop) {
  return impl_->Exchange(request, &on_chunk, stop);
}

}  // namespace heddle::kube
