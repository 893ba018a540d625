#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "topology/node.h"

namespace heddle::topology {
namespace {

class NodeCheck {
 public:
  explicit NodeCheck(const Node& node) : node_(node) {}

  std::vector<std::string> Run() && {
    if (node_.name.empty()) Say("the node has no name");
    if (node_.numa_nodes < 0) Say("numa_nodes is {}: must not be negative", node_.numa_nodes);
    CheckGpus();
    CheckNvlink();
    CheckNics();
    CheckLeafPorts();
    CheckPaths();
    return std::move(faults_);
  }

 private:
  template <class... Args>
  void Say(fmt::format_string<Args...> format, Args&&... args) {
    faults_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void CheckGpus() {
    std::set<std::string_view> uuids, addresses;
    int previous = -1;
    for (const Gpu& gpu : node_.gpus) {
      if (gpu.index < 0) Say("GPU index {} is negative", gpu.index);
      if (!gpus_.insert(gpu.index).second) Say("GPU {} is there twice", gpu.index);
      if (gpu.index < previous) {
        Say("GPU {} stands after GPU {}: must be sorted by index", gpu.index, previous);
      }
      previous = gpu.index;
      if (!gpu.uuid.empty() && !uuids.insert(gpu.uuid).second) Say("two GPUs have the UUID {}", gpu.uuid);
      if (!gpu.pci.empty() && !addresses.insert(gpu.pci).second) Say("two GPUs are at {}", gpu.pci);
      if (gpu.memory_gib < 0) Say("GPU {} has {} GiB of memory", gpu.index, gpu.memory_gib);
      if (!gpu.healthy && gpu.unhealthy_reason.empty()) {
        Say("GPU {} is unhealthy without a reason", gpu.index);
      }
      if (gpu.healthy && !gpu.unhealthy_reason.empty()) {
        Say("GPU {} is healthy and has a reason why not: {}", gpu.index, gpu.unhealthy_reason);
      }
      if (gpu.nic_gone && (gpu.nic_gone->rail < 0 || gpu.nic_gone->rail > kMaxRail)) {
        Say("GPU {} has lost a NIC on rail {}: rails are 0 to {}", gpu.index, gpu.nic_gone->rail, kMaxRail);
      }
    }
  }

  void CheckNvlink() {
    const NvLink& nvlink = node_.nvlink;
    if (nvlink.generation < 0 || nvlink.links_per_gpu < 0 || nvlink.gbps_per_gpu < 0) {
      Say("NVLink has a negative number");
    }
    int previous = -1;
    for (const NvLink::Exception& exception : nvlink.exceptions) {
      if (!gpus_.contains(exception.gpu)) {
        Say("NVLink exception for GPU {}, which is not there", exception.gpu);
      }
      if (exception.gpu <= previous) {
        Say("NVLink exceptions are not sorted by GPU or double at {}", exception.gpu);
      }
      previous = exception.gpu;
      if (exception.links_up < 0 || exception.links_up > nvlink.links_per_gpu) {
        Say("GPU {} has {} of {} NVLinks", exception.gpu, exception.links_up, nvlink.links_per_gpu);
      }
      if (exception.usable_gbps &&
          (*exception.usable_gbps < 0 || *exception.usable_gbps > nvlink.gbps_per_gpu)) {
        Say("GPU {} counts for {} of {} Gb/s over NVLink", exception.gpu, *exception.usable_gbps,
            nvlink.gbps_per_gpu);
      }
    }
    if (node_.nvlink_domain && node_.nvlink_domain->id.empty()) Say("the NVLink domain has no id");
  }

  void CheckNics() {
    std::set<std::string_view> names;
    std::string_view previous;
    for (const Nic& nic : node_.nics) {
      if (nic.name.empty()) Say("a NIC has no name");
      if (!names.insert(nic.name).second) Say("NIC {} is there twice", nic.name);
      if (nic.name < previous) Say("NIC {} stands after {}: must be sorted by name", nic.name, previous);
      previous = nic.name;
      if (nic.rail && (*nic.rail < 0 || *nic.rail > kMaxRail)) Say("{} is on rail {}", nic.name, *nic.rail);
      if (nic.mtu < 0) Say("{} has an MTU of {}", nic.name, nic.mtu);
      if (nic.ports.empty()) Say("{} has no port", nic.name);
      CheckPorts(nic);
    }
  }

  void CheckPorts(const Nic& nic) {
    int previous = -1;
    for (const NicPort& port : nic.ports) {
      if (port.number <= previous) Say("{} port {} is doubled or out of order", nic.name, port.number);
      previous = port.number;
      if (port.plane < 0 || port.plane > kMaxPlane) {
        Say("{} port {} is on plane {}", nic.name, port.number, port.plane);
      }
      if (port.rdma_mtu < 0) Say("{} port {} has an RDMA MTU of {}", nic.name, port.number, port.rdma_mtu);
      if (port.gid_index.value_or(0) < 0) {
        Say("{} port {} has GID index {}", nic.name, port.number, *port.gid_index);
      }
      if (port.rate_gbps < 0 || port.usable_gbps < 0) {
        Say("{} port {} has a negative rate: {} Gb/s, usable {}", nic.name, port.number, port.rate_gbps,
            port.usable_gbps);
      }
      if (port.rate_gbps > 0 && port.usable_gbps > port.rate_gbps) {
        Say("{} port {} has {} Gb/s usable of {}", nic.name, port.number, port.usable_gbps, port.rate_gbps);
      }
      if (port.state == LinkState::kDown && port.usable_gbps > 0) {
        Say("{} port {} is down and has {} Gb/s usable", nic.name, port.number, port.usable_gbps);
      }
      if ((port.fault == LinkFault::kNone) != port.reason.empty()) {
        Say("{} port {} has {} fault and {} reason", nic.name, port.number,
            port.fault == LinkFault::kNone ? "no" : "a", port.reason.empty() ? "no" : "a");
      }
      if (port.leaf_port && port.leaf_port->leaf.empty()) {
        Say("{} port {} has a leaf without name", nic.name, port.number);
      }
    }
  }

  // One cable has two ends: two of our ports on one port of a leaf is a contradiction. A leaf port without a
  // name says nothing.
  void CheckLeafPorts() {
    std::map<std::pair<std::string_view, std::string_view>, std::string> seen;  // by leaf and port
    for (const Nic& nic : node_.nics) {
      for (const NicPort& port : nic.ports) {
        if (!port.leaf_port || port.leaf_port->port.empty()) continue;
        const std::string here = fmt::format("{} port {}", nic.name, port.number);
        const auto [other, fresh] = seen.try_emplace({port.leaf_port->leaf, port.leaf_port->port}, here);
        if (fresh) continue;
        Say("{} and {} are both on {} port {}", other->second, here, port.leaf_port->leaf,
            port.leaf_port->port);
      }
    }
  }

  void CheckPaths() {
    std::tuple<int, PciDistance, std::string_view> previous{-1, PciDistance::kPix, ""};
    std::set<std::pair<int, std::string_view>> pairs;
    for (const GpuNicPath& path : node_.paths) {
      if (!gpus_.contains(path.gpu)) Say("a path leads from GPU {}, which is not there", path.gpu);
      if (node_.FindNic(path.nic) == nullptr) {
        Say("a path leads from GPU {} to {}, which is not there", path.gpu, path.nic);
      }
      if (!pairs.emplace(path.gpu, path.nic).second) {
        Say("two paths lead from GPU {} to {}", path.gpu, path.nic);
      }
      const std::tuple<int, PciDistance, std::string_view> key{path.gpu, path.distance, path.nic};
      if (key < previous) Say("the path of GPU {} to {} is out of order", path.gpu, path.nic);
      previous = key;
    }
  }

  const Node& node_;
  std::set<int> gpus_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> Check(const Node& node) {
  return NodeCheck(node).Run();
}

}  // namespace heddle::topology
