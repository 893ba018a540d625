#include "placement/search.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "placement/anneal.h"
#include "placement/backtrack.h"
#include "placement/embedding.h"
#include "placement/improve.h"
#include "placement/packing.h"
#include "placement/pricing.h"
#include "placement/torus_search.h"

namespace heddle::placement {
namespace {

using topology::kNone;
using topology::NodeId;

// Nodes that the fallback search may look at, about 50 ms; a gang that needs more for one descent gets three.
constexpr std::int64_t kSearchBudget = 2'000'000;
// Gangs of at most so many ranks are gathered axis by axis before they are walked.
constexpr std::int64_t kTightWorld = 128, kTightBudget = 400'000;
// Where a place is known and only one that is nearer is looked for.
constexpr std::int64_t kNearerBudget = 200'000;
// Counts that packing may look at, about 20 ms; on large fabrics so many for each node.
constexpr std::int64_t kPackBudget = 4'000'000, kPackPerNode = 256;
// Gangs of at most so many ranks, or so few pods, are worth pricing many of the places that the search comes by. Where
// that is all of them, the answer is exact.
constexpr std::int64_t kSmallWorld = 16;
constexpr std::size_t kFewPods = 4;
constexpr int kPlacesOfSmall = 2000, kPlacesOfExact = 4096;
// Gangs of at most so many ranks, among at most so many nodes, also fill nodes by every even share, and racks
// and units by whole groups.
constexpr std::int64_t kEvenWorld = 256;
constexpr std::size_t kEvenNodes = 4096;
// Pods that differ in nothing but their wishes are counted as if all had them, up to so many ranks.
constexpr std::int64_t kAlikeWorld = 4096;
constexpr std::size_t kFewNodes = 1024;
constexpr std::int64_t kPolishBudget = 50'000;  // nodes looked at; about 2 ms
// Beyond so many ranks reading the spread of a place would cost as much as its price.
constexpr std::int64_t kSpreadWorld = 4096;

// Nothing crosses a leaf or a rail and every GPU is sound.
bool CrossesNothing(const DenseFabric& dense, const Found& found) {
  const Quality& q = found.quality;
  if (q.rail_misaligned != 0) return false;
  if (std::accumulate(q.leaf_crossings.begin(), q.leaf_crossings.end(), std::int64_t{0}) != 0) return false;
  return std::all_of(found.pods.begin(), found.pods.end(), [&dense](const PodPlacement& pod) {
    return pod.node == kNone || (pod.gpus & dense.odd_gpus(pod.node)) == 0;
  });
}

// … and nothing can be faster: servers that pods have whole are all alike to the ranks. In racks, and of pods that
// share servers, who is together decides too.
bool NothingIsFaster(const DenseFabric& dense, const Found& found) {
  if (dense.domains_span_nodes() || !CrossesNothing(dense, found)) return false;
  return std::all_of(found.pods.begin(), found.pods.end(), [&dense](const PodPlacement& pod) {
    return pod.gpus == 0 || std::popcount(pod.gpus) == dense.gpus(pod.node);
  });
}

// Tries the ways to embed a uniform gang and keeps the cheapest that meets what is judged per GPU.
class CountingSearch {
 public:
  CountingSearch(const ClusterState& state, const GangRequest& request, const GangClasses& classes,
                 Pricing& pricing, Front& front)
      : state_(state),
        request_(request),
        classes_(classes),
        pricing_(pricing),
        front_(front),
        embedding_(state, request, classes) {
    // Large gangs are priced rarely: their time is the pricing.
    prices_left_ = int(std::clamp<std::int64_t>((1 << 16) / request.parallelism.world(), 4, 64));
  }

  // The first prices alone: every order once.
  bool RunOnce(std::optional<Found>& best) {
    embedding_.Measure({});
    if (!embedding_.fits()) return false;
    orders_ = FillOrders(request_, classes_);
    for (const FillOrder& order : orders_) {
      Try(order, {});
      if (!order.unclassed.empty()) Try(order, {0, 0, false, true});
    }
    best = best_;
    return best_.has_value();
  }

