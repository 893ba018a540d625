#pragma once

#include <cstdint>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/cost.h"
#include "placement/dense.h"
#include "placement/lanes.h"
#include "placement/plan.h"

namespace heddle::placement {

// Prices assignments of one gang. Linear in ring edges; its buffers are reused, so that pricing many
// candidates does not allocate. Thread rule: one owner.
class Pricing {
 public:
  // Requires: WhyNotLaidOut is empty and the pods' GPUs make the world. Keeps references.
  Pricing(const ClusterState& state, const GangRequest& request);

  // `pods` by pod, all placed.
  Quality Price(const std::vector<PodPlacement>& pods);

 private:
  struct Crossing {
    std::int64_t group;
    topology::LeafId from, to;
    std::int64_t mbps;
  };
  void ReadRanks(const std::vector<PodPlacement>& pods);
  // Whether every pod has all GPUs of its node and nodes are of one size; then whole_ has them in order.
  bool ReadWholeNodes(const std::vector<PodPlacement>& pods);
  void PriceAxis(Axis axis, Quality& quality);
  // The same for a gang of whole nodes, a node's GPUs at once. False = it cannot say; nothing has changed
  // then.
  bool PriceInsideNodes(Axis axis, AxisStride stride, Quality& quality);
  bool PriceBetweenNodes(Axis axis, AxisStride stride, Quality& quality);
  void ShareBetweenNodes(Axis axis);
  double CostOf(Axis axis, bool closed, int size, std::int64_t mbps, std::int64_t tenths) const;
  double PartOf(topology::LeafId leaf, const std::vector<std::int64_t>& wanted) const;
  void ShareUplinks(Axis axis);
  void CountDomains(const std::vector<PodPlacement>& pods, Quality& quality);

  const ClusterState& state_;
  const GangRequest& request_;
  AxisBytes bytes_;
  std::vector<GpuPort> ranks_;
  Lanes lanes_;
  std::vector<topology::NodeId> whole_;
  int lane_count_ = 0;
  std::vector<std::pair<std::size_t, Lanes::Row*>> node_crossings_;  // group, row
  std::vector<Lanes::Row*> used_rows_;
  std::vector<std::int64_t> group_mbps_;
  std::vector<std::int32_t> group_tenths_;
  std::vector<Crossing> crossings_;
  std::vector<std::int64_t> leaf_up_, leaf_down_;  // zero between axes
  std::vector<std::uint32_t> seen_;                // by domain
  std::uint32_t round_ = 0;
};

// The order in which plans are preferred: predicted time, then all leaf crossings, then rails, then whole
// domains.
bool Better(const Quality& a, const Quality& b);

}  // namespace heddle::placement
