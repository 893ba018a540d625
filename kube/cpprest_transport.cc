#include "kube/cpprest_transport.h"

#include <arpa/inet.h>
#include <fmt/format.h>

// cpprestsdk defines a macro U, which is a template parameter's name elsewhere.
#define _TURN_OFF_PLATFORM_STRING  // NOLINT(bugprone-reserved-identifier): the name is theirs
#include <cpprest/http_client.h>
#include <pplx/threadpool.h>
#include <stdlib.h>

#include "kube/body_channel.h"
#include "kube/tls_context.h"

namespace heddle::kube {
namespace {

using base::Code;
using base::Error;
using base::Fail;
using base::Result;

// cpprestsdk's own timer, which counts between two reads. All real deadlines are kept by the asking thread.
constexpr std::chrono::hours kLibraryTimeout{1};

// A write-only stream buffer in front of a BodyChannel. putn's task is complete when there is room for more,
// and cpprestsdk reads on only then.
class ChannelBuffer final : public concurrency::streams::details::streambuf_state_manager<std::uint8_t> {
 public:
  explicit ChannelBuffer(std::shared_ptr<BodyChannel> channel)
      : streambuf_state_manager(std::ios_base::out), channel_(std::move(channel)) {}

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  std::size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(std::size_t, std::ios_base::openmode) override {}
  std::size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return static_cast<pos_type>(traits::eof()); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override {
    return static_cast<pos_type>(traits::eof());
  }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return static_cast<pos_type>(traits::eof());
  }
  bool acquire(std::uint8_t*&, std::size_t&) override { return false; }
  void release(std::uint8_t*, std::size_t) override {}

 protected:
  pplx::task<int_type> _putc(std::uint8_t byte) override {
    return _putn(&byte, 1).then([byte](std::size_t) { return static_cast<int_type>(byte); });
  }
  pplx::task<std::size_t> _putn(const std::uint8_t* bytes, std::size_t count) override {
    if (!channel_->PutChunk(std::string(reinterpret_cast<const char*>(bytes), count))) {
      return pplx::task_from_exception<std::size_t>(std::runtime_error("not wanted any more"));
    }
    const pplx::task_completion_event<std::size_t> room;
    if (!channel_->Full([room, count] { room.set(count); })) return pplx::task_from_result(count);
    return pplx::create_task(room);
  }
  std::uint8_t* _alloc(std::size_t) override { return nullptr; }
  void _commit(std::size_t) override {}
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  // Never read from.
  pplx::task<int_type> _bumpc() override { return pplx::task_from_result<int_type>(traits::eof()); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return pplx::task_from_result<int_type>(traits::eof()); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return pplx::task_from_result<int_type>(traits::eof()); }
  pplx::task<int_type> _ungetc() override { return pplx::task_from_result<int_type>(traits::eof()); }
  pplx::task<std::size_t> _getn(std::uint8_t*, std::size_t) override {
    return pplx::task_from_result<std::size_t>(0);
  }
  std::size_t _scopy(std::uint8_t*, std::size_t) override { return 0; }

 private:
  const std::shared_ptr<BodyChannel> channel_;
};

HttpResponse HeadOf(const web::http::http_response& response) {
  HttpResponse head;
  head.status = response.status_code();
  for (const auto& [name, value] : response.headers()) head.headers.push_back({name, value});
  return head;
}

bool IsIpAddress(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 || host.find(':') != std::string::npos;
}

// Runs `task` to its end on the pool and tells the channel. An exception that nobody takes would end the
// process.
void Connect(const pplx::task<web::http::http_response>& answer, const std::shared_ptr<BodyChannel>& channel,
             const std::function<Error(const std::exception&)>& explain) {
  answer.then([channel, explain](const pplx::task<web::http::http_response>& headers) {
    try {
      const web::http::http_response response = headers.get();
      channel->PutHead(HeadOf(response));
      response.content_ready().then([channel, explain](const pplx::task<web::http::http_response>& whole) {
        try {
          whole.get();
          channel->Finish();
        } catch (const std::exception& failure) {
          channel->Fail(explain(failure));
        }
      });
    } catch (const std::exception& failure) {
      channel->Fail(explain(failure));
    }
  });
}

}  // namespace