  // False = the gang does not fit, proved.
  bool Run() {
    embedding_.Measure({});
    if (!embedding_.fits()) return false;
    orders_ = FillOrders(request_, classes_);
    const bool odd = AnyOdd();
    const int budget = prices_left_;
    for (const Grain& grain : Grains()) {
      prices_left_ = budget;
      TryWindows(odd, grain);
      if (done_) break;
    }
    SpareUplinks(odd);
    return true;
  }

 private:
  using Grain = std::pair<Tier, int>;  // pods that a cell of the tier takes at once

  bool AnyOdd() const {
    if (!state_.dense().any_odd_gpus()) return false;
    for (std::size_t n = 0; n < state_.fabric().nodes.size(); ++n) {
      if ((state_.dense().odd_gpus(NodeId(n)) & state_.open_gpus(NodeId(n))) != 0) return true;
    }
    return false;
  }

  void TryWindows(bool odd, const Grain& grain) {
    for (const std::uint32_t window : Windows()) {
      for (int skip = odd ? 1 : 0; skip >= 0; --skip) {
        embedding_.Measure(
            {.skip_odd = skip == 1, .window = window, .grain = grain.second, .grain_tier = grain.first});
        if (embedding_.fits()) TryOrders();
        if (done_ || prices_left_ <= 0) return;
      }
    }
  }

  // Of pods smaller than a node: the groups that a node can hold whole, the largest first; of small gangs, those
  // that units and NVLink domains can; at last single pods.
  std::vector<Grain> Grains() const {
    const int pod = request_.pods[std::size_t(orders_.front().pods.front())].gpus;
    const int most = state_.dense().largest_node() / pod;
    const topology::Fabric& fabric = state_.fabric();
    const bool small = request_.parallelism.world() <= kEvenWorld && fabric.nodes.size() <= kEvenNodes;
    const bool racks =
        std::any_of(fabric.domains.begin(), fabric.domains.end(),
                    [](const topology::NvlinkDomain& domain) { return domain.nodes.size() > 1; });
    std::vector<Grain> grains{{Tier::kNode, 1}};
    for (const FillOrder& order : orders_) {
      for (const std::int64_t ranks : order.grains) {
        const int pods = int(ranks / pod);
        if (ranks % pod != 0 || pods < 2) continue;
        if (pods <= most) grains.push_back({Tier::kNode, pods});
        if (!small) continue;
        if (racks) grains.push_back({Tier::kDomain, pods});
        grains.push_back({Tier::kUnit, pods});
      }
    }
    // A ring over nodes that give it equally many runs at the pace of all their NICs.
    for (int even = 2; small && even <= most; ++even) {
      if (classes_.gpu_pods % even == 0) grains.push_back({Tier::kNode, even});
    }
    std::sort(grains.begin(), grains.end(), std::greater<>());
    grains.erase(std::unique(grains.begin(), grains.end()), grains.end());
    return grains;
  }

  // All GPUs; then one block a node at the same local indexes everywhere, which keeps rings on their rails.
  std::vector<std::uint32_t> Windows() const {
    std::vector<std::uint32_t> windows{~0U};
    if (!state_.dense().gpus_differ()) return windows;
    const int largest = state_.dense().largest_node();
    const int pod =
        classes_.gpus[0][std::size_t(classes_.of_pod[0][std::size_t(orders_.front().pods.front())])];
    const int block =
        classes_.gpus[1][std::size_t(classes_.of_pod[1][std::size_t(orders_.front().pods.front())])];
    const int width = block < largest ? block : pod;
    if (width <= 0 || largest / width < 2 || largest / width > 8) return windows;
    for (int first = 0; first + width <= largest; first += width)
      windows.push_back(((1U << width) - 1) << first);
    return windows;
  }

  // Every order of the axes before the finer choices.
  void TryOrders() {
    constexpr int kCellsTried = 4;
    int ranks = 1;
    std::vector<int> finest(orders_.size(), kMostPassed);
    for (int rank = 0; rank < ranks; ++rank) {
      for (int coarser = 0; coarser <= kMostPassed; ++coarser) {
        for (std::size_t o = 0; o < orders_.size(); ++o) {
          if (coarser > finest[o]) continue;
          Try(orders_[o], {coarser, rank, false});
          finest[o] = std::min(finest[o], embedding_.grains_to_pass());
          ranks = std::max(ranks, std::min(embedding_.cells_to_choose(), kCellsTried));
          if (embedding_.shared_nodes() && state_.dense().gpus_differ())
            Try(orders_[o], {coarser, rank, true});
          if (!orders_[o].unclassed.empty()) Try(orders_[o], {coarser, rank, false, true});
          if (done_ || prices_left_ <= 0) return;
        }
      }
    }
  }

