#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "topology/node.h"

namespace heddle::topology {
namespace {

template <class T>
std::string Show(const Fact<T>& fact);

std::string Show(int value) {
  return fmt::format("{}", value);
}
std::string Show(const std::string& value) {
  return value.empty() ? "none" : value;
}
std::string Show(bool on) {
  return on ? "on" : "off";
}
std::string Show(const std::optional<int>& value) {
  return value ? Show(*value) : "none";
}
std::string Show(const std::optional<LostNic>& gone) {
  if (!gone) return "none";
  return fmt::format("{} on rail {}", gone->pci.empty() ? "one" : gone->pci, gone->rail);
}
std::string Show(LinkState state) {
  return std::string(LinkStateName(state));
}
std::string Show(LinkFault fault) {
  return std::string(LinkFaultName(fault));
}
std::string Show(Transport transport) {
  return std::string(TransportName(transport));
}
std::string Show(NicRole role) {
  return std::string(NicRoleName(role));
}
std::string Show(const LeafPort& leaf_port) {
  const std::string end = fmt::format("{} port {}", leaf_port.leaf, leaf_port.port);
  return leaf_port.chassis_id.empty() ? end : fmt::format("{} of chassis {}", end, leaf_port.chassis_id);
}
std::string Show(const NvlinkMembership& membership) {
  return fmt::format("{}{}", membership.id, membership.spans_nodes ? " over nodes" : "");
}
template <class T>
std::string Show(const Fact<T>& fact) {
  return fact.known() ? Show(*fact) : std::string(MissingName(fact.missing()));
}

// Collects the sentences. Things are matched by key (GPU index, NIC name, port number), so that an insertion
// in front does not read as a change of all that follows.
class NodeDiff {
 public:
  std::vector<std::string> Run(const Node& before, const Node& after) && {
    Changed("name", before.name, after.name);
    Changed("machine", before.machine, after.machine);
    Changed("site", before.site, after.site);
    Changed("NUMA nodes", before.numa_nodes, after.numa_nodes);
    Matched(
        before.gpus, after.gpus, [](const Gpu& gpu) { return gpu.index; },
        [](int index) { return fmt::format("GPU {}", index); },
        [this](const std::string& what, const Gpu& a, const Gpu& b) { DiffGpu(what, a, b); });
    Matched(
        before.nvswitches, after.nvswitches, [](const NvSwitch& nvswitch) { return nvswitch.pci; },
        [](const std::string& pci) { return fmt::format("NVSwitch {}", pci); },
        [](const std::string&, const NvSwitch&, const NvSwitch&) {});
    DiffNvlink(before.nvlink, after.nvlink);
    Changed("NVLink domain", before.nvlink_domain, after.nvlink_domain);
    Matched(
        before.nics, after.nics, [](const Nic& nic) { return nic.name; },
        [](const std::string& name) { return name; },
        [this](const std::string& what, const Nic& a, const Nic& b) { DiffNic(what, a, b); });
    DiffPaths(before, after);
    if (sentences_.empty() && before != after) sentences_.emplace_back("the order of its parts changed");
    return std::move(sentences_);
  }

 private:
  template <class T>
  void Changed(std::string_view what, const T& before, const T& after) {
    if (before == after) return;
    sentences_.push_back(fmt::format("{}: {} -> {}", what, Show(before), Show(after)));
  }

  template <class T, class Key, class Name, class Diff>
  void Matched(const std::vector<T>& before, const std::vector<T>& after, Key key, Name name, Diff diff) {
    std::map<decltype(key(before.front())), std::pair<const T*, const T*>> pairs;
    for (const T& item : before) pairs[key(item)].first = &item;
    for (const T& item : after) pairs[key(item)].second = &item;
    for (const auto& [id, pair] : pairs) {
      const std::string what = name(id);
      if (pair.first == nullptr) {
        sentences_.push_back(what + ": appeared");
      } else if (pair.second == nullptr) {
        sentences_.push_back(what + ": is gone");
      } else {
        diff(what, *pair.first, *pair.second);
      }
    }
  }

