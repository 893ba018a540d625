#include "nodeagent/devices/endpoint.h"

#include <fmt/format.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <set>
#include <stop_token>
#include <utility>

#include "formats/printable.h"
#include "nodeagent/devices/device_plugin.grpc.pb.h"
#include "nodeagent/grants/connect.h"

namespace heddle::nodeagent {
namespace {

constexpr std::size_t kMaxIds = 65536;  // in one question; we offer 64 resources of some thousand ids at most

v1beta1::ListAndWatchResponse ListOf(const Offer& offer) {
  v1beta1::ListAndWatchResponse list;
  for (const OfferedDevice& device : offer.devices) {
    for (const std::string& id : IdsOf(offer, device)) {
      v1beta1::Device* to = list.add_devices();
      to->set_id(id);
      to->set_health(device.trouble.empty() ? "Healthy" : "Unhealthy");
      if (device.numa) to->mutable_topology()->add_nodes()->set_id(*device.numa);
    }
  }
  return list;
}

void Fill(const ContainerGift& gift, v1beta1::ContainerAllocateResponse& to) {
  for (const auto& [name, value] : gift.variables) (*to.mutable_envs())[name] = value;
  for (const auto& [inside, outside] : gift.folders) {
    v1beta1::Mount* mount = to.add_mounts();
    mount->set_container_path(inside);
    mount->set_host_path(outside);
    mount->set_read_only(true);
  }
  for (const auto& [inside, outside] : gift.devices) {
    v1beta1::DeviceSpec* device = to.add_devices();
    device->set_container_path(inside);
    device->set_host_path(outside);
    device->set_permissions("rw");
  }
  for (const std::string& name : gift.cdi) to.add_cdi_devices()->set_name(name);
}

}  // namespace

// Lives until the last call has ended.
struct Endpoint::State final : v1beta1::DevicePlugin::CallbackService {
  using Empty = v1beta1::Empty;
  using List = v1beta1::ListAndWatchResponse;

  // One kubelet that listens. Deletes itself when its call has ended.
  class Stream final : public grpc::ServerWriteReactor<List> {
   public:
    explicit Stream(State& state) : state_(state) { state_.Began(this); }
    void OnWriteDone(bool ok) override { state_.Wrote(this, ok); }
    void OnCancel() override { state_.Ended(this); }
    void OnDone() override {
      state_.Gone(this);
      delete this;
    }

    // Under the state's lock.
    List list;
    std::uint64_t sent = 0;  // version
    bool writing = false, ended = false;

   private:
    State& state_;
  };

  grpc::ServerUnaryReactor* GetDevicePluginOptions(grpc::CallbackServerContext* context, const Empty*,
                                                   v1beta1::DevicePluginOptions* options) override {
    options->set_get_preferred_allocation_available(true);
    return Answer(context, grpc::Status::OK);
  }

  grpc::ServerWriteReactor<List>* ListAndWatch(grpc::CallbackServerContext*, const Empty*) override {
    return new Stream(*this);
  }

  grpc::ServerUnaryReactor* GetPreferredAllocation(grpc::CallbackServerContext* context,
                                                   const v1beta1::PreferredAllocationRequest* request,
                                                   v1beta1::PreferredAllocationResponse* answer) override {
    const Offer now = Current();
    for (const auto& container : request->container_requests()) {
      auto* to = answer->add_container_responses();
      if (std::size_t(container.available_deviceids_size()) > kMaxIds) continue;
      PreferenceQuestion question;
      question.available.assign(container.available_deviceids().begin(),
                                container.available_deviceids().end());
      question.must_include.assign(container.must_include_deviceids().begin(),
                                   container.must_include_deviceids().end());
      question.size = container.allocation_size();
      // Never an error: the kubelet would fail the pod for good.
      if (!callbacks.prefer) continue;
      for (std::string& id : callbacks.prefer(now, question)) to->add_deviceids(std::move(id));
    }
    return Answer(context, grpc::Status::OK);
  }

  grpc::ServerUnaryReactor* Allocate(grpc::CallbackServerContext* context,
                                     const v1beta1::AllocateRequest* request,
                                     v1beta1::AllocateResponse* answer) override {
    const Offer now = Current();
    for (const auto& container : request->container_requests()) {
      const std::vector<std::string> ids(container.devices_ids().begin(), container.devices_ids().end());
      const auto gift = nodeagent::Allocate(now, ids);
      if (!gift) {
        Say(fmt::format("Could not allocate resource={} why=\"{}\"", now.resource,
                        formats::Printable(gift.error().message, 300)));
        return Answer(context, {grpc::StatusCode::NOT_FOUND, gift.error().message});
      }
      Fill(*gift, *answer->add_container_responses());
    }
    return Answer(context, grpc::Status::OK);
  }

