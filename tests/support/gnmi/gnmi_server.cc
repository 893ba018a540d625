#include "tests/support/gnmi/gnmi_server.h"

#include <grpcpp/generic/async_generic_service.h>

#include <utility>

#include "base/check.h"

namespace heddle::test {
namespace {

SentMetadata MetadataOf(const grpc::CallbackServerContext& context) {
  SentMetadata metadata;
  for (const auto& [name, value] : context.client_metadata())
    metadata.emplace(std::string(name.data(), name.size()), std::string(value.data(), value.size()));
  return metadata;
}

}  // namespace

void GnmiSession::Send(::gnmi::SubscribeResponse response) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(response));
  PushLocked();
}

void GnmiSession::SendJson(const std::string& target, const std::vector<std::string>& elems,
                           const std::string& json) {
  ::gnmi::SubscribeResponse response;
  ::gnmi::Notification& notification = *response.mutable_update();
  notification.set_timestamp(1);
  notification.mutable_prefix()->set_target(target);
  ::gnmi::Update& update = *notification.add_update();
  for (const std::string& elem : elems) update.mutable_path()->add_elem()->set_name(elem);
  update.mutable_val()->set_json_ietf_val(json);
  Send(std::move(response));
}

void GnmiSession::SendSync() {
  ::gnmi::SubscribeResponse response;
  response.set_sync_response(true);
  Send(std::move(response));
}

void GnmiSession::End(grpc::Status status) {
  const std::lock_guard lock(mutex_);
  if (!end_) end_ = std::move(status);
  PushLocked();
}

bool GnmiSession::WaitForEnd(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return done_; });
}

bool GnmiSession::cancelled() {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

void GnmiSession::PushLocked() {
  if (writing_ || finished_) return;
  if (!queue_.empty()) {
    writing_ = true;
    StartWrite(&queue_.front());
  } else if (end_) {
    finished_ = true;
    Finish(*end_);
  }
}

void GnmiSession::OnReadDone(bool ok) {
  if (!ok || std::exchange(asked_, true)) return;  // half-closed, or a poll
  StartRead(&more_);
  begun_(*this);
}

void GnmiSession::OnWriteDone(bool ok) {
  const std::lock_guard lock(mutex_);
  writing_ = false;
  queue_.pop_front();
  if (!ok) queue_.clear();
  PushLocked();
}

void GnmiSession::OnCancel() {
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (!writing_) queue_.clear();
  }
  End(grpc::Status::CANCELLED);
}

void GnmiSession::OnDone() {
  const std::shared_ptr<GnmiSession> last = std::move(self_);
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

void GnmiSession::KeepUntilDone(std::shared_ptr<GnmiSession> self) {
  self_ = std::move(self);
  StartRead(&request_);
}

struct GnmiServer::Service final : ::gnmi::gNMI::CallbackService {
  explicit Service(Scripts with) : scripts(std::move(with)) {}

  // Waits for its client to give up.
  class Hanging final : public grpc::ServerUnaryReactor {
   public:
    explicit Hanging(Service& service) : service_(service) { service_.Hang(1); }
    void OnCancel() override { Finish(grpc::Status::CANCELLED); }
    void OnDone() override {
      service_.Hang(-1);
      delete this;
    }

   private:
    Service& service_;
  };

  grpc::ServerUnaryReactor* Capabilities(grpc::CallbackServerContext* context,
                                         const ::gnmi::CapabilityRequest* request,
                                         ::gnmi::CapabilityResponse* answer) override {
    return Answer(context, scripts.capabilities, *request, *answer);
  }
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context, const ::gnmi::GetRequest* request,
                                ::gnmi::GetResponse* answer) override {
    return Answer(context, scripts.get, *request, *answer);
  }
  grpc::ServerBidiReactor<::gnmi::SubscribeRequest, ::gnmi::SubscribeResponse>* Subscribe(
      grpc::CallbackServerContext* context) override {
    Note(*context);
    auto session = std::make_shared<GnmiSession>([this](GnmiSession& one) { Began(one); });
    {
      const std::lock_guard lock(mutex);
      all.emplace(session.get(), session);
    }
    session->KeepUntilDone(session);
    return session.get();
  }

  template <class ScriptOf, class Request, class AnswerOf>
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const ScriptOf& script,
                                   const Request& request, AnswerOf& answer) {
    Note(*context);
    auto status = script ? script(MetadataOf(*context), request, answer)
                         : grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no script");
    if (!status) return new Hanging(*this);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(*status);
    return reactor;
  }

  void Began(GnmiSession& session) {
    if (scripts.subscribed) return scripts.subscribed(session);
    const std::lock_guard lock(mutex);
    if (auto held = all[&session].lock()) begun.push_back(std::move(held));
    changed.notify_all();
  }
  void Note(const grpc::CallbackServerContext& context) {
    const std::lock_guard lock(mutex);
    metadata = MetadataOf(context);
  }
  void Hang(int by) {
    const std::lock_guard lock(mutex);
    hanging += by;
    changed.notify_all();
  }

  const Scripts scripts;
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::map<GnmiSession*, std::weak_ptr<GnmiSession>> all;
  std::deque<std::shared_ptr<GnmiSession>> begun;
  SentMetadata metadata;
  int hanging = 0;
};