  void Try(const FillOrder& order, const FillChoice& choice) {
    embedding_.Fill(order, choice, trial_);
    if (!IsNew()) return;
    --prices_left_;
    const std::int64_t limit =
        best_ ? std::max(front_.limit_micros(), best_->quality.step_micros) : Pricing::kNoLimit;
    const Quality quality = pricing_.Price(trial_, limit);
    if (best_ && !Better(quality, best_->quality) && !front_.Wants(quality)) return;
    // Cells keep every requirement but those that are judged GPU by GPU.
    if (classes_.judged_by_gpu && FirstBroken(state_.dense(), request_, classes_, trial_)) return;
    front_.Offer(trial_, quality);
    if (best_ && !Better(quality, best_->quality)) return;
    best_ = Found{trial_, quality};
    done_ = Clean();
  }

  // Many choices come to the same places. Two different places with one hash cost a try, nothing else.
  bool IsNew() {
    std::uint64_t hash = 1469598103934665603U;  // FNV-1a, by pod
    for (const PodPlacement& pod : trial_) {
      hash = (hash ^ (std::uint64_t(std::uint32_t(pod.node)) << 32 | pod.gpus)) * 1099511628211U;
    }
    if (std::find(tried_.begin(), tried_.end(), hash) != tried_.end()) return false;
    tried_.push_back(hash);
    return true;
  }

  // Units filled to the brim share their own way up where it is narrow: fewer GPUs of more units may be
  // faster.
  void SpareUplinks(bool odd) {
    const DenseFabric& dense = state_.dense();
    if (!best_ || !dense.oversubscribed() || CrossesNothing(dense, *best_)) return;
    constexpr int kOrdersTried = 4;
    const int largest = state_.dense().largest_node();
    for (const int nodes : {1, 2, 4, 8}) {
      embedding_.Measure({.skip_odd = odd, .most_per_unit = nodes * largest});
      if (odd && !embedding_.fits()) embedding_.Measure({.most_per_unit = nodes * largest});
      if (!embedding_.fits()) continue;
      prices_left_ = std::min(int(orders_.size()), kOrdersTried);
      for (const FillOrder& order : orders_) {
        Try(order, {});
        if (prices_left_ <= 0) break;
      }
    }
  }

  // What is left to gain is small.
  bool Clean() const {
    constexpr std::int64_t kSearchedWell = 64;  // ranks; below, every way is priced
    return request_.parallelism.world() > kSearchedWell && NothingIsFaster(state_.dense(), *best_);
  }

