#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/dense.h"
#include "placement/plan.h"

namespace heddle::placement {

// A predicted step this much longer is no longer: the model errs by more (docs/cost-model.md), while every unit less
// that a group touches is one thing less that may fail or be busy.
inline constexpr std::int64_t kAsFastPercent = 1;
// The longest step that counts as fast as one of `micros`.
constexpr std::int64_t AsFast(std::int64_t micros) {
  return micros + micros * kAsFastPercent / 100;
}

// How far the groups of a gang reach: for each axis with groups, the most scalable units (of a dragonfly: the
// most groups of switches) and the most NVLink domains that one group touches, added up with the weights of
// the axes (design section 6: TP = EP >> CP > FSDP > DP > PP, in the proportions of the default objective).
// What nobody knows the place of counts as one each. Buffers are reused. Keeps references. Thread rule: one
// owner.
class Spread {
 public:
  // Requires: WhyNotLaidOut is empty. Nothing is read before something is asked.
  Spread(const ClusterState& state, const GangRequest& request);

  struct Reach {
    std::int64_t worst = 0;  // of the groups that reach farthest; what plans are compared by
    // What a search goes by where the worst stays as it is: over all groups, and less where more of a group's pods
    // lie together.
    std::int64_t all = 0;
  };
  // Pods with GPUs are placed.
  Reach Of(const std::vector<PodPlacement>& pods);
  std::int64_t WorstOf(const std::vector<PodPlacement>& pods);  // the worst alone, sooner
  // No place in what is open can have less: each group alone in the fullest cells.
  std::int64_t Least();

 private:
  struct AxisGroups {
    std::int64_t weight = 0;
    int gpus = 0;                           // of the largest group
    std::vector<std::int32_t> first, pods;  // group g has pods[first[g]] … pods[first[g + 1] - 1]
  };
  // The last group that met a cell, and how many of its pods did.
  struct Met {
    std::uint32_t group = 0;
    int pods = 0;
  };
  void ReadGroups();
  void StartGroup();
  Reach Walk(const std::vector<PodPlacement>& pods, bool nodes_once);
  void ReadGroupsOf(std::int64_t weight, const AxisStride& cut, int step,
                    const std::vector<std::int32_t>& pod_of_rank);
  static void Meet(Met& met, std::uint32_t group, int& cells, std::int64_t& all);

  const ClusterState& state_;
  const GangRequest& request_;
  const Tier wide_;  // the tier of units
  int smallest_pod_ = 0;
  std::vector<AxisGroups> axes_;
  std::vector<Met> units_, domains_;  // by cell
  std::uint32_t group_ = 0;
};

// A place for every pod and its price.
struct Found {
  std::vector<PodPlacement> pods;
  Quality quality;
};

// The places that some rule between speed and spread could choose, of all that were offered: none of them is beaten
// in both. What is chosen at the end hangs on the fastest known then, never on the order of offers, but that of equal
// places the first stays.
class Front {
 public:
  // Without `spread` the fastest is chosen.
  explicit Front(Spread* spread) : spread_(spread) {}

  bool empty() const { return places_.empty(); }
  // False = certainly of no use, whatever its spread.
  bool Wants(const Quality& quality) const;
  // Requires: the place meets every requirement.
  void Offer(const std::vector<PodPlacement>& pods, const Quality& quality);
  void Clear() { places_.clear(); }

  // Requires of all: not empty.
  const Found& fastest() const;  // by Better
  // Of the places whose step is at most kAsFastPercent longer than the fastest: the least spread, then the fewest leaf
  // crossings, then by Better.
  const Found& chosen() const;
  std::int64_t chosen_spread();
  // The longest step that may still be chosen.
  std::int64_t limit_micros() const;

 private:
  static constexpr std::int64_t kNotRead = -1;  // as long as there is nothing to compare with
  struct Place {
    Found found;
    std::int64_t spread = kNotRead, crossings = 0;
  };
  bool LessSpread(const Place& a, const Place& b) const;
  void ReadSpread(Place& place);
  const Place& Chosen() const;

  Spread* spread_;
  std::vector<Place> places_;
  Place tried_;
};

}  // namespace heddle::placement