  static grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, grpc::Status status) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(std::move(status));
    return reactor;
  }

  Offer Current() {
    const std::lock_guard lock(mutex);
    return offer;
  }
  void Say(const std::string& line) const {
    if (callbacks.log) callbacks.log(line);
  }
  void Told() const {
    if (callbacks.on_stream) callbacks.on_stream();
  }

  // Under the lock: begins to write where there is something new and nothing is under way.
  void Push(Stream& stream) {
    if (stream.writing || stream.ended || stream.sent == version) return;
    stream.list = list;
    stream.sent = version;
    stream.writing = true;
    stream.StartWrite(&stream.list);
  }
  void Began(Stream* stream) {
    const std::lock_guard lock(mutex);
    streams.insert(stream);
    ++begun;
    if (ending) {
      End(*stream);
    } else {
      Push(*stream);
    }
    Told();
  }
  void Wrote(Stream* stream, bool ok) {
    const std::lock_guard lock(mutex);
    stream->writing = false;
    if (ok) {
      Push(*stream);
    } else {
      End(*stream);
    }
  }
  void Ended(Stream* stream) {
    const std::lock_guard lock(mutex);
    End(*stream);
  }
  // Under the lock. Finish is called once only.
  static void End(Stream& stream) {
    if (!std::exchange(stream.ended, true)) stream.Finish(grpc::Status::OK);
  }
  void Gone(Stream* stream) {
    const std::lock_guard lock(mutex);
    streams.erase(stream);
    Told();
    gone.notify_all();  // last: nothing of this is there any more after it
  }

  EndpointCallbacks callbacks;
  std::mutex mutex;  // guards what follows
  std::condition_variable gone;
  Offer offer;
  List list;                  // of the offer
  std::uint64_t version = 1;  // of the list
  std::set<Stream*> streams;
  std::uint64_t begun = 0;
  bool ending = false;
  std::unique_ptr<grpc::Server> server;  // set once, before anybody calls
};

Endpoint::Endpoint(std::shared_ptr<State> state) : state_(std::move(state)) {}

base::Result<std::unique_ptr<Endpoint>> Endpoint::Open(const std::string& socket, Offer offer,
                                                       EndpointCallbacks callbacks) {
  if (socket.size() > kMaxSocketPath)
    return base::Fail(base::Code::kUnavailable,
                      fmt::format("{}: the path of a socket has {} bytes at most", socket, kMaxSocketPath));
  auto state = std::make_shared<State>();
  state->callbacks = std::move(callbacks);
  state->list = ListOf(offer);
  state->offer = std::move(offer);
  std::error_code ignored;
  std::filesystem::remove(socket, ignored);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(state.get());
  builder.SetMaxReceiveMessageSize(4 << 20);
  state->server = builder.BuildAndStart();
  if (!state->server || !std::filesystem::exists(socket))
    return base::Fail(base::Code::kUnavailable,
                      fmt::format("{} cannot be made: is its folder mounted to be written?", socket));
  return std::unique_ptr<Endpoint>(new Endpoint(std::move(state)));
}

Endpoint::~Endpoint() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
    for (State::Stream* stream : state_->streams) State::End(*stream);
  }
  state_->server->Shutdown(
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(1, GPR_TIMESPAN)));
  state_->server->Wait();
  std::unique_lock lock(state_->mutex);
  state_->gone.wait(lock, [this] { return state_->streams.empty(); });
}

void Endpoint::Update(Offer offer) {
  const std::lock_guard lock(state_->mutex);
  v1beta1::ListAndWatchResponse list = ListOf(offer);
  state_->offer = std::move(offer);
  if (list.SerializeAsString() == state_->list.SerializeAsString()) return;
  state_->list = std::move(list);
  ++state_->version;
  for (State::Stream* stream : state_->streams) state_->Push(*stream);
}

int Endpoint::streams() const {
  const std::lock_guard lock(state_->mutex);
  return int(state_->streams.size());
}

std::uint64_t Endpoint::streams_begun() const {
  const std::lock_guard lock(state_->mutex);
  return state_->begun;
}

base::Status Register(const Registration& registration, std::stop_token stop) {
  const int descriptor = ConnectUnix(registration.kubelet_socket);
  if (descriptor < 0) {
    return base::Fail(base::Code::kUnavailable,
                      fmt::format("no kubelet listens on {}: {}", registration.kubelet_socket,
                                  std::error_code(errno, std::generic_category()).message()));
  }
  const auto channel =
      grpc::CreateCustomInsecureChannelFromFd("localhost", descriptor, grpc::ChannelArguments());
  const auto stub = v1beta1::Registration::NewStub(channel);
  v1beta1::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint(registration.endpoint);
  request.set_resource_name(registration.resource);
  request.mutable_options()->set_get_preferred_allocation_available(true);
  grpc::ClientContext context;
  context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                    gpr_time_from_millis(registration.deadline_ms, GPR_TIMESPAN)));
  const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
  v1beta1::Empty answer;
  const grpc::Status status = stub->Register(&context, request, &answer);
  if (status.ok()) return {};
  const bool silent = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
                      status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                      status.error_code() == grpc::StatusCode::CANCELLED;
  return base::Fail(silent ? base::Code::kUnavailable : base::Code::kInvalid,
                    fmt::format("the kubelet does not take {}: {}", registration.resource,
                                formats::Printable(status.error_message(), 300)));
}

}  // namespace heddle::nodeagent
