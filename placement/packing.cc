#include "placement/packing.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "placement/count_sums.h"
#include "placement/embedding.h"

namespace heddle::placement {
namespace {

using topology::NodeId;

constexpr std::size_t kMostKinds = 256;
// Where much is free a few of the fullest ways find a place at once.
constexpr std::size_t kBeam = 32;
constexpr std::int64_t kEndless = std::int64_t(1) << 62;

std::int64_t Sum(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? kEndless : std::min(out, kEndless);
}
std::int64_t Product(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? kEndless : std::min(out, kEndless);
}

// What pods want of a node and what a node has, in one order: GPUs, pods, CPU, memory, then each extended resource
// that a pod of the gang wants.
using Amounts = std::vector<std::int64_t>;
constexpr std::size_t kGpus = 0, kPods = 1, kCpu = 2, kMemory = 3, kExtended = 4;

// A tier at which something is decided, and what there is of it.
struct Level {
  Tier tier = Tier::kNode;
  std::vector<std::int32_t> kind_of_class;
  std::vector<std::int32_t> count;  // classes by kind
  std::vector<std::int64_t> gpus;   // by kind
  CountRows parts;  // by kind: classes of the level below, by their kind; of nodes: pods by kind
  std::vector<std::vector<std::int32_t>> members;  // by class: those classes or pods
  std::vector<std::int32_t> shape_of_cell;
};

// Cells that hold the same.
struct Shape {
  CountRows held;                      // the largest counts of classes by kind
  std::vector<std::int32_t> children;  // shapes of the level below, ascending; none of a node
  std::optional<CountSums> sums;       // what the children hold together, by kind of the level below
};

class Packer {
 public:
  Packer(const ClusterState& state, const GangRequest& request, const GangClasses& classes,
         std::int64_t budget)
      : state_(state), dense_(state.dense()), request_(request), classes_(classes), budget_(budget) {}

  Packing Run() {
    Packing out;
    if (!NameLevels() || !ReadNodes()) return out;
    for (std::size_t l = 1; l < levels_.size(); ++l) {
      if (!ReadCells(l)) return out;
    }
    const auto root = std::size_t(levels_.back().shape_of_cell.front());
    if (!AtMost(levels_.back().count, shapes_.back()[root].held[0])) {
      out.outcome = Packing::Outcome::kImpossible;
      return out;
    }
    out.pods.assign(request_.pods.size(), {});
    std::vector<std::int32_t> all(levels_.back().kind_of_class.size());
    std::iota(all.begin(), all.end(), 0);
    Assign(levels_.size() - 1, 0, all, out.pods);
    if (!FirstBroken(dense_, request_, classes_, out.pods)) out.outcome = Packing::Outcome::kFound;
    return out;
  }

 private:
  // False = too many kinds.
  bool NameLevels() {
    NamePods();
    bool nvlink = false;
    for (const bool needs : classes_.needs_nvlink) nvlink = nvlink || needs;
    for (int t = 0; t < kTierCount; ++t) {
      const std::size_t classes = classes_.gpus[std::size_t(t)].size();
      const bool joins = t == 0 || classes != classes_.gpus[std::size_t(t) - 1].size();
      const bool knows = Tier(t) == Tier::kDomain && nvlink && !dense_.all_known(Tier::kDomain);
      if (!joins && !knows && Tier(t) != Tier::kRoot) continue;
      if (!NameKinds(Tier(t))) return false;
    }
    return true;
  }

  void NamePods() {
    for (const PodRequest& pod : request_.pods) {
      for (const auto& [name, amount] : pod.resources.extended) extended_.push_back(name);
    }
    std::sort(extended_.begin(), extended_.end());
    extended_.erase(std::unique(extended_.begin(), extended_.end()), extended_.end());
    using Wish = std::pair<Amounts, std::int64_t>;
    std::map<Wish, std::int32_t> known;
    for (const PodRequest& pod : request_.pods) {
      Wish wish{WantOf(pod), pod.allowed ? std::int64_t(*pod.allowed) : -1};
      const auto [at, fresh] = known.emplace(std::move(wish), std::int32_t(pods_.size()));
      if (fresh) pods_.push_back(&pod);
      kind_of_pod_.push_back(at->second);
    }
  }

