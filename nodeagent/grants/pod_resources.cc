#include "nodeagent/grants/pod_resources.h"

#include <fmt/format.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "formats/printable.h"
#include "nodeagent/grants/connect.h"
#include "nodeagent/grants/pod_resources.grpc.pb.h"

namespace heddle::nodeagent {
namespace {

// The longest that the API server takes: namespaces and containers are labels, pods are DNS names, resources
// qualified names, device ids of a plugin 63 bytes; those of DRA drivers are labels as well.
constexpr std::size_t kMaxText = 253;
// In one answer; a kubelet has 110 pods by default, and rdma plugins count up to 1000 slots.
constexpr std::size_t kMaxContainers = 8192;
constexpr std::size_t kMaxIds = 65536;

GrantReadings Failed(GrantsState state, std::string problem) {
  GrantReadings readings;
  readings.state = state;
  readings.problem = std::move(problem);
  return readings;
}

// Why a socket does not open, and what to do about it.
GrantReadings NotConnected(int error, const std::string& socket) {
  const std::string what = std::error_code(error, std::generic_category()).message();
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return Failed(
          GrantsState::kNoSocket,
          fmt::format("{}: no such socket: no kubelet runs here, or its folder is not mounted", socket));
    case ECONNREFUSED:
      return Failed(GrantsState::kNoSocket, fmt::format("{}: no kubelet listens there", socket));
    case EACCES:
    case EPERM:
      return Failed(GrantsState::kForbidden,
                    fmt::format("{}: {}; it opens to root only, so run this as user 0", socket, what));
    case ENAMETOOLONG:
      return Failed(GrantsState::kNoSocket,
                    fmt::format("{}: the path of a socket has 107 bytes at most", socket));
    default:
      return Failed(GrantsState::kNoAnswer, fmt::format("{}: {}", socket, what));
  }
}

std::string Text(const std::string& bytes) {
  return formats::Printable(bytes, kMaxText);
}

void Add(const v1::ContainerDevices& from, std::vector<DeviceSet>& to, std::size_t& ids) {
  DeviceSet set{Text(from.resource_name()), false, {}};
  for (const std::string& id : from.device_ids()) {
    if (++ids > kMaxIds) break;
    set.ids.push_back(Text(id));
  }
  to.push_back(std::move(set));
}

void Take(const v1::ListPodResourcesResponse& answer, GrantReadings& readings) {
  std::size_t ids = 0;
  for (const v1::PodResources& pod : answer.pod_resources()) {
    for (const v1::ContainerResources& container : pod.containers()) {
      ContainerDevices to{Text(pod.namespace_()), Text(pod.name()), Text(container.name()), {}};
      for (const v1::ContainerDevices& devices : container.devices()) Add(devices, to.devices, ids);
      for (const v1::DynamicResource& claim : container.dynamic_resources()) {
        for (const v1::ClaimResource& device : claim.claim_resources()) {
          if (++ids <= kMaxIds)
            to.devices.push_back({Text(device.driver_name()), true, {Text(device.device_name())}});
        }
      }
      if (to.devices.empty()) continue;
      if (readings.containers.size() == kMaxContainers || ids > kMaxIds) {
        readings.state = GrantsState::kNoAnswer;
        readings.problem =
            fmt::format("the kubelet lists more than {} containers or {} devices", kMaxContainers, kMaxIds);
        readings.containers.clear();
        return;
      }
      readings.containers.push_back(std::move(to));
    }
  }
}

// One connection and the calls over it.
class Call {
 public:
  Call(int descriptor, const PodResourcesOptions& options, std::stop_token stop)
      : options_(options), stop_(std::move(stop)) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(options.max_message);
    channel_ = grpc::CreateCustomInsecureChannelFromFd("kubelet", descriptor, arguments);
    stub_ = v1::PodResourcesLister::NewStub(channel_);
    until_ = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                          gpr_time_from_millis(options.deadline.count(), GPR_TIMESPAN));
  }

  template <class Method, class Request, class Answer>
  grpc::Status operator()(Method method, const Request& request, Answer& answer) {
    grpc::ClientContext context;
    context.set_deadline(until_);
    const std::stop_callback cancel(stop_, [&context] { context.TryCancel(); });
    return (stub_.get()->*method)(&context, request, &answer);
  }

  // What a call that failed comes to.
  GrantReadings Refused(const grpc::Status& status) const {
    const std::string said = formats::Printable(status.error_message(), 200);
    switch (status.error_code()) {
      case grpc::StatusCode::UNIMPLEMENTED:
        return Failed(GrantsState::kTooOld,
                      "the kubelet has no pod-resources API v1; it is in Kubernetes 1.20 and later");
      case grpc::StatusCode::PERMISSION_DENIED:
      case grpc::StatusCode::UNAUTHENTICATED:
        return Failed(GrantsState::kForbidden, fmt::format("the kubelet refuses to list devices: {}", said));
      case grpc::StatusCode::DEADLINE_EXCEEDED:
        return Failed(GrantsState::kNoAnswer,
                      fmt::format("the kubelet does not say within {} s which devices it gave",
                                  double(options_.deadline.count()) / 1000));
      case grpc::StatusCode::CANCELLED:
        if (stop_.stop_requested()) return Failed(GrantsState::kNoAnswer, "stopped");
        [[fallthrough]];
      default:
        return Failed(GrantsState::kNoAnswer,
                      fmt::format("the kubelet does not say which devices it gave: {}", said));
    }
  }

 private:
  const PodResourcesOptions& options_;
  const std::stop_token stop_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::PodResourcesLister::Stub> stub_;
  gpr_timespec until_{};
};

}  // namespace

