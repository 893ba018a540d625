#include "placement/anneal.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "base/random.h"
#include "placement/embedding.h"
#include "placement/nearby.h"

namespace heddle::placement {
namespace {

using topology::NodeId;

constexpr std::size_t kMostNodes = 64;  // of the gang and near it
constexpr double kAllWeight = 0.5;      // of how all groups lie, against what the worst could gain

class Annealer {
 public:
  Annealer(const ClusterState& state, const GangRequest& request, const GangClasses& classes,
           Pricing& pricing, const std::vector<PodPlacement>& pods, std::uint64_t lot)
      : state_(state),
        request_(request),
        classes_(classes),
        pricing_(pricing),
        pods_(pods),
        cables_differ_(state.dense().gpus_differ()),
        random_(lot) {
    for (std::size_t p = 0; p < pods_.size(); ++p) {
      if (request.pods[p].gpus > 0) movable_.push_back(p);
    }
    for (const auto& list : request.allowed_nodes) {
      auto& bits = allowed_.emplace_back(state.fabric().nodes.size(), 0);
      for (NodeId n : list) {
        if (n >= 0 && std::size_t(n) < bits.size()) bits[std::size_t(n)] = 1;
      }
    }
    alike_ = std::all_of(request.pods.begin(), request.pods.end(),
                         [&request](const PodRequest& pod) { return pod == request.pods.front(); });
    nodes_ = NodesNear(state, pods, kMostNodes);
    for (const FillOrder& order : FillOrders(request, classes)) {
      auto& place = lines_.emplace_back(pods_.size(), 0);
      for (std::size_t i = 0; i < order.pods.size(); ++i) place[std::size_t(order.pods[i])] = int(i);
    }
    for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kEp, Axis::kDp, Axis::kPp, Axis::kFsdp}) LineUpBy(axis);
  }

  void ToFaster(int trials, Front& front) {
    Search(trials, EnergyOf(pricing_.Price(pods_)), [&](double most) -> std::optional<double> {
      const Quality tried = pricing_.Price(pods_);
      const double energy = EnergyOf(tried);
      if (energy > most || Broken()) return std::nullopt;
      if (tried.step_micros < front.fastest().quality.step_micros) front.Offer(pods_, tried);
      return energy;
    });
  }

  // Returns the least spread met, whatever it costs.
  std::vector<PodPlacement> ToLessSpread(int trials, std::int64_t least, Spread& spread, Front& front) {
    std::vector<PodPlacement> nearest = pods_;
    const Spread::Reach start = spread.Of(pods_);
    const double gap = double(std::max<std::int64_t>(1, start.worst - least));
    const auto far = [&](const Spread::Reach& reach) {
      return double(reach.worst - least) + kAllWeight * gap * double(reach.all) / double(start.all);
    };
    const auto energy_of = [&](double reach, const Quality& quality) {
      const double over =
          double(quality.step_micros) / double(std::max<std::int64_t>(1, front.limit_micros()));
      return over <= 1 ? reach : reach * over * over;
    };
    std::int64_t nearest_spread = start.worst;
    const double first = energy_of(far(start), pricing_.Price(pods_));
    Search(trials, first, [&](double most) -> std::optional<double> {
      const Spread::Reach reach = spread.Of(pods_);
      const double bare = far(reach);
      if (bare > most) return std::nullopt;
      const Quality tried = pricing_.Price(pods_);
      const double energy = energy_of(bare, tried);
      if (energy > most || Broken()) return std::nullopt;
      if (reach.worst < front.chosen_spread()) front.Offer(pods_, tried);
      if (reach.worst < nearest_spread) {
        nearest_spread = reach.worst;
        nearest = pods_;
      }
      return energy;
    });
    return nearest;
  }