  Amounts WantOf(const PodRequest& pod) const {
    Amounts want(kExtended + extended_.size(), 0);
    want[kGpus] = pod.gpus;
    want[kPods] = 1;
    want[kCpu] = pod.resources.milli_cpu;
    want[kMemory] = pod.resources.memory_bytes;
    for (const auto& [name, amount] : pod.resources.extended) {
      const auto at = std::lower_bound(extended_.begin(), extended_.end(), name) - extended_.begin();
      want[kExtended + std::size_t(at)] = Sum(want[kExtended + std::size_t(at)], amount);
    }
    return want;
  }

  // Classes with as many of every kind below are one kind.
  bool NameKinds(Tier tier) {
    const auto& of_pod = classes_.of_pod[std::size_t(tier)];
    Level level;
    level.tier = tier;
    level.members.resize(classes_.gpus[std::size_t(tier)].size());
    const Level* below = levels_.empty() ? nullptr : &levels_.back();
    std::vector<char> seen(below != nullptr ? below->members.size() : 0, 0);
    for (std::size_t p = 0; p < of_pod.size(); ++p) {
      auto& members = level.members[std::size_t(of_pod[p])];
      if (below == nullptr) {
        members.push_back(std::int32_t(p));
        continue;
      }
      const std::int32_t part = classes_.of_pod[std::size_t(below->tier)][p];
      if (std::exchange(seen[std::size_t(part)], 1) == 0) members.push_back(part);
    }
    const auto& kind_of = below != nullptr ? below->kind_of_class : kind_of_pod_;
    const std::size_t kinds_below = below != nullptr ? below->count.size() : pods_.size();
    if (kinds_below > kMostKinds) return false;
    level.parts = CountRows(kinds_below);
    std::map<std::vector<std::int32_t>, std::int32_t> known;
    for (const auto& members : level.members) {
      std::vector<std::int32_t> kinds;
      kinds.reserve(members.size());
      for (const std::int32_t member : members) kinds.push_back(kind_of[std::size_t(member)]);
      std::sort(kinds.begin(), kinds.end());
      const auto [at, fresh] = known.emplace(kinds, std::int32_t(level.count.size()));
      if (fresh) AddKind(kinds, level);
      ++level.count[std::size_t(at->second)];
      level.kind_of_class.push_back(at->second);
    }
    levels_.push_back(std::move(level));
    shapes_.emplace_back();
    return levels_.back().count.size() <= kMostKinds;
  }

  void AddKind(const std::vector<std::int32_t>& members, Level& level) const {
    std::vector<std::int32_t> parts(level.parts.kinds(), 0);
    std::int64_t gpus = 0;
    for (const std::int32_t kind : members) {
      ++parts[std::size_t(kind)];
      gpus += levels_.empty() ? pods_[std::size_t(kind)]->gpus : levels_.back().gpus[std::size_t(kind)];
    }
    level.parts.Add(parts);
    level.gpus.push_back(gpus);
    level.count.push_back(0);
  }

  // What a class that shares a node wants of it in all, by kind.
  std::vector<Amounts> NodeWants() const {
    const Level& level = levels_.front();
    std::vector<Amounts> wants(level.count.size(), Amounts(kExtended + extended_.size(), 0));
    for (std::size_t p = 0; p < pods_.size(); ++p) {
      const Amounts one = WantOf(*pods_[p]);
      for (std::size_t k = 0; k < wants.size(); ++k) {
        for (std::size_t a = 0; a < one.size(); ++a) {
          wants[k][a] = Sum(wants[k][a], Product(one[a], level.parts[k][p]));
        }
      }
    }
    return wants;
  }

  // More of it than so much makes no difference on a node with so many GPUs free.
  Amounts Ample(const std::vector<Amounts>& wants, std::int64_t gpus) const {
    const Level& level = levels_.front();
    Amounts most(kExtended + extended_.size(), 0), others = most;
    std::int64_t smallest = kEndless;
    for (std::size_t k = 0; k < wants.size(); ++k) {
      const bool takes = wants[k][kGpus] > 0;
      if (takes) smallest = std::min(smallest, wants[k][kGpus]);
      for (std::size_t a = 0; a < most.size(); ++a) {
        if (takes) most[a] = std::max(most[a], wants[k][a]);
        if (!takes) others[a] = Sum(others[a], Product(wants[k][a], level.count[k]));
      }
    }
    for (std::size_t a = 0; a < most.size(); ++a) most[a] = Sum(Product(most[a], gpus / smallest), others[a]);
    return most;
  }

