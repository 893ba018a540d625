#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace heddle::nodeagent {

// Whether pods may be given a port: closed while it is being set. What is in use stays in use.
// Thread rule: every member may be called from any thread.
class PortGate {
 public:
  PortGate() = default;
  PortGate(const PortGate&) = delete;
  PortGate& operator=(const PortGate&) = delete;
  virtual ~PortGate() = default;

  // `port`: "mlx5_0:1". Once it returns, the kubelet is on its way to know; again changes the reason only.
  virtual void Withdraw(const std::string& port, const std::string& reason) = 0;
  virtual void Restore(const std::string& port) = 0;
  virtual bool Withdrawn(const std::string& port) const = 0;
  // Why a withdrawn port may still be given to a pod, as a part of a sentence; empty = it is not.
  virtual std::string Leak() const { return {}; }
  // Pods that were given the port, "namespace/pod", sorted. Those that took it without being given it are not known.
  virtual std::vector<std::string> Holders(const std::string& /*port*/) const { return {}; }
};

// Where nobody here offers devices to the kubelet: only placement goes past the port.
class NoDeviceGate final : public PortGate {
 public:
  void Withdraw(const std::string& port, const std::string&) override {
    const std::lock_guard lock(mutex_);
    withdrawn_.insert(port);
  }
  void Restore(const std::string& port) override {
    const std::lock_guard lock(mutex_);
    withdrawn_.erase(port);
  }
  bool Withdrawn(const std::string& port) const override {
    const std::lock_guard lock(mutex_);
    return withdrawn_.contains(port);
  }
  std::string Leak() const override {
    return "this agent offers no devices to the kubelet, so only Heddle's placement goes past the port";
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> withdrawn_;
};

}  // namespace heddle::nodeagent