class CpprestTransport::Impl {
 public:
  Impl(ClientConfig config, base::Clock& clock, CpprestOptions options)
      : config_(std::move(config)),
        clock_(clock),
        options_(options),
        diagnosis_(std::make_shared<TlsDiagnosis>()) {
    StartTls();
    try {
      crossplat::threadpool::initialize_with_threads(std::size_t(options_.threads));
    } catch (const std::exception&) {
      // Somebody in this process was first; their size holds.
    }
    // cpprestsdk hands "[::1]" with its brackets to the resolver, which knows no such name.
    if (config_.server.find("://[") != std::string::npos) {
      unusable_ =
          fmt::format("{}: an IPv6 address cannot be used as server, a name for it can", config_.server);
      return;
    }
    try {
      MakeClient();
    } catch (const std::exception& failure) {
      unusable_ = fmt::format("{}: {}", config_.server, failure.what());
    }
  }

  Result<HttpResponse> Exchange(const HttpRequest& request, const ChunkReader* on_chunk,
                                const std::stop_token& stop);

 private:
  void MakeClient();
  Result<web::http::http_request> Compose(const HttpRequest& request,
                                          const std::shared_ptr<BodyChannel>& channel);
  Result<HttpResponse> Collect(BodyChannel& channel, const HttpRequest& request, const ChunkReader* on_chunk,
                               const std::stop_token& stop);
  Error TooLate(const BodyChannel& channel, std::string_view missing, std::chrono::milliseconds after,
                const std::stop_token& stop) const;

  const ClientConfig config_;
  base::Clock& clock_;
  const CpprestOptions options_;
  const std::shared_ptr<TlsDiagnosis> diagnosis_;
  std::unique_ptr<web::http::client::http_client> client_;
  std::string unusable_;  // why there is no client
};

void CpprestTransport::Impl::MakeClient() {
  const web::uri server(config_.server);
  web::http::client::http_client_config options;
  options.set_timeout(kLibraryTimeout);
  // A redirect would take our token to wherever it points.
  options.set_max_redirects(0);
  if (!config_.proxy_url.empty()) options.set_proxy(web::web_proxy(web::uri(config_.proxy_url)));
  options.set_validate_certificates(!config_.tls.insecure_skip_verify);
  options.set_tlsext_sni_enabled(!config_.tls.server_name.empty() || !IsIpAddress(server.host()));
  options.set_ssl_context_callback([tls = config_.tls, authenticator = config_.authenticator,
                                    host = server.host(),
                                    diagnosis = diagnosis_](boost::asio::ssl::context& context) {
    PrepareTls(context.native_handle(), tls, authenticator.get(), host, diagnosis);
  });
  client_ = std::make_unique<web::http::client::http_client>(server, options);
}

Result<web::http::http_request> CpprestTransport::Impl::Compose(const HttpRequest& request,
                                                                const std::shared_ptr<BodyChannel>& channel) {
  std::vector<HttpHeader> credentials;
  if (config_.authenticator != nullptr) {
    ASSIGN_OR_RETURN(credentials, config_.authenticator->Headers(), "get credentials");
  }
  try {
    web::http::http_request composed(request.method);
    composed.set_request_uri(web::uri(request.target));
    if (!request.body.empty()) {
      // The text overload would add "; charset=utf-8" to types that the API server compares whole.
      composed.set_body(std::vector<unsigned char>(request.body.begin(), request.body.end()));
    }
    credentials.insert(credentials.begin(), request.headers.begin(), request.headers.end());
    for (const HttpHeader& header : credentials) {
      if (header.name == "Content-Type") composed.headers().remove(header.name);
      composed.headers().add(header.name, header.value);
    }
    // cpprestsdk verifies the certificate, and sends SNI, for the Host header where there is one.
    if (!config_.tls.server_name.empty()) composed.headers().add("Host", config_.tls.server_name);
    composed.set_response_stream(
        concurrency::streams::streambuf<std::uint8_t>(std::make_shared<ChannelBuffer>(channel))
            .create_ostream());
    return composed;
  } catch (const std::exception& failure) {
    return Fail(Code::kInvalid, fmt::format("{} {}: {}", request.method, request.target, failure.what()));
  }
}

