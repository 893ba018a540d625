#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/dense.h"
#include "placement/gang_classes.h"

namespace heddle::placement {

// The pods of a gang in the order in which they fill the fabric: neighbours in it end up near each other, and
// the classes of every tier are ranges of it.
struct FillOrder {
  std::vector<std::int32_t> pods;  // those with GPUs
  std::vector<std::int64_t> grains;  // ranks of whole groups along the order, ascending: tp, tp·a, tp·a·b, …
  // By pod: its place in the line before the classes were brought together. Empty = they were together, or the
  // gang is too large to line up twice.
  std::vector<std::int32_t> unclassed;
};
// One per order of the axes beyond tp (a shard or expert group counts as an axis inside dp); Megatron-Core's
// first. Requires: classes.uniform.
std::vector<FillOrder> FillOrders(const GangRequest& request, const GangClasses& classes);
// Brings the pods of a class together, classes by first appearance. Stable, so finer classes stay together.
void Regroup(const std::vector<std::int32_t>& class_of_pod, std::size_t classes,
             std::span<std::int32_t> pods);

// Which GPUs of a node may be used in one try.
struct GpuFilter {
  bool skip_odd = false;       // leave slow or oddly cabled GPUs alone
  std::uint32_t window = ~0U;  // the same local indexes on every node
  int grain = 1;  // a cell of that tier takes pods by so many at once: whole groups, not the rest of one
  Tier grain_tier = Tier::kNode;
  int most_per_unit = 0;  // GPUs that a unit gives, so that it does not fill its own way up; 0 = all
  friend bool operator==(const GpuFilter&, const GpuFilter&) = default;
};

inline constexpr int kMostPassed = 2;  // grains, by FillChoice::coarser_grains
struct FillChoice {
  int coarser_grains = 0;  // how many of the coarsest grains that fit are passed over
  int rank_of_cell = 0;    // which of the cells that hold everything: 0 = the tightest
  bool snake =
      false;  // pods run to and fro over the nodes' slots, so that a ring stays on its rail between nodes
  // Inside a cell that holds whole classes they are no longer kept together: other axes may be nearer there.
  bool unclassed = false;
};

// Embeds the tree of a uniform gang's classes in the tree of the fabric's cells. Counting is exact: whether
// the gang fits is decided, not searched. Requires: classes.uniform and CellsDecide.
class Embedding {
 public:
  Embedding(const ClusterState& state, const GangRequest& request, const GangClasses& classes);

  // Counts what each cell holds; the state must be as it was at the last call. With `empty`, as if every GPU
  // were free and every node usable.
  void Measure(const GpuFilter& filter, bool empty = false);
  bool fits() const {  // an empty fabric has no root
    const auto& root = capacity_[measured_as_[std::size_t(Tier::kRoot)]];
    return !root.empty() && root.front() > 0;
  }
  // How many classes of the tier a cell holds.
  int capacity(Tier tier, std::int32_t cell) const {
    return capacity_[measured_as_[std::size_t(tier)]][std::size_t(cell)];
  }

  // Places every pod of the order. Requires: fits().
  void Fill(const FillOrder& order, const FillChoice& choice, std::vector<PodPlacement>& out);
  // Some tier had more than one cell that held everything at the last Fill.
  int cells_to_choose() const { return cells_to_choose_; }
  bool shared_nodes() const { return shared_nodes_; }
  // The most grains that some cell could have taken at the last Fill: passing over more changes nothing.
  int grains_to_pass() const { return grains_to_pass_; }

 private:
  struct Share {
    std::int32_t cell;
    int items, capacity, free;
    // Equal for cells with equally free nodes that are cabled alike: a choice hangs on names last of all.
    std::uint64_t content;
    Tier lowest = Tier::kRoot;  // of those that hold everything: where one cell still does
  };
  struct Segment {
    topology::NodeId node;
    std::int32_t begin, end;
  };
  // Cells by how they are chosen where they take whole grains.
  struct Ranked {
    int grain;
    std::vector<Share> shares;  // capacities are whole grains, largest first
  };
  // The children of a cell that hold something, as the choices among them need them; kept until the next Measure.
  struct Children {
    Tier tier;
    std::vector<Share> shares;                     // by free GPUs, content and name
    int largest = 0;                               // capacity
    std::vector<std::pair<int, int>> by_capacity;  // how many hold so much
    std::vector<Ranked> ranked;
  };
  Children& ChildrenOf(Tier tier, std::int32_t cell);
  static const std::vector<Share>& RankedFor(Children& children, int grain);
  void MeasureNodes(const GpuFilter& filter, bool empty);
  void MeasureCells(Tier tier, const GpuFilter& filter, bool nvlink);
  bool SameAsBelow(Tier tier, const GpuFilter& filter, bool nvlink) const;
  void FillNode(std::int32_t node_cell, std::int32_t begin, std::int32_t end);
  bool TakesAll(Tier tier, std::int32_t cell, int items) const;
  Tier LowestHolding(Tier tier, std::int32_t cell, int pods) const;
  void DropClasses(Tier tier, std::int32_t begin, std::int32_t end);
  void FillCell(Tier tier, std::int32_t cell, std::int32_t begin, std::int32_t end);
  void Choose(Tier tier, std::int32_t cell, int items, std::vector<Share>& shares);
  void ChooseOne(const Children& children, int items, std::vector<Share>& shares);
  std::int64_t GrainFor(const Children& children, int items, std::int64_t ranks_per_item);
  void GiveSlots(std::vector<PodPlacement>& out) const;

  const ClusterState& state_;
  const GangRequest& request_;
  const GangClasses& classes_;
  const PodRequest* sample_ = nullptr;
  const bool alike_cost_alike_;  // cells of one content: where no link is shared
  std::array<int, kTierCount> pods_per_class_{};
  std::array<std::uint8_t, 33> slots_of_{};    // pods by free GPUs
  std::array<std::uint8_t, 33> classes_of_{};  // of Tier::kNode, by pods in whole grains
  std::vector<char> allowed_;                  // by node; empty = all
  std::vector<std::uint32_t> usable_;          // GPUs by node under the filter
  std::array<std::vector<std::int32_t>, kTierCount> capacity_, free_;
  std::array<std::vector<std::uint64_t>, kTierCount> content_;
  // By tier, the one whose numbers are its own too: most nodes are an NVLink domain.
  std::array<std::size_t, kTierCount> measured_as_{};
  bool nodes_are_domains_ = false;  // each of its own: cells of both are numbered alike
  std::vector<Segment> segments_;
  std::deque<Children> children_;
  std::array<std::vector<std::int32_t>, kTierCount> children_at_;  // index into children_; kNone = not yet
  std::array<std::vector<Share>, kTierCount> shares_;
  const FillOrder* order_ = nullptr;
  const std::vector<std::int32_t>* line_ = nullptr;  // the order's pods, as they are placed
  std::vector<std::int32_t> unclassed_;              // that line, where classes are dropped
  FillChoice choice_;
  int cells_to_choose_ = 0;
  int grains_to_pass_ = 0;
  std::optional<std::pair<GpuFilter, bool>> measured_;
  bool chosen_ = false;
  bool shared_nodes_ = false;
};

// `count` disjoint sets of `size` GPUs out of `usable`: aligned runs first, so that equal nodes give equal
// sets. Requires: enough are usable.
std::vector<std::uint32_t> SlotsOf(std::uint32_t usable, std::uint32_t odd, int size, int count,
                                   bool from_the_top);

}  // namespace heddle::placement
