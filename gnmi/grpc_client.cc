#include "gnmi/grpc_client.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <algorithm>
#include <latch>
#include <utility>
#include <vector>

#include "base/check.h"
#include "gnmi/calls.h"
#include "gnmi/endpoint.h"
#include "gnmi/errors.h"
#include "gnmi/gate.h"
#include "gnmi/trust.h"

namespace heddle::gnmi {
namespace {

using std::chrono::milliseconds;

const std::string kCapabilities = "/gnmi.gNMI/Capabilities", kGet = "/gnmi.gNMI/Get";
constexpr milliseconds kFirstBackoff{1000};  // gRPC's own

// Called by gRPC when the handshake is done and nothing has been sent. Nobody else looks at the certificate.
class Verifier final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  explicit Verifier(std::shared_ptr<const Trust> trust) : trust_(std::move(trust)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>, grpc::Status* status) override {
    const grpc::string_ref chain = request->peer_cert_full_chain();
    const std::string why = trust_->WhyNot({chain.data(), chain.size()});
    *status = why.empty()
                  ? grpc::Status::OK
                  : grpc::Status(grpc::StatusCode::UNAUTHENTICATED, std::string(kRefusedCertificate) + why);
    return true;  // decided at once
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::shared_ptr<const Trust> trust_;
};

std::shared_ptr<grpc::ChannelCredentials> CredentialsFor(const Endpoint& endpoint,
                                                         std::shared_ptr<const Trust> trust) {
  grpc::experimental::TlsChannelCredentialsOptions options;
  // gRPC's own looks are off, since they say nothing of what they find; Trust looks at chain, dates, use and name.
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<Verifier>(std::move(trust)));
  if (!endpoint.certificate_pem.empty()) {
    const std::vector<grpc::experimental::IdentityKeyCertPair> identity{
        {endpoint.key_pem, endpoint.certificate_pem}};
    options.set_certificate_provider(
        std::make_shared<grpc::experimental::StaticDataCertificateProvider>(identity));
    options.watch_identity_key_cert_pairs();
  }
  return grpc::experimental::TlsCredentials(options);
}

grpc::ChannelArguments ArgumentsFor(const Endpoint& endpoint, const DialerOptions& options) {
  grpc::ChannelArguments arguments;
  if (!endpoint.server_name.empty()) arguments.SetSslTargetNameOverride(endpoint.server_name);
  arguments.SetMaxReceiveMessageSize(options.max_message_bytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, int(options.keepalive.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, int(options.keepalive_answer.count()));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA,
                   0);  // no end to them: streams may be silent for days
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, int(options.connect_timeout.count()));
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   int(std::min(kFirstBackoff, options.reconnect_max).count()));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, int(options.reconnect_max.count()));
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);  // no TXT queries beside the address
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);          // a connection for each client
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1);  // none: 16 MiB may become 16 GiB
  // Many switches say little each. What one may send before we have read what it sent is what its buffer here grows to,
  // in pieces of 64 KiB (tcp_posix.cc, maybe_make_read_slices); and a ping with each answer would find out how wide a
  // way is that is never filled.
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 32 << 10);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);
  arguments.SetInt(GRPC_ARG_MAX_CHANNEL_TRACE_EVENT_MEMORY_PER_NODE, 0);
  return arguments;
}

// A call with one answer, of which `Read` makes what is told.
template <class Request, class Answer, class Told>
class UnaryCall final : public Call, public std::enable_shared_from_this<UnaryCall<Request, Answer, Told>> {
 public:
  using Done = std::function<void(base::Result<Told>)>;
  using Read = std::function<base::Result<Told>(const Answer&)>;

  UnaryCall(std::shared_ptr<Connection> connection, Request request, milliseconds timeout, Read read,
            Done done)
      : connection_(std::move(connection)),
        request_(std::move(request)),
        timeout_(timeout),
        read_(std::move(read)),
        done_(std::move(done)) {}

  void Start(const std::string& method) {
    auto self = this->shared_from_this();
    connection_->Add(self);
    connection_->SignIn(context_);
    context_.set_deadline(TimeOf(MonotonicNanoseconds() + std::chrono::nanoseconds(timeout_).count()));
    connection_->Stub<Request>().UnaryCall(&context_, method, {}, &request_, &bytes_,
                                           [self](const grpc::Status& status) { self->End(status); });
  }

  void Cancel() override {
    if (gate_.Close()) done_ = nullptr;
    context_.TryCancel();
  }

 private:
  void End(const grpc::Status& status) {
    base::Result<Told> told = base::Fail(base::Code::kCancelled, "");
    if (gate_.closed()) {
      // Nobody is told, so nothing is read.
    } else {
      told = status.ok() ? ToldOf() : base::Fail(connection_->ErrorFrom(status, timeout_));
    }
    gate_.Pass([&] { done_(std::move(told)); });
    connection_->Remove(this);
  }

  base::Result<Told> ToldOf() {
    Answer answer;
    if (!ReadMessage(bytes_, answer))
      return base::Fail(connection_->ErrorThat(base::Code::kInvalid, "answers what is no message of gNMI"));
    auto told = read_(answer);
    if (!told)
      return base::Fail(connection_->ErrorIn(std::move(told).error(), "answers what cannot be read"));
    return told;
  }

  const std::shared_ptr<Connection> connection_;
  const Request request_;
  const milliseconds timeout_;
  const Read read_;
  Done done_;  // behind the gate
  Gate gate_;
  grpc::ClientContext context_;
  grpc::ByteBuffer bytes_;
};