  const ClusterState& state_;
  const GangRequest& request_;
  const GangClasses& classes_;
  Pricing& pricing_;
  Front& front_;
  Embedding embedding_;
  std::vector<FillOrder> orders_;
  std::vector<PodPlacement> trial_;
  std::vector<std::uint64_t> tried_;  // hashes of places
  std::optional<Found> best_;
  int prices_left_ = 0;
  bool done_ = false;
};

bool SameCells(const DenseFabric& dense, const GangClasses& classes, const std::vector<PodPlacement>& pods,
               std::size_t pod, NodeId node) {
  for (int t = 0; t < int(Tier::kRoot); ++t) {
    const auto& of_pod = classes.of_pod[std::size_t(t)];
    if (classes.gpus[std::size_t(t)][std::size_t(of_pod[pod])] == 0) continue;  // alone in its class
    for (std::size_t other = 0; other < pods.size(); ++other) {
      if (other == pod || of_pod[other] != of_pod[pod] || pods[other].node == kNone) continue;
      if (dense.cell(Tier(t), pods[other].node) != dense.cell(Tier(t), node)) return false;
      break;
    }
  }
  return true;
}

// Pods without GPUs go beside the gang where there is room: its own nodes in rank order, then all in cell
// order.
bool PlaceLaunchers(ClusterState& state, const GangRequest& request, const GangClasses& classes,
                    std::vector<PodPlacement>& pods) {
  if (classes.gpu_pods == int(pods.size())) return true;
  const auto mark = state.Mark();
  std::vector<NodeId> order;
  for (std::size_t p = 0; p < pods.size(); ++p) {
    if (request.pods[p].gpus == 0) continue;
    state.Take(pods[p].node, pods[p].gpus, request.pods[p].resources);
    order.push_back(pods[p].node);
  }
  for (std::int32_t cell = 0; cell < state.dense().cells(Tier::kNode); ++cell)
    order.push_back(state.dense().node_at(cell));
  bool all = true;
  for (std::size_t p = 0; p < pods.size() && all; ++p) {
    if (request.pods[p].gpus > 0) continue;
    const auto found = std::find_if(order.begin(), order.end(), [&](NodeId node) {
      const auto& list = request.pods[p].allowed;
      if (list) {
        const auto& nodes = request.allowed_nodes[*list];
        if (!std::binary_search(nodes.begin(), nodes.end(), node)) return false;
      }
      return state.node(node).unusable.empty() && state.Fits(node, request.pods[p].resources) &&
             SameCells(state.dense(), classes, pods, p, node);
    });
    all = found != order.end();
    if (!all) break;
    pods[p] = {*found, 0};
    state.Take(*found, 0, request.pods[p].resources);
  }
  state.Rollback(mark);
  return all;
}

// The gang as if every pod wanted what the most demanding wants: a place for that is one for the gang itself,
// and it can be counted. Nothing where pods differ in GPUs or are bound.
std::optional<GangRequest> AsIfAlike(const GangRequest& request) {
  const PodRequest* first = nullptr;
  std::vector<const std::vector<NodeId>*> lists;
  Resources most;
  std::map<std::string, std::int64_t> extended;
  for (const PodRequest& pod : request.pods) {
    if (pod.gpus == 0) continue;
    if (first == nullptr) first = &pod;
    if (pod.fixed_node || pod.gpus != first->gpus) return std::nullopt;
    if (pod.allowed) lists.push_back(&request.allowed_nodes[*pod.allowed]);
    most.milli_cpu = std::max(most.milli_cpu, pod.resources.milli_cpu);
    most.memory_bytes = std::max(most.memory_bytes, pod.resources.memory_bytes);
    for (const auto& [name, amount] : pod.resources.extended)
      extended[name] = std::max(extended[name], amount);
  }
  if (first == nullptr) return std::nullopt;
  most.extended.assign(extended.begin(), extended.end());
  std::sort(lists.begin(), lists.end());
  lists.erase(std::unique(lists.begin(), lists.end()), lists.end());
  GangRequest alike = request;
  std::optional<std::uint32_t> allowed;
  if (!lists.empty()) {
    std::vector<NodeId> common = *lists.front(), kept;
    for (const auto* list : lists) {
      kept.clear();
      std::set_intersection(common.begin(), common.end(), list->begin(), list->end(),
                            std::back_inserter(kept));
      common.swap(kept);
    }
    allowed = std::uint32_t(alike.allowed_nodes.size());
    alike.allowed_nodes.push_back(std::move(common));
  }
  for (PodRequest& pod : alike.pods) {
    if (pod.gpus == 0) continue;
    pod.resources = most;
    pod.allowed = allowed;
  }
  return alike;
}

bool UsesNetwork(const Quality& quality) {
  return std::any_of(quality.edges.begin(), quality.edges.end(),
                     [](std::int64_t edges) { return edges > 0; });
}

// One question of FindPlace: every way of searching offers what it finds to one front.
class PlaceSearch {
 public:
  PlaceSearch(ClusterState& state, const GangRequest& request, const std::vector<PodPlacement>& hints,
              SearchResult& result)
      : state_(state),
        request_(request),
        classes_(result.classes),
        hints_(hints),
        result_(result),
        world_(request.parallelism.world()),
        pricing_(state, request),
        bound_(std::any_of(request.pods.begin(), request.pods.end(),
                           [](const PodRequest& pod) { return pod.fixed_node.has_value(); })),
        complete_(classes_.gpu_pods == int(request.pods.size())),
        small_(world_ <= kSmallWorld || request.pods.size() <= kFewPods) {
    if (world_ > kSpreadWorld) return;
    spread_.emplace(state, request);
    front_ = Front(&*spread_);
  }

