#pragma once

#include <array>
#include <cstdint>
#include <limits>
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

  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
  // `pods` by pod, all placed. Of a step longer than the limit, µs, only that is known: `step_micros` may be too small,
  // but is beyond the limit, and the rest may be missing.
  Quality Price(const std::vector<PodPlacement>& pods, std::int64_t limit_micros = kNoLimit);

  // What held back the axis's slowest group when last priced. Requires: groups of two ranks or more.
  AxisBottleneck BottleneckOf(Axis axis) const;
  // What that group crosses. Requires the same.
  const GroupTally& WorstOf(Axis axis) const { return worst_[std::size_t(axis)]; }

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
  // The group that starts at a position of whole_ and takes every `step`-th node, and those after it that are like
  // it: the same lanes of nodes of the same runs.
  struct Alike {
    std::size_t first, step;
    std::int64_t groups;
  };
  // Of one group; of one that stands for a node's lanes, each lane's.
  struct GroupCounts {
    std::int64_t edges = 0, misaligned = 0, leaf_crossings = 0;
    bool in_domain = false;
  };
  struct RowCrossing {
    std::size_t group;
    Lanes::Row* row;
    int lane;  // kNone = all, of which the slowest counts
    std::int64_t edges;
    std::size_t flow = 0;  // the first of its lanes
  };
  void ReadRanks(const std::vector<PodPlacement>& pods);
  // Whether the pods take whole nodes of one size, each node's ranks in the order of its GPUs; then whole_ has
  // the nodes in rank order.
  bool ReadWholeNodes(const std::vector<PodPlacement>& pods);
  void FindRuns();
  void TallyRanks(const Cut& cut, Quality& quality);
  void TallyGroup(const Cut& cut, std::int64_t first, Quality& quality);
  // The same for a gang of whole nodes, a node's GPUs at once and runs of like nodes at once. False = not cut
  // that way.
  bool TallyInsideNodes(const Cut& cut, Quality& quality);
  bool TallyBetweenNodes(const Cut& cut, Quality& quality);
  bool TallyThroughNodes(const Cut& cut, Quality& quality);
  bool TallyAllLanes(const Cut& cut, const Alike& alike, GroupCounts& counts);
  void TallyLane(const Cut& cut, const Alike& alike, int lane, Quality& quality);
  template <class Visit>
  bool WalkRuns(const Cut& cut, const Alike& alike, GroupTally& tally, const Visit& visit);
  void TallyRing(const Cut& cut, std::size_t first, std::size_t nodes, int lane, Quality& quality);
  std::int64_t GroupsAlike(std::size_t first, std::size_t step, std::size_t size, std::size_t end) const;
  bool CountEdge(const Hop& hop, Axis axis, std::int64_t times, GroupTally& tally, GroupCounts& counts) const;
  void AddFlow(const GpuPort& from, const GpuPort& to, std::int64_t mbps, std::int64_t count);
  void FinishGroup(GroupTally& tally);
  static void Count(Axis axis, const GroupCounts& counts, std::int64_t groups, Quality& quality);
  void ShareLinks(Axis axis);
  void CountRowFlows();
  void TakeWorst(const Cut& cut, Quality& quality);
  void StartGroup();
  bool IsNewDomain(topology::NodeId node, int ranks);
  void Enter(topology::NodeId node, int ranks, GroupTally& tally);
  void EnterRun(topology::NodeId node, std::int64_t nodes, int ranks, GroupTally& tally);
  void CountRanks(GroupTally& tally, int ranks = 1) const;
  void HideBehindCompute(Quality& quality);
  void CountDomains(const std::vector<PodPlacement>& pods, bool whole, Quality& quality);

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
  std::vector<std::int32_t>
      run_end_;  // by position in whole_: where the run of like nodes that it is in ends
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

// What holds back a group that sends this.
AxisBottleneck BottleneckOf(const AxisTraffic& traffic, const GroupTally& tally);

// The order in which plans are preferred: predicted time, then all leaf crossings, then rails, then whole
// domains.
bool Better(const Quality& a, const Quality& b);

}  // namespace heddle::placement