struct GnmiServer::Raw final : grpc::CallbackGenericService {
  explicit Raw(std::string with) : bytes(std::move(with)) {}

  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Reactor(const std::string& bytes) {
      const grpc::Slice slice(bytes);
      answer_ = grpc::ByteBuffer(&slice, 1);
      StartRead(&request_);
    }
    void OnReadDone(bool ok) override {
      if (ok) StartWriteAndFinish(&answer_, {}, grpc::Status::OK);
      if (!ok) Finish(grpc::Status::CANCELLED);
    }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer request_, answer_;
  };
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    if (bytes.empty()) return grpc::CallbackGenericService::CreateReactor(context);  // UNIMPLEMENTED
    return new Reactor(bytes);
  }
  const std::string bytes;
};

GnmiServer::GnmiServer(Options options, Scripts scripts)
    : service_(std::make_unique<Service>(std::move(scripts))), raw_(std::make_unique<Raw>(options.raw)) {
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({options.certificate.key, options.certificate.certificate});
  if (!options.client_authority.empty()) {
    tls.pem_root_certs = options.client_authority;
    tls.client_certificate_request = GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  }
  grpc::ServerBuilder builder;
  builder.AddListeningPort(
      "127.0.0.1:" + std::to_string(options.port),
      options.plain ? grpc::InsecureServerCredentials() : grpc::SslServerCredentials(tls), &port_);
  builder.SetMaxSendMessageSize(-1);
  if (options.compress) builder.SetDefaultCompressionAlgorithm(GRPC_COMPRESS_GZIP);
  if (options.no_gnmi || !options.raw.empty()) {
    builder.RegisterCallbackGenericService(raw_.get());
  } else {
    builder.RegisterService(service_.get());
  }
  server_ = builder.BuildAndStart();
  CHECK(server_ != nullptr && port_ != 0);
}

GnmiServer::~GnmiServer() {
  server_->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));  // those that are open are cut
  server_->Wait();
}

std::shared_ptr<GnmiSession> GnmiServer::NextSession(std::chrono::milliseconds limit) {
  std::unique_lock lock(service_->mutex);
  if (!service_->changed.wait_for(lock, limit, [this] { return !service_->begun.empty(); })) return nullptr;
  auto session = std::move(service_->begun.front());
  service_->begun.pop_front();
  return session;
}

int GnmiServer::hanging() {
  const std::lock_guard lock(service_->mutex);
  return service_->hanging;
}

bool GnmiServer::WaitForHanging(int count, std::chrono::milliseconds limit) {
  std::unique_lock lock(service_->mutex);
  return service_->changed.wait_for(lock, limit, [&] { return service_->hanging == count; });
}

SentMetadata GnmiServer::metadata() {
  const std::lock_guard lock(service_->mutex);
  return service_->metadata;
}

}  // namespace heddle::test
