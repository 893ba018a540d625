#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "nodeagent/devices/device_plugin.grpc.pb.h"

namespace heddle::test {

// The kubelet's half of the device-plugin API over real sockets, as pkg/kubelet/cm/devicemanager of 1.36 goes about it:
// a start deletes all sockets of the folder, a registration is dialled back, its options are asked for, and its list is
// followed until the stream ends.
class KubeletDouble final : public v1beta1::Registration::Service {
 public:
  explicit KubeletDouble(std::filesystem::path folder) : folder_(std::move(folder)) {}
  ~KubeletDouble() override { Stop(); }

  void Start();
  void Stop();  // it goes away, and its socket with it
  void RefuseAll() { refuse_ = true; }

  // "mlx5_0", "mlx5_1!" where unhealthy, "mlx5_2@1" on NUMA node 1; of the last list. Waits for it up to a minute.
  bool WaitFor(const std::string& resource, const std::vector<std::string>& devices);
  // Until some list is that long.
  bool WaitForCount(const std::string& resource, std::size_t count);
  bool WaitForGone(const std::string& resource);  // nobody offers it any more
  bool WaitForRegistrations(const std::string& resource, int count);
  int registrations(const std::string& resource);

  std::vector<std::string> Prefer(const std::string& resource, const std::vector<std::string>& available,
                                  const std::vector<std::string>& must, int size);
  grpc::Status Allocate(const std::string& resource, const std::vector<std::string>& ids,
                        v1beta1::ContainerAllocateResponse& answer);

 private:
  struct Client {
    std::unique_ptr<v1beta1::DevicePlugin::Stub> stub;
    std::unique_ptr<grpc::ClientContext> context;
    std::vector<std::string> devices;
    bool listening = false;
  };

  grpc::Status Register(grpc::ServerContext*, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty*) override;
  void Follow(const std::string& resource, const std::shared_ptr<Client>& client);
  bool Wait(const std::function<bool()>& done);
  std::shared_ptr<Client> ClientOf(const std::string& resource);

  const std::filesystem::path folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Client>> clients_;  // by resource, the last that registered
  std::vector<std::shared_ptr<Client>> followed_;
  std::map<std::string, int> registrations_;
  std::vector<std::thread> threads_;
  std::unique_ptr<grpc::Server> server_;
  bool refuse_ = false;
};

}  // namespace heddle::test