 private:
  // `try_it` says the energy of pods_ where that is at most what it is told and keeps every requirement.
  template <class Try>
  void Search(int trials, double energy, const Try& try_it) {
    if (movable_.size() < 2 || nodes_.size() < 2) return;
    constexpr double kFirst = 0.3, kLast = 0.002;  // of the energy
    const int looks = trials * 8;                  // most moves that keep no requirement cost no trial
    int tried = 0;
    for (int look = 0; look < looks && tried < trials; ++look) {
      before_ = pods_;
      if (!Move() || pods_ == before_ || !Keeps()) {
        pods_ = before_;
        continue;
      }
      const double left = 1 - double(tried++) / trials;
      const double threshold = kLast + (kFirst - kLast) * left * left * left;
      if (const auto now = try_it(energy * (1 + threshold * random_.Unit()))) {
        energy = *now;
      } else {
        pods_ = before_;
      }
    }
  }

  bool Broken() const { return FirstBroken(state_.dense(), request_, classes_, pods_).has_value(); }

  // The slowest group of each axis sets the price, so that mending one of several shows in the edges alone.
  static double EnergyOf(const Quality& quality) {
    const auto sum = [](const auto& counts) {
      return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    };
    const std::int64_t edges = sum(quality.edges) + 2 * sum(quality.leaf_crossings) + quality.rail_misaligned;
    constexpr double kWeight = 0.0005;
    return double(quality.step_micros) * (1 + kWeight * double(edges)) + double(edges) * 1e-3;
  }

  // The pods of each group of the axis one after another.
  void LineUpBy(Axis axis) {
    // Not a structured binding: clang 14 does not let a lambda have one.
    const AxisStride cut = StrideOf(request_.parallelism, axis);
    const std::int64_t stride = cut.stride, size = cut.size;
    if (size < 2) return;
    std::vector<std::size_t> pods = movable_;
    const auto key = [&, block = stride * size](std::size_t pod) {
      const std::int64_t rank = classes_.first_rank[pod];
      return std::pair(rank / block * block + rank % stride, rank);
    };
    std::sort(pods.begin(), pods.end(), [&key](std::size_t a, std::size_t b) { return key(a) < key(b); });
    auto& place = lines_.emplace_back(pods_.size(), 0);
    for (std::size_t i = 0; i < pods.size(); ++i) place[pods[i]] = int(i);
  }

  std::size_t AnyPod() { return movable_[random_.Below(movable_.size())]; }
  NodeId AnyNode() { return nodes_[random_.Below(nodes_.size())]; }

  // False = not possible; pods_ may be half changed then.
  bool Move() {
    switch (random_.Below(cables_differ_ ? 12 : 10)) {
      case 0:
      case 1:
        return Exchange(AnyPod(), AnyPod());
      case 2:
      case 3:
        return MoveOne(AnyPod(), AnyNode());
      case 4:
        return Trade(AnyNode(), AnyNode());
      case 5:
        return MoveNeighbours(AnyPod(), AnyNode());
      case 6:
      case 7:
        return Pour(random_.Below(2) == 0 ? Tier::kUnit : Tier::kDomain, AnyPod(), AnyNode());
      case 8:
      case 9:
        return Deal();
      case 10:
        return TakeAs(AnyPod(), AnyPod());
      default:
        return TradeGpu(AnyPod());
    }
  }

  bool Exchange(std::size_t a, std::size_t b) {
    if (pods_[a] == pods_[b]) return false;
    const NodeId left = pods_[a].node, right = pods_[b].node;
    if (request_.pods[a].gpus == request_.pods[b].gpus) {
      std::swap(pods_[a], pods_[b]);
      return left == right || (Holds(left) && Holds(right));
    }
    if (left == right) return false;
    std::swap(pods_[a].node, pods_[b].node);
    return Lay(left) && Lay(right);
  }

  bool MoveOne(std::size_t pod, NodeId node) {
    const int size = request_.pods[pod].gpus;
    pods_[pod].gpus = 0;
    const std::uint32_t open = state_.open_gpus(node) & ~UsedOn(node);
    const int fit = std::popcount(open) / size;
    if (fit == 0) return false;
    const auto slots = SlotsOf(open, state_.dense().odd_gpus(node), size, fit, false);
    pods_[pod] = {node, slots[random_.Below(slots.size())]};
    return Holds(node);
  }

