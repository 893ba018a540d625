#include "placement/preemption.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <set>

#include "placement/embedding.h"
#include "placement/gang_classes.h"
#include "placement/search.h"
#include "placement/spares.h"

namespace heddle::placement {
namespace {

class Trials {
 public:
  Trials(ClusterState& state, const GangRequest& request, const std::vector<Victim>& victims)
      : state_(state),
        request_(request),
        victims_(victims),
        require_(EffectiveRequirements(request)),
        classes_(ClassesOf(request, require_)) {}

  // What the gang needs free once these have ended; nothing where it has no place then.
  std::optional<std::set<topology::NodeId>> NodesAfter(const std::vector<int>& ended) {
    ++count_;
    const ClusterState::Savepoint before = state_.Mark();
    for (const int v : ended) {
      for (const Victim::Hold& hold : victims_[std::size_t(v)].holds) {
        state_.Free(hold.node, hold.gpus, hold.resources);
      }
    }
    std::optional<std::set<topology::NodeId>> nodes;
    if (const auto place = PlaceBesideSpares()) nodes = NodesNeeded(state_, request_, *place);
    state_.Rollback(before);
    return nodes;
  }
  bool Fits(const std::vector<int>& ended) { return NodesAfter(ended).has_value(); }
  int count() const { return count_; }

 private:
  std::optional<std::vector<PodPlacement>> PlaceBesideSpares() {
    const SparesHeld held(state_, SparesLeftBy(request_));
    return Place();
  }

  // Counting refuses most trials; what it does not refuse may still fail at a leaf or a spine.
  std::optional<std::vector<PodPlacement>> Place() {
    if (classes_.uniform && CellsDecide(state_.dense(), classes_)) {
      Embedding embedding(state_, request_, classes_);
      embedding.Measure({});
      if (!embedding.fits()) return std::nullopt;
    }
    SearchResult result = FindPlace(state_, request_, require_, {});
    if (!result.found) return std::nullopt;
    return std::move(result.found->pods);
  }

  ClusterState& state_;
  const GangRequest& request_;
  const std::vector<Victim>& victims_;
  const std::vector<Requirement> require_;
  const GangClasses classes_;
  int count_ = 0;
};

int GpusOf(const Victim& victim) {
  return std::accumulate(victim.holds.begin(), victim.holds.end(), 0,
                         [](int sum, const Victim::Hold& hold) { return sum + std::popcount(hold.gpus); });
}

// The cheapest first; of equals the one that frees most, then the first.
std::vector<int> ByCost(const std::vector<Victim>& victims) {
  std::vector<int> order(victims.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&victims](int a, int b) {
    const Victim &one = victims[std::size_t(a)], &other = victims[std::size_t(b)];
    if (one.cost != other.cost) return one.cost < other.cost;
    return GpusOf(one) > GpusOf(other);
  });
  return order;
}

// The shortest run of the order that makes room; the whole order is known to. More free GPUs never make a
// gang lose its place, so halving finds it.
std::vector<int> ShortestRun(Trials& trials, const std::vector<int>& order) {
  std::size_t fails = 0, works = order.size();
  while (works - fails > 1) {
    const std::size_t middle = (fails + works) / 2;
    const std::vector<int> run(order.begin(), order.begin() + std::ptrdiff_t(middle));
    (trials.Fits(run) ? works : fails) = middle;
  }
  return {order.begin(), order.begin() + std::ptrdiff_t(works)};
}

// Those among them whose GPUs, or whose CPU and memory, a place that needs these nodes waits for.
std::vector<int> Touched(const std::vector<Victim>& victims, const std::vector<int>& ended,
                         const std::set<topology::NodeId>& nodes) {
  std::vector<int> touched;
  for (const int v : ended) {
    const auto& holds = victims[std::size_t(v)].holds;
    if (std::any_of(holds.begin(), holds.end(),
                    [&nodes](const Victim::Hold& hold) { return nodes.contains(hold.node); })) {
      touched.push_back(v);
    }
  }
  return touched;
}

// Spares whoever is not needed, the dearest first: at once those who stand on no node that the gang needs, then one by
// one.
void Spare(Trials& trials, const std::vector<Victim>& victims, std::vector<int>& ended) {
  if (const auto nodes = trials.NodesAfter(ended)) ended = Touched(victims, ended, *nodes);
  int budget = kMostTrials;
  for (std::size_t i = ended.size(); i > 0 && ended.size() > 1 && budget > 0; --i, --budget) {
    std::vector<int> fewer = ended;
    fewer.erase(fewer.begin() + std::ptrdiff_t(i - 1));
    const auto nodes = trials.NodesAfter(fewer);
    if (!nodes) continue;
    // Whoever comes later in the order was needed beside more of them, and is needed now.
    ended = Touched(victims, fewer, *nodes);
    i = std::min(i, ended.size() + 1);
  }
}

double CostOf(const std::vector<Victim>& victims, const std::vector<int>& ended) {
  return std::accumulate(ended.begin(), ended.end(), 0.0,
                         [&victims](double sum, int v) { return sum + victims[std::size_t(v)].cost; });
}

}  // namespace

VictimChoice ChooseVictims(ClusterState& state, const GangRequest& request,
                           const std::vector<Victim>& victims) {
  Trials trials(state, request, victims);
  VictimChoice choice;
  const auto answer = [&](std::vector<int> ended) {
    std::sort(ended.begin(), ended.end());
    choice = {true, std::move(ended), 0, trials.count()};
    choice.cost = CostOf(victims, choice.victims);
    return choice;
  };
  if (trials.Fits({})) return answer({});
  const std::vector<int> order = ByCost(victims);
  if (order.empty() || !trials.Fits(order)) {
    choice.trials = trials.count();
    return choice;
  }
  std::vector<int> several = ShortestRun(trials, order);
  Spare(trials, victims, several);
  // One alone may be cheaper than several that come before it in the order.
  const double bound = CostOf(victims, several);
  int budget = kMostTrials - 1;
  for (const int v : order) {
    if (victims[std::size_t(v)].cost >= bound || budget-- == 0) break;
    if (trials.Fits({v})) return answer({v});
  }
  return answer(std::move(several));
}

}  // namespace heddle::placement