// Holds no call: what has ended is gone, however long its stream is kept.
class CallStream final : public Stream {
 public:
  explicit CallStream(const std::shared_ptr<Call>& call) : call_(call) {}
  ~CallStream() override {
    if (const auto call = call_.lock()) call->Cancel();
  }

 private:
  const std::weak_ptr<Call> call_;
};

class GrpcClient final : public Client {
 public:
  GrpcClient(std::shared_ptr<Connection> connection, std::shared_ptr<Underway> underway)
      : connection_(std::move(connection)), underway_(std::move(underway)) {
    const std::lock_guard lock(underway_->mutex);
    ++underway_->clients;
  }
  ~GrpcClient() override {
    connection_->CancelAll();
    const std::lock_guard lock(underway_->mutex);
    --underway_->clients;
  }

  void Capabilities(milliseconds timeout,
                    std::function<void(base::Result<ServerCapabilities>)> done) override {
    using Capable = UnaryCall<::gnmi::CapabilityRequest, ::gnmi::CapabilityResponse, ServerCapabilities>;
    const auto read = [](const ::gnmi::CapabilityResponse& answer) {
      return base::Result<ServerCapabilities>(CapabilitiesOf(answer));
    };
    std::make_shared<Capable>(connection_, ::gnmi::CapabilityRequest(), timeout, read, std::move(done))
        ->Start(kCapabilities);
  }

  void Get(const GetRequest& request, milliseconds timeout,
           std::function<void(base::Result<std::vector<Notice>>)> done) override {
    using Getting = UnaryCall<::gnmi::GetRequest, ::gnmi::GetResponse, std::vector<Notice>>;
    auto wire = ToWire(request);
    if (!wire) {
      StartLater(connection_, [done = std::move(done),
                               error = connection_->ErrorIn(std::move(wire).error(), "is not asked")] {
        done(base::Fail(error));
      });
      return;
    }
    const auto read = [target = TargetOf(request), limits = connection_->limits()](
                          const ::gnmi::GetResponse& answer) { return NoticesOf(answer, target, limits); };
    std::make_shared<Getting>(connection_, *std::move(wire), timeout, read, std::move(done))->Start(kGet);
  }

  std::unique_ptr<Stream> Subscribe(const SubscribeRequest& request, StreamEvents events) override {
    const auto wire = ToWire(request);
    if (wire) return std::make_unique<CallStream>(StartStream(connection_, request, std::move(events)));
    return std::make_unique<CallStream>(StartLater(
        connection_,
        [ended = std::move(events.ended), error = connection_->ErrorIn(wire.error(), "is not asked")] {
          if (ended) ended(base::Fail(error));
        }));
  }

 private:
  const std::shared_ptr<Connection> connection_;
  const std::shared_ptr<Underway> underway_;
};

}  // namespace

// gRPC 1.51 ends the threads of its callbacks with the last channel that has called. Where that one goes in such a
// callback, as the channel of a client that was destroyed there does, a thread waits for itself and the process aborts
// (CompletionQueue::ReleaseCallbackAlternativeCQ). So a channel that leads nowhere has called once and stays.
class GrpcDialer::Anchor {
 public:
  Anchor() {
    grpc::TemplatedGenericStub<::gnmi::CapabilityRequest, grpc::ByteBuffer>(channel_).UnaryCall(
        &context_, kCapabilities, {}, &request_, &bytes_,
        [this](const grpc::Status&) { called_.count_down(); });
  }
  ~Anchor() { called_.wait(); }

 private:
  const std::shared_ptr<grpc::Channel> channel_ =
      grpc::CreateCustomChannel("", nullptr, {});  // no call succeeds
  grpc::ClientContext context_;
  const ::gnmi::CapabilityRequest request_;
  grpc::ByteBuffer bytes_;
  std::latch called_{1};
};

GrpcDialer::GrpcDialer(DialerOptions options)
    : options_(options), underway_(std::make_shared<Underway>()), anchor_(std::make_unique<Anchor>()) {}

GrpcDialer::~GrpcDialer() {
  CHECK(callbacks_here == 0);
  std::unique_lock lock(underway_->mutex);
  CHECK(underway_->clients == 0);
  underway_->fewer.wait(lock, [this] { return underway_->connections == 0; });
}

base::Result<std::unique_ptr<Client>> GrpcDialer::Dial(const Endpoint& endpoint) {
  TRY(CheckEndpoint(endpoint));
  TRY(CheckIdentity(endpoint.certificate_pem, endpoint.key_pem));
  const HostPort parts = *ParseAddress(endpoint.address);
  ASSIGN_OR_RETURN(auto trust, Trust::Of(endpoint.ca_pem,
                                         endpoint.server_name.empty() ? parts.host : endpoint.server_name));
  const bool literal = parts.host.find(':') != std::string::npos;
  // A scheme of our own choice, so that an address is never a path, as "unix:/run/x" would be.
  const std::string target = literal ? fmt::format("ipv6:%5B{}%5D:{}", parts.host, parts.port)
                                     : fmt::format("dns:///{}:{}", parts.host, parts.port);
  auto channel = grpc::CreateCustomChannel(target, CredentialsFor(endpoint, std::move(trust)),
                                           ArgumentsFor(endpoint, options_));
  auto connection = std::make_shared<Connection>(endpoint, std::move(channel), options_.answers, underway_);
  return std::make_unique<GrpcClient>(std::move(connection), underway_);
}

}  // namespace heddle::gnmi