  // The GPUs at the other pod's positions: the same rails.
  bool TakeAs(std::size_t pod, std::size_t other) {
    const std::uint32_t wanted = pods_[other].gpus, own = pods_[pod].gpus;
    const std::uint32_t open = state_.open_gpus(pods_[pod].node);
    if (wanted == own || std::popcount(wanted) != std::popcount(own) || (wanted & ~open) != 0) return false;
    // Who has some of them gets as many of the pod's own.
    std::uint32_t given_up = own & ~wanted;
    for (const std::size_t p : movable_) {
      if (p == pod || pods_[p].node != pods_[pod].node) continue;
      for (std::uint32_t taken = pods_[p].gpus & wanted; taken != 0; taken &= taken - 1) {
        pods_[p].gpus ^= (taken & -taken) | (given_up & -given_up);
        given_up &= given_up - 1;
      }
    }
    pods_[pod].gpus = wanted;
    return true;
  }

  // One GPU of the pod for another of its node.
  bool TradeGpu(std::size_t pod) {
    const std::uint32_t own = pods_[pod].gpus, others = state_.open_gpus(pods_[pod].node) & ~own;
    if (others == 0) return false;
    const auto any_of = [this](std::uint32_t gpus) {
      for (std::uint64_t skip = random_.Below(std::uint64_t(std::popcount(gpus))); skip > 0; --skip) {
        gpus &= gpus - 1;
      }
      return gpus & -gpus;
    };
    const std::uint32_t given = any_of(own), taken = any_of(others);
    for (const std::size_t p : movable_) {
      if (pods_[p].node == pods_[pod].node && (pods_[p].gpus & taken) != 0) pods_[p].gpus ^= given | taken;
    }
    pods_[pod].gpus ^= given | taken;
    return true;
  }

  // The contents of two nodes.
  bool Trade(NodeId a, NodeId b) {
    if (a == b) return false;
    std::uint32_t on_a = 0, on_b = 0;
    for (const std::size_t p : movable_) {
      if (pods_[p].node == a) on_a |= pods_[p].gpus;
      if (pods_[p].node == b) on_b |= pods_[p].gpus;
    }
    if ((on_a | on_b) == 0) return false;
    for (const std::size_t p : movable_) {
      NodeId& node = pods_[p].node;
      if (node == a || node == b) node = node == a ? b : a;
    }
    if ((on_a & ~state_.open_gpus(b)) == 0 && (on_b & ~state_.open_gpus(a)) == 0) return Holds(a) && Holds(b);
    return Lay(a) && Lay(b);
  }

  // As many pods that follow each other in some line as a node has room for.
  bool MoveNeighbours(std::size_t first, NodeId node) {
    const auto& line = lines_[random_.Below(lines_.size())];
    const int most = 2 + int(random_.Below(7)), begin = line[first];
    std::uint32_t open = state_.open_gpus(node) & ~UsedOn(node);
    int room = std::popcount(open), moved = 0;
    std::vector<std::size_t> chosen;
    for (const std::size_t p : movable_) {
      if (line[p] >= begin && line[p] < begin + most && pods_[p].node != node) chosen.push_back(p);
    }
    std::sort(chosen.begin(), chosen.end(),
              [&line](std::size_t a, std::size_t b) { return line[a] < line[b]; });
    for (const std::size_t p : chosen) {
      if (room < request_.pods[p].gpus) break;
      room -= request_.pods[p].gpus;
      pods_[p].node = node;
      ++moved;
    }
    return moved > 0 && Lay(node);
  }

