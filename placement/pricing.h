#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "placement/axis_report.h"
#include "placement/cluster_state.h"
#include "placement/dense.h"
#include "placement/group_cost.h"
#include "placement/lanes.h"
#include "placement/plan.h"
#include "placement/sharing.h"

namespace heddle::placement {

// Prices assignments of one gang. Linear in ring edges; its buffers are reused, so that pricing many
// candidates does not allocate. Thread rule: one owner.
class Pricing {
 public:
  // Nodes that the gang has whole are taken all GPUs at once, which gives the same price sooner; rank by rank
  // is for checking that it does.
  enum class Stride : std::uint8_t { kWholeNodes, kRanks };
  // Requires: WhyNotLaidOut is empty and the pods' GPUs make the world. Keeps references.
  Pricing(const ClusterState& state, const GangRequest& request, Stride by = Stride::kWholeNodes);

  // `pods` by pod, all placed.
  Quality Price(const std::vector<PodPlacement>& pods);

  // What held back the axis's slowest group when last priced. Requires: groups of two ranks or more.
  AxisBottleneck BottleneckOf(Axis axis) const;

 private:
  // The groups of one axis: where their ranks lie, and whether the last meets the first again.
  struct Cut {
    Axis axis;
    AxisStride stride;
    bool closed;  // a chain of stages does not close; a ring of two has its one edge in both directions
  };
  // An edge between two leaves: what sharing leaves of it slows its group. A ring runs everywhere at the pace
  // of its slowest edge, so its flows want no more than that.
  struct Crossing {
    std::size_t group, flow;
    std::int64_t mbps;  // alone
  };
  // Of one group; of one that stands for a node's lanes, each lane's.
  struct GroupCounts {
    std::int64_t edges = 0, misaligned = 0, leaf_crossings = 0;
    bool in_domain = false;
  };
  struct RowCrossing {
    std::size_t group;
    Lanes::Row* row;
    int lane;              // kNone = all, of which the slowest counts
    std::size_t flow = 0;  // the first of its lanes
  };
  void ReadRanks(const std::vector<PodPlacement>& pods);
  // Whether the pods take whole nodes of one size, each node's ranks in the order of its GPUs; then whole_ has
  // the nodes in rank order.
  bool ReadWholeNodes(const std::vector<PodPlacement>& pods);
  void TallyRanks(const Cut& cut, Quality& quality);
  void TallyGroup(const Cut& cut, std::int64_t first, Quality& quality);
  // The same for a gang of whole nodes, a node's GPUs at once. False = not cut that way.
  bool TallyInsideNodes(const Cut& cut, Quality& quality);
  bool TallyBetweenNodes(const Cut& cut, Quality& quality);
  bool TallyAllLanes(const Cut& cut, std::size_t first, std::size_t step, GroupCounts& counts);
  bool LikeTheOneBefore(std::size_t first, std::size_t step, std::size_t size) const;
  bool CountEdge(const Hop& hop, Axis axis, GroupTally& tally, GroupCounts& counts) const;
  static void Count(Axis axis, const GroupCounts& counts, int groups, Quality& quality);
  void TallyLane(const Cut& cut, std::size_t first, std::size_t step, int lane, Quality& quality);
  void ShareLinks(Axis axis);
  void CountRowFlows();
  void TakeWorst(const Cut& cut, Quality& quality);
  void StartGroup();
  bool IsNewDomain(topology::NodeId node, int ranks);
  void Enter(topology::NodeId node, int ranks, GroupTally& tally);
  void EnterOnce(topology::NodeId node, GroupTally& tally);
  void CountRanks(GroupTally& tally) const;
  void HideBehindCompute(Quality& quality);
  void CountDomains(const std::vector<PodPlacement>& pods, Quality& quality);

  const ClusterState& state_;
  const DenseFabric& dense_;
  const GangRequest& request_;
  const Stride by_;
  GroupCost cost_;
  Sharing sharing_;
  const bool shares_links_;  // else every flow is alone
  std::vector<GpuPort> ranks_;
  Lanes lanes_;
  std::vector<topology::NodeId> whole_;
  int lane_count_ = 0;
  std::vector<GroupTally> tallies_;
  std::array<GroupTally, kAxisCount> worst_;  // the slowest group of each axis
  std::vector<Crossing> crossings_;
  std::vector<RowCrossing> row_crossings_;
  std::vector<Lanes::Row*> rows_;  // with uses
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> seen_;        // by domain, then by node without one
  std::vector<std::int32_t> ranks_there_;  // of the group, by the same
  std::vector<std::int32_t> met_;          // by the group, of the same
  std::uint32_t mark_ = 0;
};

// The order in which plans are preferred: predicted time, then all leaf crossings, then rails, then whole
// domains.
bool Better(const Quality& a, const Quality& b);

}  // namespace heddle::placement