GrantReadings PodResources::Read(std::stop_token stop) {
  const int descriptor = ConnectUnix(options_.socket);
  if (descriptor < 0) return NotConnected(errno, options_.socket);
  Call call(descriptor, options_, std::move(stop));  // which closes it
  GrantReadings readings;
  readings.state = GrantsState::kRead;
  v1::ListPodResourcesResponse given;
  const grpc::Status listed = call(&v1::PodResourcesLister::Stub::List, v1::ListPodResourcesRequest(), given);
  if (!listed.ok()) return call.Refused(listed);
  Take(given, readings);
  if (readings.state != GrantsState::kRead) return readings;
  v1::AllocatableResourcesResponse all;
  // Older kubelets do not have it, or switched off: then the rest stands for itself.
  if (call(&v1::PodResourcesLister::Stub::GetAllocatableResources, v1::AllocatableResourcesRequest(), all)
          .ok()) {
    std::size_t ids = 0;
    readings.allocatable.emplace();
    for (const v1::ContainerDevices& devices : all.devices()) Add(devices, *readings.allocatable, ids);
    if (ids > kMaxIds) readings.allocatable.reset();  // half a list would say that devices are kept back
  }
  Sort(readings);
  FindFunctions(files_, readings);
  return readings;
}

GrantReadings GrantsOfAnswer(std::string_view message) {
  v1::ListPodResourcesResponse given;
  if (message.size() > std::size_t(PodResourcesOptions().max_message) ||
      !given.ParseFromArray(message.data(), int(message.size())))
    return Failed(GrantsState::kNoAnswer, "the kubelet's answer is no list of pods");
  GrantReadings readings;
  readings.state = GrantsState::kRead;
  Take(given, readings);
  Sort(readings);
  return readings;
}

GrantReadings ReadOnce(GrantSource* kubelet, bool named, const std::stop_token& stop) {
  if (kubelet == nullptr) return {};
  GrantReadings readings = kubelet->Read(stop);
  return !named && readings.state == GrantsState::kNoSocket ? GrantReadings() : readings;
}

std::unique_ptr<GrantSource> OpenKubelet(const base::FileTree& files, const std::string& socket,
                                         std::chrono::milliseconds deadline) {
  if (socket.empty()) return nullptr;
  PodResourcesOptions options;
  options.socket = socket;
  options.deadline = deadline;
  return std::make_unique<PodResources>(files, std::move(options));
}

}  // namespace heddle::nodeagent