  // All pods of two cells once more, the second cell filled first: what units hold is gathered or traded, which single
  // moves reach only through places that spread more.
  bool Pour(Tier tier, std::size_t pod, NodeId node) {
    const DenseFabric& dense = state_.dense();
    const std::int32_t from = dense.cell(tier, pods_[pod].node), to = dense.cell(tier, node);
    if (from == to) return false;
    members_.clear();
    for (const std::int32_t cell : {from, to}) {
      for (const std::size_t p : movable_) {
        if (dense.cell(tier, pods_[p].node) == cell) members_.push_back(p);
      }
    }
    if (random_.Below(2) == 0) {
      const auto& line = lines_[random_.Below(lines_.size())];
      std::sort(members_.begin(), members_.end(),
                [&line](std::size_t a, std::size_t b) { return line[a] < line[b]; });
    }
    const bool backwards = random_.Below(2) == 0;
    for (const std::int32_t cell : {to, from}) {
      for (std::size_t i = 0; i < nodes_.size() && !members_.empty(); ++i) {
        const NodeId n = nodes_[backwards ? nodes_.size() - 1 - i : i];
        if (dense.cell(tier, n) == cell && !PourInto(n)) return false;
      }
    }
    return members_.empty();
  }

  // As many of members_ as the node takes, in their order, which are then no members any more.
  bool PourInto(NodeId node) {
    std::uint32_t open = state_.open_gpus(node);
    bool any = false;
    std::erase_if(members_, [&](std::size_t p) {
      const PodRequest& pod = request_.pods[p];
      if (std::popcount(open) < pod.gpus || (pod.allowed && !allowed_[*pod.allowed][std::size_t(node)]))
        return false;
      pods_[p] = {node, SlotsOf(open, state_.dense().odd_gpus(node), pod.gpus, 1, false).front()};
      open &= ~pods_[p].gpus;
      return any = true;
    });
    return !any || Holds(node);
  }

  // The pods of some nodes once more over their places, in another line.
  bool Deal() {
    const std::size_t most = random_.Below(4) == 0 ? nodes_.size() : 2 + random_.Below(3);
    const auto& line = lines_[random_.Below(lines_.size())];
    std::vector<NodeId> dealt;
    std::vector<std::size_t> members;
    while (dealt.size() < most) {
      const NodeId node = most == nodes_.size() ? nodes_[dealt.size()] : pods_[AnyPod()].node;
      dealt.push_back(node);
    }
    for (std::size_t i = dealt.size(); i > 1; --i) std::swap(dealt[i - 1], dealt[random_.Below(i)]);
    std::vector<PodPlacement> places;
    const int size = request_.pods[movable_.front()].gpus;
    for (std::size_t i = 0; i < dealt.size(); ++i) {
      if (std::find(dealt.begin(), dealt.begin() + std::ptrdiff_t(i), dealt[i]) !=
          dealt.begin() + std::ptrdiff_t(i)) {
        continue;
      }
      const std::size_t before = places.size();
      for (const std::size_t p : movable_) {
        if (pods_[p].node != dealt[i]) continue;
        if (request_.pods[p].gpus != size) return false;
        places.push_back(pods_[p]);
        members.push_back(p);
      }
      std::sort(places.begin() + std::ptrdiff_t(before), places.end(),
                [](const PodPlacement& a, const PodPlacement& b) { return a.gpus < b.gpus; });
    }
    std::sort(members.begin(), members.end(),
              [&line](std::size_t a, std::size_t b) { return line[a] < line[b]; });
    for (std::size_t i = 0; i < members.size(); ++i) pods_[members[i]] = places[i];
    return std::all_of(dealt.begin(), dealt.end(), [this](NodeId node) { return Holds(node); });
  }

  std::uint32_t UsedOn(NodeId node) const {
    std::uint32_t used = 0;
    for (const std::size_t p : movable_) used |= pods_[p].node == node ? pods_[p].gpus : 0;
    return used;
  }

  // The gang's pods on a node take GPUs anew, in rank order.
  bool Lay(NodeId node) {
    std::uint32_t open = state_.open_gpus(node);
    for (const std::size_t p : movable_) {
      if (pods_[p].node != node) continue;
      const int size = request_.pods[p].gpus;
      if (std::popcount(open) < size) return false;
      pods_[p].gpus = SlotsOf(open, state_.dense().odd_gpus(node), size, 1, false).front();
      open &= ~pods_[p].gpus;
    }
    return Holds(node);
  }

