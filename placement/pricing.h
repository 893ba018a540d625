#pragma once

#include <cstdint>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/cost.h"
#include "placement/dense.h"
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
  void PriceAxis(Axis axis, Quality& quality);
  void ShareUplinks(Axis axis);
  void CountDomains(const std::vector<PodPlacement>& pods, Quality& quality);

  const ClusterState& state_;
  const GangRequest& request_;
  AxisBytes bytes_;
  std::vector<GpuPort> ranks_;
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
