// A device plugin of a bed: offers devices that are names only.
//
//   device_plugin FOLDER RESOURCE ID[@NUMA]...
//
// FOLDER is the kubelet's device-plugins. It registers with the kubelet there, and again with each one that comes
// after it, and writes a line for what happens: "registered", and "allocated ID ID" for each container.

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "nodeagent/devices/device_plugin.grpc.pb.h"

namespace {

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

class Plugin final : public v1beta1::DevicePlugin::Service {
 public:
  explicit Plugin(std::vector<std::string> devices) : devices_(std::move(devices)) {}

  void End() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  grpc::Status GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                      v1beta1::DevicePluginOptions*) override {
    return grpc::Status::OK;
  }

  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty*,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* out) override {
    v1beta1::ListAndWatchResponse all;
    for (const std::string& given : devices_) {
      v1beta1::Device* device = all.add_devices();
      const std::size_t at = given.find('@');
      device->set_id(given.substr(0, at));
      device->set_health("Healthy");
      if (at != std::string::npos) device->mutable_topology()->add_nodes()->set_id(std::atoi(&given[at + 1]));
    }
    out->Write(all);
    std::unique_lock lock(mutex_);
    // The kubelet keeps the stream; its end is the end of the devices.
    while (!ended_ && !context->IsCancelled()) changed_.wait_for(lock, std::chrono::milliseconds(200));
    return grpc::Status::OK;
  }

  grpc::Status Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* answer) override {
    for (const auto& container : request->container_requests()) {
      std::vector<std::string> ids(container.devices_ids().begin(), container.devices_ids().end());
      std::sort(ids.begin(), ids.end());
      Say(fmt::format("allocated {}", fmt::join(ids, " ")));
      auto* response = answer->add_container_responses();
      (*response->mutable_envs())["BED_DEVICES"] = fmt::format("{}", fmt::join(ids, ","));
    }
    return grpc::Status::OK;
  }

 private:
  const std::vector<std::string> devices_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
};

// Serves one kubelet: a new one deletes all sockets in its folder first.
class Registered {
 public:
  Registered(const std::filesystem::path& folder, const std::string& resource,
             std::vector<std::string> devices)
      : plugin_(std::move(devices)) {
    std::string endpoint = resource + ".sock";
    std::replace(endpoint.begin(), endpoint.end(), '/', '-');
    std::filesystem::remove(folder / endpoint);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + (folder / endpoint).string(), grpc::InsecureServerCredentials());
    builder.RegisterService(&plugin_);
    server_ = builder.BuildAndStart();
    grpc::ChannelArguments arguments;
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");  // Go's server takes no path for a host
    const auto stub = v1beta1::Registration::NewStub(grpc::CreateCustomChannel(
        "unix:" + (folder / "kubelet.sock").string(), grpc::InsecureChannelCredentials(), arguments));
    v1beta1::RegisterRequest request;
    request.set_version("v1beta1");
    request.set_endpoint(endpoint);
    request.set_resource_name(resource);
    grpc::ClientContext context;
    // The socket is there before the kubelet answers on it.
    context.set_wait_for_ready(true);
    context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(30, GPR_TIMESPAN)));
    v1beta1::Empty answer;
    const grpc::Status status = stub->Register(&context, request, &answer);
    Say(status.ok() ? "registered" : fmt::format("not registered: {}", status.error_message()));
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
  ~Registered() {
    plugin_.End();
    if (server_) server_->Shutdown();
  }

 private:
  Plugin plugin_;
  std::unique_ptr<grpc::Server> server_;
};

// Until somebody makes `name` in the folder that is watched.
void WaitFor(int watch, std::string_view name) {
  alignas(inotify_event) std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t size = ::read(watch, buffer.data(), buffer.size());
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      if (event->len > 0 && name == event->name) return;
      at += ssize_t(sizeof(inotify_event)) + event->len;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: device_plugin FOLDER RESOURCE ID[@NUMA]...\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const std::vector<std::string> devices(argv + 3, argv + argc);
  const int watch = ::inotify_init1(IN_CLOEXEC);
  if (watch < 0 || ::inotify_add_watch(watch, folder.c_str(), IN_CREATE) < 0) {
    std::perror(folder.c_str());
    return 1;
  }
  if (!std::filesystem::exists(folder / "kubelet.sock")) WaitFor(watch, "kubelet.sock");
  for (;;) {
    const Registered registered(folder, argv[2], devices);
    WaitFor(watch, "kubelet.sock");
  }
}