Result<HttpResponse> CpprestTransport::Impl::Exchange(const HttpRequest& request, const ChunkReader* on_chunk,
                                                      const std::stop_token& stop) {
  if (client_ == nullptr) return Fail(Code::kInvalid, unusable_);
  if (stop.stop_requested()) return Fail(Code::kCancelled, "stopped");
  const auto channel = std::make_shared<BodyChannel>();
  ASSIGN_OR_RETURN(const web::http::http_request composed, Compose(request, channel));
  const auto explain = [diagnosis = diagnosis_, server = config_.server](const std::exception& failure) {
    const std::string tls = diagnosis->Take();
    return Error{Code::kUnavailable,
                 fmt::format("{}: {}{}{}", server, failure.what(), tls.empty() ? "" : ": ", tls),
                 std::nullopt};
  };
  pplx::cancellation_token_source cancel;
  try {
    Connect(client_->request(composed, cancel.get_token()), channel, explain);
  } catch (const std::exception& failure) {
    return Fail(explain(failure));
  }
  auto result = Collect(*channel, request, on_chunk, stop);
  // Cancelling closes the connection, which after a complete answer would spoil it for the pool.
  if (!channel->Abandon()) cancel.cancel();
  if (result && result->status == 401 && config_.authenticator != nullptr) config_.authenticator->Rejected();
  return result;
}

Result<HttpResponse> CpprestTransport::Impl::Collect(BodyChannel& channel, const HttpRequest& request,
                                                     const ChunkReader* on_chunk,
                                                     const std::stop_token& stop) {
  const base::MonotonicTime deadline = clock_.Now() + request.timeout;
  const HttpResponse* head = channel.WaitForHead(deadline, stop);
  if (head == nullptr) return Fail(TooLate(channel, "no answer", request.timeout, stop));
  HttpResponse response = *head;
  const bool streaming = on_chunk != nullptr && response.status / 100 == 2;
  if (streaming && !(*on_chunk)("")) return response;
  std::string chunk;
  for (;;) {
    const auto next =
        channel.WaitForChunk(chunk, streaming ? clock_.Now() + request.idle_timeout : deadline, stop);
    if (next == BodyChannel::Next::kEnd) return response;
    if (next != BodyChannel::Next::kChunk) {
      return Fail(streaming ? TooLate(channel, "silence", request.idle_timeout, stop)
                            : TooLate(channel, "no complete answer", request.timeout, stop));
    }
    if (streaming) {
      if (!(*on_chunk)(chunk)) return response;
    } else if (response.body.size() + chunk.size() > options_.max_body_bytes) {
      return Fail(Code::kTooLarge,
                  fmt::format("{}: an answer over {} bytes", config_.server, options_.max_body_bytes));
    } else {
      response.body += chunk;
    }
  }
}

Error CpprestTransport::Impl::TooLate(const BodyChannel& channel, std::string_view missing,
                                      std::chrono::milliseconds after, const std::stop_token& stop) const {
  if (stop.stop_requested()) return Error{Code::kCancelled, "stopped", std::nullopt};
  if (auto error = channel.error()) return *std::move(error);
  return Error{Code::kTimeout, fmt::format("{}: {} for {} ms", config_.server, missing, after.count()),
               std::nullopt};
}

CpprestTransport::CpprestTransport(ClientConfig config, base::Clock& clock, CpprestOptions options)
    : impl_(std::make_unique<Impl>(std::move(config), clock, options)) {}
CpprestTransport::~CpprestTransport() = default;

Result<HttpResponse> CpprestTransport::Do(const HttpRequest& request, std::stop_token stop) {
  return impl_->Exchange(request, nullptr, stop);
}

Result<HttpResponse> CpprestTransport::Stream(const HttpRequest& request, const ChunkReader& on_chunk,
                                              std::stop_token stop) {
  return impl_->Exchange(request, &on_chunk, stop);
}

void PassOverSystemAuthorities(const ClientConfig& config) {
  if (config.tls.authority) ::setenv("SSL_CERT_FILE", "/dev/null", 1);
}

}  // namespace heddle::kube
