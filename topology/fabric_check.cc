#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "topology/fabric.h"

namespace heddle::topology {
namespace {

class FabricCheck {
 public:
  explicit FabricCheck(const Fabric& fabric) : fabric_(fabric) {}

  std::vector<std::string> Run() && {
    CheckNodes();
    CheckLeaves();
    CheckSpines();
    CheckUnits();
    CheckDomains();
    for (const CablingFault& fault : fabric_.faults) {
      if (fault.sentence.empty()) Say("a fault at {} {} says nothing", fault.node, fault.nic);
    }
    return std::move(broken_);
  }

 private:
  template <class... Args>
  void Say(fmt::format_string<Args...> format, Args&&... args) {
    broken_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  template <class T>
  static bool In(std::int32_t id, const std::vector<T>& items) {
    return id >= 0 && std::size_t(id) < items.size();
  }
  template <class T>
  static bool Ascending(const std::vector<T>& items) {
    return std::adjacent_find(items.begin(), items.end(), [](const T& a, const T& b) { return !(a < b); }) ==
           items.end();
  }

  void CheckNodes() {
    for (std::size_t n = 0; n < fabric_.nodes.size(); ++n) {
      const FabricNode& node = fabric_.nodes[n];
      if (n > 0 && !(fabric_.nodes[n - 1].node.name < node.node.name)) {
        Say("node {} is out of order", node.node.name);
      }
      if (node.unit != kNone && !Holds(node.unit, fabric_.units, NodeId(n))) {
        Say("{}'s unit lacks it", node.node.name);
      }
      if (node.domain != kNone && !Holds(node.domain, fabric_.domains, NodeId(n))) {
        Say("{}'s NVLink domain lacks it", node.node.name);
      }
      if (node.uplinks.size() != node.node.gpus.size()) {
        Say("{} has {} uplinks for {} GPUs", node.node.name, node.uplinks.size(), node.node.gpus.size());
      }
      for (const GpuUplink& uplink : node.uplinks) CheckUplink(node.node.name, uplink);
    }
  }

  template <class Group>
  static bool Holds(std::int32_t id, const std::vector<Group>& groups, NodeId node) {
    return In(id, groups) && std::binary_search(groups[std::size_t(id)].nodes.begin(),
                                                groups[std::size_t(id)].nodes.end(), node);
  }

  void CheckUplink(const std::string& node, const GpuUplink& uplink) {
    if (uplink.rail < kNone || uplink.rail >= fabric_.rails) {
      Say("{} has a GPU on rail {} of {}", node, uplink.rail, fabric_.rails);
    }
    if (uplink.leaf != kNone && !In(uplink.leaf, fabric_.leaves)) {
      Say("{} has a GPU on leaf {}", node, uplink.leaf);
    }
    if (uplink.gbps < 0) Say("{} has a GPU with {} Gb/s", node, uplink.gbps);
    if (uplink.gbps == 0 && uplink.leaf != kNone) Say("{} has a GPU on a leaf without bandwidth", node);
  }

  void CheckLeaves() {
    for (std::size_t l = 0; l < fabric_.leaves.size(); ++l) {
      const Leaf& leaf = fabric_.leaves[l];
      if (l > 0 && !(fabric_.leaves[l - 1].name < leaf.name)) Say("leaf {} is out of order", leaf.name);
      if (leaf.rail && (*leaf.rail < 0 || *leaf.rail >= fabric_.rails)) {
        Say("leaf {} is of rail {} of {}", leaf.name, *leaf.rail, fabric_.rails);
      }
      if (leaf.plane < 0) Say("leaf {} is on plane {}", leaf.name, leaf.plane);
      if (leaf.down_gbps < 0 || leaf.up_gbps < 0) Say("leaf {} has a negative bandwidth", leaf.name);
      if (!leaf.spines.empty() && leaf.up_gbps == 0) {
        Say("leaf {} has spines and no bandwidth to them", leaf.name);
      }
      CheckUplinks(leaf.name, 1, leaf.spines);
      if (leaf.group != kNone && !In(leaf.group, fabric_.declaration.groups)) {
        Say("leaf {} is in group {}", leaf.name, leaf.group);
      }
      if (leaf.unit == kNone) continue;
      const bool held = In(leaf.unit, fabric_.units) &&
                        std::binary_search(fabric_.units[std::size_t(leaf.unit)].leaves.begin(),
                                           fabric_.units[std::size_t(leaf.unit)].leaves.end(), LeafId(l));
      if (!held) Say("leaf {}'s unit lacks it", leaf.name);
    }
  }

  void CheckUplinks(const std::string& name, int tier, const std::vector<std::int32_t>& uplinks) {
    if (!Ascending(uplinks)) Say("the uplinks of {} are not sorted", name);
    for (const std::int32_t up : uplinks) {
      if (!In(up, fabric_.spines)) {
        Say("{} leads up to spine {}, which is not there", name, up);
      } else if (fabric_.spines[std::size_t(up)].tier != tier + 1) {
        Say("{} of tier {} leads up to {} of tier {}", name, tier, fabric_.spines[std::size_t(up)].name,
            fabric_.spines[std::size_t(up)].tier);
      }
    }
  }

  void CheckSpines() {
    const auto key = [](const Spine& spine) { return std::pair(spine.tier, std::string_view(spine.name)); };
    for (std::size_t s = 0; s < fabric_.spines.size(); ++s) {
      const Spine& spine = fabric_.spines[s];
      if (spine.tier < 2) Say("spine {} is of tier {}", spine.name, spine.tier);
      if (s > 0 && !(key(fabric_.spines[s - 1]) < key(spine))) Say("spine {} is out of order", spine.name);
      CheckUplinks(spine.name, spine.tier, spine.uplinks);
      if (spine.down_gbps < 0 || spine.up_gbps < 0) Say("spine {} has a negative bandwidth", spine.name);
    }
  }

  void CheckUnits() {
    NodeId previous = kNone;
    for (std::size_t u = 0; u < fabric_.units.size(); ++u) {
      const Unit& unit = fabric_.units[u];
      if (unit.nodes.empty()) Say("unit {} has no node", unit.name);
      if (!Ascending(unit.nodes) || !Ascending(unit.leaves)) Say("unit {} is not sorted", unit.name);
      if (unit.name != fmt::format("su-{}", u)) Say("unit {} is called {}", u, unit.name);
      if (!unit.nodes.empty() && unit.nodes.front() <= previous) {
        Say("unit {} is not numbered by its smallest node", unit.name);
      }
      if (!unit.nodes.empty()) previous = unit.nodes.front();
      for (const NodeId node : unit.nodes) {
        if (!In(node, fabric_.nodes) || fabric_.nodes[std::size_t(node)].unit != UnitId(u)) {
          Say("unit {} holds foreign node {}", unit.name, node);
        }
      }
      for (const LeafId leaf : unit.leaves) {
        if (!In(leaf, fabric_.leaves)) Say("unit {} holds leaf {}, which is not there", unit.name, leaf);
      }
    }
  }

  void CheckDomains() {
    for (std::size_t d = 0; d < fabric_.domains.size(); ++d) {
      const NvlinkDomain& domain = fabric_.domains[d];
      if (d > 0 && !(fabric_.domains[d - 1].id < domain.id)) {
        Say("NVLink domain {} is out of order", domain.id);
      }
      if (domain.nodes.empty() || !Ascending(domain.nodes)) {
        Say("NVLink domain {} is empty or not sorted", domain.id);
      }
      if (!domain.spans_nodes && domain.nodes.size() > 1) {
        Say("NVLink domain {} spans nodes and denies it", domain.id);
      }
      std::size_t gpus = 0;
      for (const NodeId node : domain.nodes) {
        if (!In(node, fabric_.nodes) || fabric_.nodes[std::size_t(node)].domain != DomainId(d)) {
          Say("NVLink domain {} holds foreign node {}", domain.id, node);
        } else {
          gpus += fabric_.nodes[std::size_t(node)].node.gpus.size();
        }
      }
      if (std::size_t(domain.gpus) != gpus) {
        Say("NVLink domain {} counts {} GPUs of {}", domain.id, domain.gpus, gpus);
      }
    }
  }

  const Fabric& fabric_;
  std::vector<std::string> broken_;
};

}  // namespace

std::vector<std::string> Check(const Fabric& fabric) {
  return FabricCheck(fabric).Run();
}

}  // namespace heddle::topology