  void Run() {
    if (!Count()) return;
    if (!front_.empty() && !complete_) {
      Improve();
      KeepWithLaunchers();
    }
    const bool counted = !front_.empty();
    if (!counted) {
      const bool few = state_.fabric().nodes.size() <= kFewNodes;  // else a walk may end before all are read
      if (few && !Pack()) return;
      const bool packed = !front_.empty();
      const auto descent = std::int64_t(request_.pods.size()) * std::int64_t(state_.fabric().nodes.size());
      Walk(packed ? std::max(kNearerBudget, descent) : std::max(kSearchBudget, 3 * descent),
           small_ ? kPlacesOfSmall : 1, false);
      if (!few && front_.empty() && result_.gave_up && !Pack()) return;
      if (front_.empty() && result_.gave_up) Walk(kSearchBudget, 1, false, true);
      if (front_.empty()) return;
      result_.gave_up = false;
    }
    if (!TryAll()) {
      if (complete_ && !bound_) Tighten();
      if (complete_ || !counted) Improve();
      // First other nodes, then other GPUs of the nodes.
      if (small_ && WorthWalking()) {
        if (counted) Walk(kPolishBudget, kPlacesOfSmall, false);
        if (!complete_) Walk(kPolishBudget, kPlacesOfSmall, true);
        if (complete_) Improve();
        result_.gave_up = false;
      }
    }
    result_.found = front_.chosen();
  }

 private:
  // False = the gang does not fit, proved.
  bool Count() {
    std::optional<TorusPlace> torus = PlaceOnTorus(state_, request_, classes_, pricing_);
    if (torus && torus->ideal) {
      front_.Offer(torus->pods, torus->quality);
      return true;
    }
    const bool decided = CellsDecide(state_.dense(), classes_);
    if (classes_.uniform && decided) {
      CountingSearch counting(state_, request_, classes_, pricing_, front_);
      if (!counting.Run()) return false;
      if (torus) front_.Offer(torus->pods, torus->quality);
    }
    if (classes_.uniform || !decided || world_ > kAlikeWorld) return true;
    if (const std::optional<GangRequest> alike = AsIfAlike(request_)) {
      const GangClasses as_one = ClassesOf(*alike, classes_.require);
      if (as_one.uniform) CountingSearch(state_, *alike, as_one, pricing_, front_).Run();
    }
    return true;
  }

  // False = there is no place, proved. What is found only says that there is one: pods are not laid out by who talks to
  // whom.
  bool Pack() {
    if (bound_ || !CellsDecide(state_.dense(), classes_)) return true;
    const auto nodes = std::int64_t(state_.fabric().nodes.size());
    const Packing packing =
        placement::Pack(state_, request_, classes_, std::max(kPackBudget, kPackPerNode * nodes));
    if (packing.outcome == Packing::Outcome::kFound) front_.Offer(packing.pods, pricing_.Price(packing.pods));
    if (packing.outcome != Packing::Outcome::kImpossible) return true;
    result_.gave_up = false;
    return false;
  }

  // Among many nodes it is not worth the look at each of them where nothing is crossed.
  bool WorthWalking() const {
    const bool few = state_.fabric().nodes.size() <= kFewNodes;
    return UsesNetwork(front_.chosen().quality) && (few || !CrossesNothing(state_.dense(), front_.chosen()));
  }

  // Every place there is of a small gang, but for those that differ by equal nodes. False = there are too many.
  bool TryAll() {
    if (!small_ || !complete_ || !WorthWalking()) return false;
    const bool all = Walk(kPolishBudget, kPlacesOfExact, true);
    result_.gave_up = false;
    return all;
  }