  Amounts RoomOf(NodeId node) const {
    const NodeState& known = state_.node(node);
    Amounts room(kExtended + extended_.size(), 0);
    room[kGpus] = std::popcount(state_.open_gpus(node) & AllGpus(dense_.gpus(node)));
    room[kPods] = known.free_pods;
    room[kCpu] = known.free_milli_cpu;
    room[kMemory] = known.free_memory_bytes;
    for (const auto& [name, amount] : known.free_extended) {
      const auto at = std::lower_bound(extended_.begin(), extended_.end(), name);
      if (at != extended_.end() && *at == name)
        room[kExtended + std::size_t(at - extended_.begin())] = amount;
    }
    return room;
  }

  // By kind of the nodes' level, whether every pod of it may be on the node.
  std::vector<std::vector<char>> AllowedKinds() const {
    const std::size_t nodes = state_.fabric().nodes.size();
    const Level& level = levels_.front();
    std::vector<std::vector<char>> allowed;
    for (std::size_t k = 0; k < level.count.size(); ++k) {
      auto& bits = allowed.emplace_back(nodes, 1);
      for (std::size_t p = 0; p < pods_.size(); ++p) {
        if (level.parts[k][p] == 0 || !pods_[p]->allowed) continue;
        std::vector<char> own(nodes, 0);
        for (const NodeId n : request_.allowed_nodes[*pods_[p]->allowed]) {
          if (n >= 0 && std::size_t(n) < nodes) own[std::size_t(n)] = 1;
        }
        for (std::size_t n = 0; n < nodes; ++n) bits[n] = char(bits[n] & own[n]);
      }
    }
    return allowed;
  }

  bool ReadNodes() {
    const std::vector<Amounts> wants = NodeWants();
    const std::vector<std::vector<char>> allowed = AllowedKinds();
    Level& level = levels_.front();
    std::map<std::int64_t, Amounts> ample;
    std::map<std::pair<Amounts, std::vector<char>>, std::int32_t> known;
    for (std::int32_t cell = 0; cell < dense_.cells(Tier::kNode); ++cell) {
      const NodeId node = dense_.node_at(cell);
      Amounts room = RoomOf(node);
      const auto [limit, first] = ample.try_emplace(room[kGpus]);
      if (first) limit->second = Ample(wants, room[kGpus]);
      for (std::size_t a = kPods; a < room.size(); ++a) room[a] = std::min(room[a], limit->second[a]);
      std::vector<char> may(wants.size(), 0);
      for (std::size_t k = 0; k < may.size(); ++k) {
        may[k] = char(state_.usable(node) && allowed[k][std::size_t(node)] != 0);
      }
      const auto [at, fresh] = known.emplace(std::pair(room, may), std::int32_t(shapes_.front().size()));
      if (fresh) {
        Shape& shape = shapes_.front().emplace_back();
        shape.held = CountRows(wants.size());
        std::vector<std::int32_t> row(wants.size(), 0);
        if (!ListHeld(wants, may, 0, room, row, shape.held)) return false;
      }
      level.shape_of_cell.push_back(at->second);
    }
    return true;
  }

  // Adds the largest counts that the room holds, the most of the first kinds first: none that comes later holds more.
  bool ListHeld(const std::vector<Amounts>& wants, const std::vector<char>& may, std::size_t kind,
                const Amounts& room, std::vector<std::int32_t>& row, CountRows& held) {
    if (kind == wants.size()) return AddLargest(row, held);
    std::int64_t most = may[kind] != 0 ? levels_.front().count[kind] : 0;
    for (std::size_t a = 0; a < room.size(); ++a) {
      if (wants[kind][a] > 0) most = std::min(most, std::max<std::int64_t>(0, room[a] / wants[kind][a]));
    }
    for (std::int64_t count = most; count >= 0; --count) {
      Amounts left = room;
      for (std::size_t a = 0; a < room.size(); ++a) left[a] -= count * wants[kind][a];
      row[kind] = std::int32_t(count);
      if (!ListHeld(wants, may, kind + 1, left, row, held)) return false;
    }
    row[kind] = 0;
    return true;
  }

