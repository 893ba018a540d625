#include "devices/kubelet_double.h"

#include <chrono>

namespace heddle::test {

void KubeletDouble::Start() {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (entry.is_socket()) std::filesystem::remove(entry.path());
  }
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + (folder_ / "kubelet.sock").string(), grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

void KubeletDouble::Stop() {
  if (server_) server_->Shutdown();
  server_.reset();
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    // All of them: one that registered twice is followed twice.
    for (const auto& client : followed_) client->context->TryCancel();
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  const std::lock_guard lock(mutex_);
  clients_.clear();
  followed_.clear();
}

grpc::Status KubeletDouble::Register(grpc::ServerContext*, const v1beta1::RegisterRequest* request,
                                     v1beta1::Empty*) {
  if (refuse_ || request->version() != "v1beta1")
    return {grpc::StatusCode::UNKNOWN, "requested API version is not supported"};
  auto client = std::make_shared<Client>();
  client->stub = v1beta1::DevicePlugin::NewStub(grpc::CreateChannel(
      "unix:" + (folder_ / request->endpoint()).string(), grpc::InsecureChannelCredentials()));
  client->context = std::make_unique<grpc::ClientContext>();
  grpc::ClientContext context;
  v1beta1::DevicePluginOptions options;
  const grpc::Status asked = client->stub->GetDevicePluginOptions(&context, v1beta1::Empty(), &options);
  if (!asked.ok()) return asked;
  if (!options.get_preferred_allocation_available()) return {grpc::StatusCode::INTERNAL, "no preference"};
  const std::lock_guard lock(mutex_);
  ++registrations_[request->resource_name()];
  clients_[request->resource_name()] = client;
  followed_.push_back(client);
  threads_.emplace_back([this, resource = request->resource_name(), client] { Follow(resource, client); });
  return grpc::Status::OK;
}

void KubeletDouble::Follow(const std::string& resource, const std::shared_ptr<Client>& client) {
  const auto stream = client->stub->ListAndWatch(client->context.get(), v1beta1::Empty());
  v1beta1::ListAndWatchResponse list;
  while (stream->Read(&list)) {
    const std::lock_guard lock(mutex_);
    client->devices.clear();
    client->listening = true;
    for (const v1beta1::Device& device : list.devices()) {
      std::string name = device.id();
      if (device.health() != "Healthy") name += "!";
      for (const auto& node : device.topology().nodes()) name += "@" + std::to_string(node.id());
      client->devices.push_back(name);
    }
    changed_.notify_all();
  }
  (void)stream->Finish();
  const std::lock_guard lock(mutex_);
  client->listening = false;
  // As the real one: whoever has the name now is disconnected.
  if (const auto now = clients_.find(resource); now != clients_.end() && now->second != client)
    now->second->context->TryCancel();
  changed_.notify_all();
}

bool KubeletDouble::Wait(const std::function<bool()>& done) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::minutes(1), done);
}

bool KubeletDouble::WaitFor(const std::string& resource, const std::vector<std::string>& devices) {
  return Wait([&] {
    const auto found = clients_.find(resource);
    return found != clients_.end() && found->second->listening && found->second->devices == devices;
  });
}

bool KubeletDouble::WaitForCount(const std::string& resource, std::size_t count) {
  return Wait([&] {
    const auto found = clients_.find(resource);
    return found != clients_.end() && found->second->listening && found->second->devices.size() == count;
  });
}

bool KubeletDouble::WaitForGone(const std::string& resource) {
  return Wait([&] {
    const auto found = clients_.find(resource);
    return found == clients_.end() || !found->second->listening;
  });
}

bool KubeletDouble::WaitForRegistrations(const std::string& resource, int count) {
  return Wait([&] { return registrations_[resource] >= count && clients_.at(resource)->listening; });
}

int KubeletDouble::registrations(const std::string& resource) {
  const std::lock_guard lock(mutex_);
  return registrations_[resource];
}

std::shared_ptr<KubeletDouble::Client> KubeletDouble::ClientOf(const std::string& resource) {
  const std::lock_guard lock(mutex_);
  const auto found = clients_.find(resource);
  return found == clients_.end() ? nullptr : found->second;
}

std::vector<std::string> KubeletDouble::Prefer(const std::string& resource,
                                               const std::vector<std::string>& available,
                                               const std::vector<std::string>& must, int size) {
  const auto client = ClientOf(resource);
  if (!client) return {"nobody offers it"};
  v1beta1::PreferredAllocationRequest request;
  auto* container = request.add_container_requests();
  for (const std::string& id : available) container->add_available_deviceids(id);
  for (const std::string& id : must) container->add_must_include_deviceids(id);
  container->set_allocation_size(size);
  grpc::ClientContext context;
  v1beta1::PreferredAllocationResponse answer;
  const grpc::Status status = client->stub->GetPreferredAllocation(&context, request, &answer);
  if (!status.ok() || answer.container_responses_size() != 1) return {"failed: " + status.error_message()};
  return {answer.container_responses(0).deviceids().begin(), answer.container_responses(0).deviceids().end()};
}

grpc::Status KubeletDouble::Allocate(const std::string& resource, const std::vector<std::string>& ids,
                                     v1beta1::ContainerAllocateResponse& answer) {
  const auto client = ClientOf(resource);
  if (!client) return {grpc::StatusCode::UNAVAILABLE, "nobody offers it"};
  v1beta1::AllocateRequest request;
  auto* container = request.add_container_requests();
  for (const std::string& id : ids) container->add_devices_ids(id);
  grpc::ClientContext context;
  v1beta1::AllocateResponse all;
  grpc::Status status = client->stub->Allocate(&context, request, &all);
  if (status.ok()) answer = all.container_responses(0);
  return status;
}

}  // namespace heddle::test
