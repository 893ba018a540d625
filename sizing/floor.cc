#include "sizing/floor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace heddle::sizing {
namespace {

std::int64_t CeilOf(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

struct Unit {
  std::int64_t first = 0;   // rack, along the line
  std::int64_t racks = 0;   // of nodes
  std::int64_t leaves = 0;  // rack of its leaves
  int nodes = 0;
};
struct Pod {
  std::vector<Unit> units;
  std::int64_t spines = 0;  // first of their racks
};

class Line {
 public:
  explicit Line(const Design& design) : design_(design), tree_(design.tree) {
    const Hall& hall = design.request.hall;
    floor_.nodes_per_rack = hall.nodes_per_rack > 0 ? hall.nodes_per_rack
                            : design.machine->rack_nodes > 0
                                ? design.machine->rack_nodes
                                : std::max(1, hall.rack_kw * 1000 / design.machine->watts);
    const std::size_t middle = tree_.pod_units.size() / 2;
    for (std::size_t p = 0; p < tree_.pod_units.size(); ++p) {
      if (p == middle && tree_.tiers == 3) cores_ = Network(tree_.cores() * planes());
      AddPod(tree_.pod_units[p]);
    }
    const double square = std::sqrt(double(next_) * hall.row_metres * 10 / kRackDecimetres);
    floor_.racks_per_row = hall.racks_per_row > 0 ? hall.racks_per_row : std::max(10, int(std::ceil(square)));
    floor_.rows = CeilOf(next_, floor_.racks_per_row);
  }

  const Floor& floor() const { return floor_; }

  void Measure() {
    for (const Pod& pod : pods_) {
      for (const Unit& unit : pod.units) {
        MeasureNodes(unit);
        if (tree_.tiers < 2) continue;
        Add(Segment::kLeafSpine, unit.leaves, pod.spines,
            std::int64_t(tree_.leaves_per_unit) * tree_.leaf_up * planes());
      }
      if (tree_.tiers == 3)
        Add(Segment::kSpineCore, pod.spines, cores_,
            std::int64_t(tree_.spines_per_pod) * tree_.spine_up * planes());
    }
  }

  const std::map<Segment, std::map<int, std::int64_t>>& lengths() const { return lengths_; }

 private:
  int planes() const { return design_.request.planes; }

  // The first of the racks that so many switches take.
  std::int64_t Network(std::int64_t switches) {
    const std::int64_t racks = CeilOf(switches, kSwitchesPerRack), first = next_;
    floor_.network_racks += racks;
    next_ += racks;
    return first;
  }

  void AddPod(int units) {
    Pod pod;
    const bool above = tree_.tiers > 1;
    for (int u = 0; u < units; ++u) {
      if (u == units / 2 && above) pod.spines = Network(std::int64_t(tree_.spines_per_pod) * planes());
      AddUnit(tree_.unit_nodes[unit_++], pod);
    }
    pods_.push_back(std::move(pod));
  }

  void AddUnit(int nodes, Pod& pod) {
    Unit unit{next_, CeilOf(nodes, floor_.nodes_per_rack), next_, nodes};
    floor_.node_racks += unit.racks;
    next_ += unit.racks / 2;
    if (!InRack(unit)) {
      unit.leaves = Network(std::int64_t(tree_.leaves_per_unit) * planes());
      next_ = unit.leaves + CeilOf(std::int64_t(tree_.leaves_per_unit) * planes(), kSwitchesPerRack);
    }
    next_ += unit.racks - unit.racks / 2;
    pod.units.push_back(unit);
  }

  // A rack that is a machine has no room for switches.
  bool InRack(const Unit& unit) const { return unit.racks == 1 && design_.machine->rack_nodes == 0; }

  void MeasureNodes(const Unit& unit) {
    const std::int64_t cables = std::int64_t(design_.machine->nics) * planes();
    const std::int64_t network =
        InRack(unit) ? 0 : CeilOf(std::int64_t(tree_.leaves_per_unit) * planes(), kSwitchesPerRack);
    int left = unit.nodes;
    for (std::int64_t r = 0; r < unit.racks; ++r) {
      const int here = std::min(left, floor_.nodes_per_rack);
      left -= here;
      const std::int64_t rack = unit.first + r + (r >= unit.racks / 2 ? network : 0);
      Add(Segment::kNodeLeaf, rack, unit.leaves, cables * here);
    }
  }

  // Every other row runs back, so that neighbours stay neighbours where the line bends.
  std::int64_t ColumnOf(std::int64_t rack) const {
    const std::int64_t row = floor_.racks_per_row, column = rack % row;
    return rack / row % 2 == 0 ? column : row - 1 - column;
  }

  void Add(Segment segment, std::int64_t from, std::int64_t to, std::int64_t cables) {
    const std::int64_t row = floor_.racks_per_row;
    const std::int64_t along = std::abs(ColumnOf(from) - ColumnOf(to)) * kRackDecimetres;
    const std::int64_t across = std::abs(from / row - to / row) * design_.request.hall.row_metres * 10;
    const std::int64_t metres =
        from == to ? kInRackMetres : CeilOf(along + across, 10) + std::int64_t{2} * kDropMetres;
    lengths_[segment][int(std::min<std::int64_t>(metres, 1'000'000))] += cables;
  }

  const Design& design_;
  const Tree& tree_;
  Floor floor_;
  std::int64_t next_ = 0;  // rack
  std::size_t unit_ = 0;
  std::int64_t cores_ = 0;
  std::vector<Pod> pods_;
  std::map<Segment, std::map<int, std::int64_t>> lengths_;
};

}  // namespace

std::variant<Laid, Refusal> LayOut(const Design& design) {
  Line line(design);
  line.Measure();
  Laid laid{line.floor(), {}};
  for (const auto& [segment, lengths] : line.lengths()) {
    std::map<Medium, CableRun> runs;
    for (const auto& [metres, cables] : lengths) {
      const CableType* const type = CableFor(design.link_gbps, metres);
      if (type == nullptr) {
        return Refusal{
            RefusalReason::kOutOfReach,
            fmt::format("{} would be {} m, and no cable of {} Gb/s reaches more than {} m: take more "
                        "racks per row, more nodes per rack or shorter rows",
                        SegmentName(segment), metres, design.link_gbps, LongestReach(design.link_gbps))};
      }
      CableRun& run =
          runs.try_emplace(type->medium, CableRun{segment, type->medium, 0, metres, metres}).first->second;
      run.cables += cables;
      run.longest = metres;
    }
    for (const auto& [medium, run] : runs) laid.cables.push_back(run);
  }
  return laid;
}

}  // namespace heddle::sizing