  // Whether the node has room for what the gang's pods there want beside GPUs, and they may be there.
  bool Holds(NodeId node) const {
    if (alike_) {
      const auto there = [node](const PodPlacement& pod) { return pod.node == node; };
      const int pods = int(std::count_if(pods_.begin(), pods_.end(), there));
      const PodRequest& pod = request_.pods.front();
      return pods == 0 || ((!pod.allowed || allowed_[*pod.allowed][std::size_t(node)]) &&
                           state_.usable(node) && state_.Copies(node, pod.resources, pods) >= pods);
    }
    Resources sum;
    std::int64_t count = 0;
    for (std::size_t p = 0; p < pods_.size(); ++p) {
      if (pods_[p].node != node) continue;
      const PodRequest& pod = request_.pods[p];
      if (pod.allowed && !allowed_[*pod.allowed][std::size_t(node)]) return false;
      ++count;
      sum.milli_cpu += pod.resources.milli_cpu;
      sum.memory_bytes += pod.resources.memory_bytes;
      for (const auto& [name, amount] : pod.resources.extended) {
        const auto at =
            std::lower_bound(sum.extended.begin(), sum.extended.end(), name,
                             [](const auto& known, const auto& other) { return known.first < other; });
        if (at != sum.extended.end() && at->first == name) {
          at->second += amount;
        } else {
          sum.extended.insert(at, {name, amount});
        }
      }
    }
    return count == 0 ||
           (state_.usable(node) && count <= state_.node(node).free_pods && state_.Fits(node, sum));
  }

  bool Keeps() { return KeepsClasses(state_.dense(), classes_, pods_, cell_of_class_); }

  const ClusterState& state_;
  const GangRequest& request_;
  const GangClasses& classes_;
  Pricing& pricing_;
  std::vector<PodPlacement> pods_, before_;
  std::vector<std::size_t> movable_, members_;
  bool alike_ = false;  // all pods are
  const bool cables_differ_;
  std::vector<std::vector<char>> allowed_;
  std::vector<NodeId> nodes_;
  std::vector<std::vector<int>> lines_;  // by order of the axes: a pod's position
  std::vector<std::int32_t> cell_of_class_;
  base::Random random_;
};

// Walked from the best so far once for each: what one draw of moves does not come by another may.
std::span<const std::uint64_t> LotsFor(std::int64_t world) {
  constexpr std::int64_t kWalkedTwice = 128;  // ranks
  static constexpr std::array<std::uint64_t, 2> kLots{1, 2};
  return std::span(kLots).first(world <= kWalkedTwice ? 2 : 1);
}

}  // namespace

void Anneal(const ClusterState& state, const GangRequest& request, const GangClasses& classes,
            Pricing& pricing, int trials, Front& front) {
  if (trials <= 0) return;
  for (const std::uint64_t lot : LotsFor(request.parallelism.world())) {
    Annealer(state, request, classes, pricing, front.fastest().pods, lot).ToFaster(trials, front);
  }
}

void Gather(const ClusterState& state, const GangRequest& request, const GangClasses& classes,
            Pricing& pricing, int trials, std::int64_t least, Spread& spread, Front& front) {
  if (trials <= 0) return;
  for (const std::uint64_t lot : LotsFor(request.parallelism.world())) {
    if (front.chosen_spread() <= least) return;
    const std::vector<PodPlacement> nearest =
        Annealer(state, request, classes, pricing, front.chosen().pods, lot)
            .ToLessSpread(trials, least, spread, front);
    Annealer(state, request, classes, pricing, nearest, lot).ToFaster(trials / 2, front);
  }
}

int AnnealTrialsFor(std::int64_t world) {
  if (world > 256) return 0;
  return int(world <= 64 ? 2000 : (1 << 16) / world);
}

int GatherTrialsFor(std::int64_t world) {
  return AnnealTrialsFor(world) / (world <= 64 ? 2 : 4);
}

}  // namespace heddle::placement
