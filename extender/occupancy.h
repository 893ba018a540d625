#pragma once

#include <map>
#include <string>
#include <vector>

#include "extender/snapshot.h"

namespace heddle::extender {

// Inside of TakeSnapshot: who holds which GPUs of which node, strongest proof first.
class Occupancy {
 public:
  explicit Occupancy(const std::map<std::string, const topology::Node*>& topologies)
      : topologies_(topologies) {}

  void Fill(const SnapshotInputs& inputs);

  const std::vector<Hold>& HoldsOf(const std::string& node) const;
  const std::vector<placement::Resources>& UsesOf(const std::string& node) const;
  std::map<std::string, std::vector<Hold>> TakeHolds() { return std::move(holds_); }

 private:
  using ByUid = std::map<std::string, const PodFacts*>;
  using ByRank = std::map<std::pair<GangKey, int>, std::vector<const PodFacts*>>;

  void HoldGrants(const SnapshotInputs& inputs, const ByUid& bound);
  void HoldAnnotated(const PodFacts& pod);
  void HoldReserved(const crds::Gang& gang, const ByRank& ranks, const placement::Resources& demand,
                    const std::set<int>& lapsed, const std::set<int>& done);
  void HoldTold(const PodFacts& pod);
  void HoldAssumed(const PodFacts& pod);
  void Reserve(const std::string& node, std::uint32_t gpus, const crds::Gang& gang,
               const placement::Resources& demand, bool told);
  void Use(const std::string& node, const placement::Resources& resources) {
    uses_[node].push_back(resources);
  }
  const topology::Node* Topology(const std::string& node) const;

  const std::map<std::string, const topology::Node*>& topologies_;
  std::map<std::string, std::vector<Hold>> holds_;
  std::map<std::string, std::vector<placement::Resources>> uses_;
  std::map<std::string, std::uint32_t> granted_;  // by pod UID: already told by the kubelet
};

}  // namespace heddle::extender
