#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/gang_classes.h"

namespace heddle::placement {

// Depth-first search, pod by pod, for gangs that counting does not decide: unlike pods, pods that are bound
// already, leaves and spines required per GPU. What it exhausts is proved; what it gives up is not.
class Backtrack {
 public:
  enum class Outcome : std::uint8_t { kFound, kImpossible, kGaveUp };

  // `hints`: where pods stood before, by pod (may be empty): same unit and same GPUs are tried first.
  // `budget`: nodes looked at, in all. `state` is used for trials and comes back as it was.
  Backtrack(ClusterState& state, const GangRequest& request, const GangClasses& classes,
            const std::vector<PodPlacement>& hints, std::int64_t budget);
  // Pods by what must lie together, the largest first, instead of by who talks to whom: packs tightly.
  void PackLargestFirst() { largest_first_ = true; }
  // Calls `visit` for every place found until it says that it has seen enough. With `every_set`, all sets of
  // a node's GPUs are tried, not one that stands for them. kFound if `visit` was called at all.
  using Visit = std::function<bool(const std::vector<PodPlacement>&)>;
  Outcome Run(const Visit& visit, bool every_set);
  // After Run: no place was left out but those that differ by nodes that nothing tells apart, and, without
  // `every_set`, by the GPUs of a node.
  bool saw_all() const { return saw_all_; }
  // After kImpossible: the bound pod that breaks a requirement together with those bound before it; -1 =
  // none.
  int pod_in_conflict() const { return pod_in_conflict_; }

 private:
  struct Frame {
    std::int32_t pod = 0;
    std::vector<topology::NodeId> nodes;  // still to try, best last
    std::vector<topology::NodeId> tried;  // only those that stand for others like them
    std::uint32_t gpus = 0;               // on nodes.back()
    bool placed = false;
    ClusterState::Savepoint mark = 0;
  };
  Outcome Search(const Visit& visit);
  void OrderPods();
  bool PlaceFixed();
  void ListNodes(Frame& frame);
  bool NextPlace(Frame& frame);
  bool NextGpus(const Frame& frame, topology::NodeId node, std::uint32_t& gpus) const;
  bool CanHold(std::int32_t pod, topology::NodeId node) const;
  bool PairsHold(std::int32_t pod, const PodPlacement& place) const;
  bool LikeOneTried(const Frame& frame, topology::NodeId node) const;
  bool Pin(std::int32_t pod, topology::NodeId node);
  void Unpin(std::int32_t pod);
  void Place(Frame& frame, topology::NodeId node, std::uint32_t gpus);
  void Unplace(Frame& frame);
  bool Allowed(std::int32_t pod, topology::NodeId node) const;

  ClusterState& state_;
  const GangRequest& request_;
  const GangClasses& classes_;
  const std::vector<PodPlacement>& hints_;
  std::int64_t budget_;
  std::size_t keep_;
  bool cut_ = false;  // something was left out, or cells leave something out
  bool saw_all_ = false;
  bool every_set_ = false;
  bool largest_first_ = false;
  int pod_in_conflict_ = -1;
  std::vector<PodPlacement> places_;
  std::array<std::vector<std::int32_t>, kTierCount> pinned_, members_, gpus_left_;
  std::vector<std::int32_t> pods_on_node_, pods_in_unit_;
  std::vector<std::vector<char>> allowed_;  // by list
  std::vector<Frame> frames_;
  std::vector<std::int32_t> order_;
  int gpus_unplaced_ = 0;
};

}  // namespace heddle::placement