  bool AddLargest(const std::vector<std::int32_t>& row, CountRows& held) {
    budget_ -= std::int64_t(row.size() + held.size());
    if (budget_ < 0) return false;
    for (std::size_t r = 0; r < held.size(); ++r) {
      if (AtMost(row, held[r])) return true;
    }
    held.Add(row);
    return true;
  }

  // The cells of the level below that lie in one of this level, as [first, second).
  std::pair<std::int32_t, std::int32_t> ChildrenOf(std::size_t l, std::int32_t cell) const {
    std::int32_t first = cell, last = cell + 1;
    for (int t = int(levels_[l].tier); t > int(levels_[l - 1].tier); --t) {
      first = dense_.children(Tier(t), first).first;
      last = dense_.children(Tier(t), last - 1).second;
    }
    return {first, last};
  }

  bool ReadCells(std::size_t l) {
    Level& level = levels_[l];
    std::map<std::vector<std::int32_t>, std::int32_t> known;
    for (std::int32_t cell = 0; cell < dense_.cells(level.tier); ++cell) {
      const auto [first, last] = ChildrenOf(l, cell);
      const auto& below = levels_[l - 1].shape_of_cell;
      std::vector<std::int32_t> key(below.begin() + first, below.begin() + last);
      std::sort(key.begin(), key.end());
      const bool closed = level.tier == Tier::kDomain && !dense_.known(Tier::kDomain, cell);
      key.push_back(closed ? 1 : 0);
      const auto [at, fresh] = known.emplace(key, std::int32_t(shapes_[l].size()));
      if (fresh) {
        key.pop_back();
        Shape& shape = shapes_[l].emplace_back();
        shape.children = std::move(key);
        if (!ReadShape(l, closed, shape)) return false;
      }
      level.shape_of_cell.push_back(at->second);
    }
    return true;
  }

  // `closed`: what needs NVLink may not be there.
  bool ReadShape(std::size_t l, bool closed, Shape& shape) {
    const Level &level = levels_[l], &below = levels_[l - 1];
    CountSums::Question question;
    for (const std::int32_t child : shape.children) {
      question.parts.push_back(&shapes_[l - 1][std::size_t(child)].held);
    }
    question.limit = below.count;
    question.weight = below.gpus;
    const bool one_class = level.kind_of_class.size() == 1;
    question.all = one_class;
    question.beam = one_class ? kBeam : 0;
    shape.sums.emplace(question);
    if (!shape.sums->Run(budget_)) return false;
    if (one_class && shape.sums->sums().size() == 0) {
      question.beam = 0;
      shape.sums.emplace(std::move(question));
      if (!shape.sums->Run(budget_)) return false;
    }
    shape.held = CountRows(level.count.size());
    const CountRows& sums = shape.sums->sums();
    std::vector<std::int32_t> row(level.count.size(), 0), need(below.count.size(), 0), able(sums.size());
    std::iota(able.begin(), able.end(), 0);
    return ListClasses(level, closed, 0, need, able, sums, row, shape.held);
  }

  // As ListHeld: whole classes, of which the parts are at most one of the sums; `able` are those that hold `need`.
  bool ListClasses(const Level& level, bool closed, std::size_t kind, const std::vector<std::int32_t>& need,
                   const std::vector<std::int32_t>& able, const CountRows& sums,
                   std::vector<std::int32_t>& row, CountRows& held) {
    if (kind == row.size()) return AddLargest(row, held);
    struct Step {
      std::vector<std::int32_t> need, able;
    };
    std::vector<Step> steps{{need, able}};
    const bool barred = closed && level.gpus[kind] > 0;
    for (std::int32_t count = 1; !barred && count <= level.count[kind]; ++count) {
      Step step{steps.back().need, {}};
      for (std::size_t p = 0; p < step.need.size(); ++p) step.need[p] += level.parts[kind][p];
      budget_ -= std::int64_t(steps.back().able.size() + step.need.size());
      if (budget_ < 0) return false;
      for (const std::int32_t sum : steps.back().able) {
        if (AtMost(step.need, sums[std::size_t(sum)])) step.able.push_back(sum);
      }
      if (step.able.empty()) break;
      steps.push_back(std::move(step));
    }
    for (std::size_t count = steps.size(); count-- > 0;) {
      row[kind] = std::int32_t(count);
      if (!ListClasses(level, closed, kind + 1, steps[count].need, steps[count].able, sums, row, held))
        return false;
    }
    row[kind] = 0;
    return true;
  }