  // A place where the groups of each axis lie in one NVLink domain, or else in one unit, if they can: the heaviest axis
  // first. A walk reaches that only where every step on its way is no worse.
  void Tighten() {
    if (world_ > kTightWorld || !state_.dense().nested() || NothingIsFaster(state_.dense(), front_.fastest()))
      return;
    Found known = front_.fastest();
    std::vector<Requirement> require = classes_.require;
    for (const Axis axis : {Axis::kTp, Axis::kEp, Axis::kCp, Axis::kFsdp, Axis::kDp, Axis::kPp}) {
      if (request_.parallelism.size(axis) < 2) continue;
      for (const Level level : {Level::kNvlink, Level::kUnit}) {
        require.push_back({axis, level});
        if (FoundTight(require, known)) break;
        require.pop_back();
      }
    }
  }

  // Whether the place known keeps these, or another that is found, which is known then.
  bool FoundTight(const std::vector<Requirement>& require, Found& known) {
    const GangClasses tight = ClassesOf(request_, require);
    if (!FirstBroken(state_.dense(), request_, tight, known.pods)) return true;
    if (tight.uniform) {
      std::optional<Found> best;
      if (!CountingSearch(state_, request_, tight, pricing_, front_).RunOnce(best)) return false;
      known = std::move(*best);
      return true;
    }
    if (state_.fabric().nodes.size() > kFewNodes) return false;
    Packing packing = placement::Pack(state_, request_, tight, kTightBudget);
    if (packing.outcome != Packing::Outcome::kFound) return false;
    known.quality = pricing_.Price(packing.pods);
    known.pods = std::move(packing.pods);
    front_.Offer(known.pods, known.quality);
    return true;
  }

  // What was counted has no place for pods without GPUs yet.
  void KeepWithLaunchers() {
    Found found = front_.chosen();
    front_.Clear();
    if (PlaceLaunchers(state_, request_, classes_, found.pods)) front_.Offer(found.pods, found.quality);
  }

  void Improve() {
    const int trials = bound_ ? 0 : AnnealTrialsFor(world_), climbs = TrialsFor(world_);
    if (trials == 0 && climbs == 0) return;
    Found best = front_.fastest();
    if (UsesNetwork(best.quality) && !NothingIsFaster(state_.dense(), best)) {
      Anneal(state_, request_, classes_, pricing_, trials, front_);
      best = front_.fastest();
    }
    placement::Improve(state_, request_, classes_, pricing_, climbs, best.pods, best.quality);
    front_.Offer(best.pods, best.quality);
    if (!spread_ || trials == 0) return;
    if (!least_spread_) least_spread_ = spread_->Least();
    if (front_.chosen_spread() > *least_spread_) {
      Gather(state_, request_, classes_, pricing_, GatherTrialsFor(world_), *least_spread_, *spread_, front_);
    }
  }

  // The tree of all assignments within the budget, at most the first `places` of them. Returns whether that was all.
  bool Walk(std::int64_t budget, int places, bool every_set, bool largest_first = false) {
    Backtrack search(state_, request_, classes_, hints_, budget);
    if (largest_first) search.PackLargestFirst();
    const Backtrack::Outcome outcome = search.Run(
        [&](const std::vector<PodPlacement>& pods) {
          front_.Offer(pods,
                       pricing_.Price(pods, front_.empty() ? Pricing::kNoLimit : front_.limit_micros()));
          return --places <= 0;
        },
        every_set);
    result_.gave_up = outcome == Backtrack::Outcome::kGaveUp;
    result_.pod_in_conflict = search.pod_in_conflict();
    return search.saw_all();
  }

  ClusterState& state_;
  const GangRequest& request_;
  const GangClasses& classes_;
  const std::vector<PodPlacement>& hints_;
  SearchResult& result_;
  const std::int64_t world_;
  Pricing pricing_;
  const bool bound_;
  const bool complete_;  // no pod is without GPUs
  const bool small_;
  std::optional<Spread> spread_;
  std::optional<std::int64_t> least_spread_;
  Front front_{nullptr};
};

}  // namespace

SearchResult FindPlace(ClusterState& state, const GangRequest& request,
                       const std::vector<Requirement>& require, const std::vector<PodPlacement>& hints) {
  SearchResult result;
  result.classes = ClassesOf(request, require);
  PlaceSearch(state, request, hints, result).Run();
  return result;
}

}  // namespace heddle::placement
