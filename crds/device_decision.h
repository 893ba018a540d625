#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "crds/node_devices.h"
#include "crds/rdma_device_policy.h"
#include "topology/node.h"

namespace heddle::crds {

// What one node offers under all the policies that select it: what the operator writes, and what the linter holds files
// against. A NIC that two resources have, or a resource that two policies name, is offered by neither: each says so and
// names the other. Nor is a resource in which several entries of a policy have NICs of the node
// (crds/ambiguous_resource.h). A NIC without a known rail is in no resource by rail. Pure: equal inputs give equal
// results.
class DeviceDecision {
 public:
  // `told`: what stands in the node's spec; a generation that tells it nothing new keeps the old one's number, and of a
  // whole node the ports of a compute NIC that a GPU has lost stay (topology::LostNic).
  // `policies`: those that select it. `unreadable`: names of policies that cannot be read; what one of them told stays,
  // and others get neither its NICs nor its names. `others`: the other plugins that can be run. All must outlive this.
  DeviceDecision(const topology::Node& node, const std::vector<DeviceWish>& told,
                 const std::vector<const RdmaDevicePolicy*>& policies,
                 const std::set<std::string>& unreadable, const std::set<DevicePlugin>& others);

  // By resource, kMaxDeviceEntries at most beside what is kept; reasons as the object keeps them (crds/kept_text.h).
  std::vector<DeviceWish> wishes() const;
  // By policy: NICs that are in none of its resources though they are selected, each a sentence.
  const std::map<std::string, std::vector<std::string>>& problems() const { return problems_; }
  // By policy, why it does not get a resource that is kept for one that cannot be read.
  const std::map<std::string, std::string>& kept_from() const { return kept_from_; }
  bool Conflicts(const std::string& resource) const { return conflicts_.contains(resource); }
  bool Keeps(const std::string& resource) const { return kept_.contains(resource); }

 private:
  void KeepUnreadable(const std::set<std::string>& unreadable);
  void Take(DeviceWish wish);
  void Conflict(const std::string& resource, std::string reason);
  void RefuseSharedNics();
  void RefuseSameNames();
  void RefuseSecondPlugin();
  void KeepNumbers();

  const std::vector<DeviceWish>& told_;
  std::map<std::string, DeviceWish> wishes_;  // by resource
  std::set<std::string> conflicts_;           // of these
  std::map<std::string, std::string> kept_;   // of these, and the policy that cannot be read
  std::map<std::string, std::string> kept_from_;
  std::map<std::string, std::vector<std::string>> problems_;
};

}  // namespace heddle::crds