  // Gives the parts of these classes to the cells inside. Requires: the cell holds them.
  void Assign(std::size_t l, std::int32_t cell, const std::vector<std::int32_t>& classes,
              std::vector<PodPlacement>& pods) const {
    if (classes.empty()) return;
    if (l == 0) return AssignNode(dense_.node_at(cell), classes, pods);
    const Level &level = levels_[l], &below = levels_[l - 1];
    std::vector<std::deque<std::int32_t>> waiting(below.count.size());  // by kind, in the order of their pods
    for (const std::int32_t c : classes) {
      for (const std::int32_t part : level.members[std::size_t(c)]) {
        waiting[std::size_t(below.kind_of_class[std::size_t(part)])].push_back(part);
      }
    }
    std::vector<std::int32_t> need;
    need.reserve(waiting.size());
    for (const auto& parts : waiting) need.push_back(std::int32_t(parts.size()));
    const Shape& shape = shapes_[l][std::size_t(level.shape_of_cell[std::size_t(cell)])];
    const CountRows& sums = shape.sums->sums();
    std::size_t sum = 0;
    while (sum < sums.size() && !AtMost(need, sums[sum])) ++sum;
    const std::vector<std::int32_t> rows = shape.sums->RowsOf(sum);
    const auto [first, last] = ChildrenOf(l, cell);
    std::vector<std::int32_t> children(std::size_t(last - first));
    std::iota(children.begin(), children.end(), first);
    std::stable_sort(children.begin(), children.end(), [&below](std::int32_t a, std::int32_t b) {
      return below.shape_of_cell[std::size_t(a)] < below.shape_of_cell[std::size_t(b)];
    });
    for (std::size_t c = 0; c < children.size(); ++c) {
      const auto child = std::size_t(below.shape_of_cell[std::size_t(children[c])]);
      const auto most = shapes_[l - 1][child].held[std::size_t(rows[c])];
      std::vector<std::int32_t> given;
      for (std::size_t k = 0; k < waiting.size(); ++k) {
        for (std::int32_t i = 0; i < most[k] && !waiting[k].empty(); ++i) {
          given.push_back(waiting[k].front());
          waiting[k].pop_front();
        }
      }
      Assign(l - 1, children[c], given, pods);
    }
  }

  void AssignNode(NodeId node, const std::vector<std::int32_t>& classes,
                  std::vector<PodPlacement>& pods) const {
    std::vector<std::int32_t> here;
    for (const std::int32_t c : classes) {
      const auto& members = levels_.front().members[std::size_t(c)];
      here.insert(here.end(), members.begin(), members.end());
    }
    std::stable_sort(here.begin(), here.end(), [this](std::int32_t a, std::int32_t b) {
      return request_.pods[std::size_t(a)].gpus > request_.pods[std::size_t(b)].gpus;
    });
    std::uint32_t open = state_.open_gpus(node) & AllGpus(dense_.gpus(node));
    for (const std::int32_t p : here) {
      const int gpus = request_.pods[std::size_t(p)].gpus;
      PodPlacement& place = pods[std::size_t(p)];
      place = {node, gpus > 0 ? SlotsOf(open, dense_.odd_gpus(node), gpus, 1, false).front() : 0};
      open &= ~place.gpus;
    }
  }

  const ClusterState& state_;
  const DenseFabric& dense_;
  const GangRequest& request_;
  const GangClasses& classes_;
  std::int64_t budget_;
  std::vector<std::string> extended_;    // names, sorted
  std::vector<const PodRequest*> pods_;  // by kind, the first of it
  std::vector<std::int32_t> kind_of_pod_;
  std::vector<Level> levels_;  // from nodes to the root
  // By level. A deque: sums point at what the shapes below hold.
  std::vector<std::deque<Shape>> shapes_;
};

}  // namespace

Packing Pack(const ClusterState& state, const GangRequest& request, const GangClasses& classes,
             std::int64_t budget) {
  CHECK(CellsDecide(state.dense(), classes));
  return Packer(state, request, classes, budget).Run();
}

}  // namespace heddle::placement