  void DiffGpu(const std::string& what, const Gpu& before, const Gpu& after) {
    if (before.healthy != after.healthy) {
      sentences_.push_back(after.healthy ? what + ": healthy again"
                                         : fmt::format("{}: unhealthy: {}", what, after.unhealthy_reason));
    } else {
      Changed(what + " reason", before.unhealthy_reason, after.unhealthy_reason);
    }
    Changed(what + " fatal XID", before.fatal_xid, after.fatal_xid);
    Changed(what + " lost NIC", before.nic_gone, after.nic_gone);
    Changed(what + " UUID", before.uuid, after.uuid);
    Changed(what + " model", before.model, after.model);
    Changed(what + " address", before.pci, after.pci);
    Changed(what + " NUMA node", before.numa, after.numa);
    Changed(what + " memory in GiB", before.memory_gib, after.memory_gib);
    Changed(what + " MIG", before.mig, after.mig);
  }

  void DiffNvlink(const NvLink& before, const NvLink& after) {
    Changed("NVLink generation", before.generation, after.generation);
    Changed("NVLinks per GPU", before.links_per_gpu, after.links_per_gpu);
    Changed("NVLink Gb/s per GPU", before.gbps_per_gpu, after.gbps_per_gpu);
    std::map<int, std::pair<int, int>> links;
    for (const auto& exception : before.exceptions) {
      links[exception.gpu] = {exception.links_up, after.links_per_gpu};
    }
    for (const auto& exception : after.exceptions) {
      links.try_emplace(exception.gpu, before.links_per_gpu, 0).first->second.second = exception.links_up;
    }
    for (const auto& [gpu, up] : links) Changed(fmt::format("GPU {} NVLinks up", gpu), up.first, up.second);
    // What only follows from the links that are up is said with them.
    std::set<int> counted;
    for (const NvLink* one : {&before, &after}) {
      for (const auto& exception : one->exceptions) {
        if (exception.usable_gbps) counted.insert(exception.gpu);
      }
    }
    for (const int gpu : counted) {
      Changed(fmt::format("GPU {} NVLink usable Gb/s", gpu), before.usable_gbps(gpu), after.usable_gbps(gpu));
    }
  }

  void DiffNic(const std::string& what, const Nic& before, const Nic& after) {
    Changed(what + " netdev", before.netdev, after.netdev);
    Changed(what + " address", before.pci, after.pci);
    Changed(what + " GUID", before.guid, after.guid);
    Changed(what + " driver", before.driver, after.driver);
    Changed(what + " PCI id", before.pci_id, after.pci_id);
    Changed(what + " transport", before.transport, after.transport);
    Changed(what + " role", before.role, after.role);
    Changed(what + " rail", before.rail, after.rail);
    Changed(what + " NUMA node", before.numa, after.numa);
    Changed(what + " MTU", before.mtu, after.mtu);
    Matched(
        before.ports, after.ports, [](const NicPort& port) { return port.number; },
        [&](int number) { return fmt::format("{} port {}", what, number); },
        [this](const std::string& port, const NicPort& a, const NicPort& b) { DiffPort(port, a, b); });
  }

  void DiffPort(const std::string& what, const NicPort& before, const NicPort& after) {
    Changed(what, before.state, after.state);
    Changed(what + " rate in Gb/s", before.rate_gbps, after.rate_gbps);
    Changed(what + " usable Gb/s", before.usable_gbps, after.usable_gbps);
    Changed(what + " fault", before.fault, after.fault);
    if (before.fault == after.fault) Changed(what + " evidence", before.reason, after.reason);
    Changed(what + " leaf", before.leaf_port, after.leaf_port);
    Changed(what + " plane", before.plane, after.plane);
    Changed(what + " RDMA MTU", before.rdma_mtu, after.rdma_mtu);
    Changed(what + " RoCE v2 GID index", before.gid_index, after.gid_index);
  }

  void DiffPaths(const Node& before, const Node& after) {
    std::map<std::pair<int, std::string>, std::pair<std::string, std::string>> paths;
    for (const GpuNicPath& path : before.paths) {
      paths[{path.gpu, path.nic}].first = PciDistanceName(path.distance);
    }
    for (const GpuNicPath& path : after.paths) {
      paths[{path.gpu, path.nic}].second = PciDistanceName(path.distance);
    }
    for (const auto& [ends, distance] : paths) {
      Changed(fmt::format("GPU {} to {}", ends.first, ends.second), distance.first, distance.second);
    }
  }

  std::vector<std::string> sentences_;
};

}  // namespace

std::vector<std::string> Diff(const Node& before, const Node& after) {
  return NodeDiff().Run(before, after);
}

}  // namespace heddle::topology
