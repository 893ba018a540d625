#include "placement/defragment.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "placement/defragment_trials.h"

namespace heddle::placement {
namespace {

using Chosen = std::vector<const OpenablePlace*>;

// With so few sets of places every one is weighed.
constexpr std::int64_t kMostSets = 5000;
// Of the places that are not opened, how many are looked at for an exchange.
constexpr std::size_t kMostExchanged = 16;

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct Answer {
  Chosen places;
  std::vector<GangMove> moves;
  double cost = 0;
};

std::int64_t SetsOf(std::size_t places, int chosen) {
  std::int64_t sets = 1;
  for (int i = 0; i < chosen; ++i) {
    sets = sets * (std::int64_t(places) - i) / (i + 1);
    if (sets > kMostSets) return kMostSets + 1;
  }
  return sets;
}

// Do these moves leave the place whole as they are? Then it may be one of those that have to be.
bool IsEmptiedBy(const OpenablePlace& place, const std::set<int>& moving,
                 const std::vector<GangMove>& moves) {
  const auto moved = [&](int gang) { return moving.contains(gang); };
  if (!std::all_of(place.gangs.begin(), place.gangs.end(), moved)) return false;
  return std::none_of(moves.begin(), moves.end(), [&](const GangMove& move) {
    return std::any_of(move.plan.pods.begin(), move.plan.pods.end(), [&](const PodPlacement& pod) {
      return pod.gpus != 0 &&
             std::find(place.nodes.begin(), place.nodes.end(), pod.node) != place.nodes.end();
    });
  });
}

class Search {
 public:
  Search(DefragmentTrials& trials, const std::vector<OpenablePlace>& places) : trials_(trials) {
    std::vector<std::tuple<double, int, const OpenablePlace*>> keyed;
    keyed.reserve(places.size());
    for (const OpenablePlace& place : places) {
      keyed.emplace_back(trials_.CostBeside(place, {}), place.gpus, &place);
    }
    // What is whole costs nothing and comes first; of equals the smallest, and then the first.
    std::stable_sort(keyed.begin(), keyed.end(), [](const auto& x, const auto& y) {
      return std::pair(std::get<0>(x), std::get<1>(x)) < std::pair(std::get<0>(y), std::get<1>(y));
    });
    for (const auto& [cost, gpus, place] : keyed) places_.push_back(place);
  }

  std::optional<Answer> Run(int count) {
    if (SetsOf(places_.size(), count) <= kMostSets) return Weighed(count);
    std::optional<Answer> answer = Greedy(count);
    if (answer) Exchange(*answer);
    return answer;
  }
  // The most places up to `count` that were opened together, one after the other.
  int Most(int count) {
    Greedy(count);
    return reached_;
  }

 private:
  // All sets, the cheapest first. A set costs at least the gangs on it; more where others had to make room.
  std::optional<Answer> Weighed(int count) {
    std::vector<std::pair<double, Chosen>> sets;
    std::vector<char> picked(places_.size(), 0);
    std::fill(picked.begin(), picked.begin() + count, 1);
    do {
      Chosen set;
      for (std::size_t i = 0; i < picked.size(); ++i) {
        if (picked[i] != 0) set.push_back(places_[i]);
      }
      const double cost = trials_.CostOf(set);
      sets.emplace_back(cost, std::move(set));
    } while (std::prev_permutation(picked.begin(), picked.end()));
    std::stable_sort(sets.begin(), sets.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::optional<Answer> best;
    for (const auto& [cost, set] : sets) {
      if (trials_.exhausted() || (best && cost >= best->cost)) break;
      Try(set, best);
    }
    return best;
  }

  void Try(const Chosen& set, std::optional<Answer>& best) {
    auto moves = trials_.Open(set, best ? best->cost : kNoLimit);
    if (!moves) return;
    const double cost = trials_.CostOf(*moves);
    if (!best || cost < best->cost) best = Answer{set, *std::move(moves), cost};
  }

  // One place after the other, each time the one that adds least.
  std::optional<Answer> Greedy(int count) {
    Answer answer;
    Chosen left = places_;
    std::set<int> moving;
    while (int(answer.places.size()) < count) {
      if (left.empty() || trials_.exhausted()) return std::nullopt;
      auto next = left.begin();
      double least = kNoLimit;
      for (auto place = left.begin(); place != left.end() && least > 0; ++place) {
        const double added = trials_.CostBeside(**place, moving);
        if (added >= least) continue;
        least = added;
        next = place;
      }
      Chosen with = answer.places;
      with.push_back(*next);
      left.erase(next);
      if (IsEmptiedBy(*with.back(), moving, answer.moves)) {
        answer.places = std::move(with);
        reached_ = std::max(reached_, int(answer.places.size()));
        continue;
      }
      auto moves = trials_.Open(with, kNoLimit);
      if (!moves) continue;
      moving.insert(with.back()->gangs.begin(), with.back()->gangs.end());
      answer = {std::move(with), *std::move(moves), 0};
      reached_ = std::max(reached_, int(answer.places.size()));
    }
    answer.cost = trials_.CostOf(answer.moves);
    return answer;
  }

  // One place for another, as long as that is cheaper.
  void Exchange(Answer& answer) {
    for (bool better = true; better && !trials_.exhausted();) {
      better = false;
      for (std::size_t i = 0; i < answer.places.size() && !better; ++i) {
        std::size_t looked = 0;
        for (const OpenablePlace* other : places_) {
          if (looked == kMostExchanged) break;
          if (std::find(answer.places.begin(), answer.places.end(), other) != answer.places.end()) continue;
          Chosen with = answer.places;
          with[i] = other;
          if (trials_.CostOf(with) >= answer.cost) continue;
          ++looked;
          std::optional<Answer> best = answer;
          Try(with, best);
          if (best->cost >= answer.cost) continue;
          answer = *std::move(best);
          better = true;
          break;
        }
      }
    }
  }

  DefragmentTrials& trials_;
  std::vector<const OpenablePlace*> places_;
  int reached_ = 0;
};

int FreeGpus(const ClusterState& state) {
  int free = 0;
  for (std::size_t n = 0; n < state.fabric().nodes.size(); ++n) free += state.free_gpus(topology::NodeId(n));
  return free;
}

// What the smallest places that could be the answer have together.
int GpusOfSmallest(const std::vector<OpenablePlace>& places, int count) {
  std::vector<int> sizes;
  sizes.reserve(places.size());
  for (const OpenablePlace& place : places) sizes.push_back(place.gpus);
  std::sort(sizes.begin(), sizes.end());
  return std::accumulate(sizes.begin(), sizes.begin() + count, 0);
}

std::string_view PlacesPhrase(const DefragmentGoal& goal) {
  return goal.level == Level::kUnit ? "scalable units" : "NVLink domains";
}

void Refuse(DefragmentRefusal why, const DefragmentGoal& goal, const OpenablePlaces& openable, int free,
            Defragmentation& answer) {
  answer.refusal = why;
  const std::string wanted = fmt::format("{} whole {} wanted", goal.places, PlacesPhrase(goal));
  switch (why) {
    case DefragmentRefusal::kTooFewPlaces:
      answer.sentence = fmt::format("{}, and the fabric has {} with {} GPUs or more", wanted,
                                    openable.large_enough, std::max(1, goal.min_gpus));
      break;
    case DefragmentRefusal::kPinned:
      answer.sentence = fmt::format(
          "{}; of the {} that are large enough, {} hold GPUs that no movable gang has or that are out of use",
          wanted, openable.large_enough, openable.large_enough - int(openable.places.size()));
      break;
    case DefragmentRefusal::kTooFewFree:
      answer.sentence = fmt::format("{}: {} GPUs or more, and {} are free in all", wanted,
                                    GpusOfSmallest(openable.places, goal.places), free);
      break;
    case DefragmentRefusal::kNoRoom:
      answer.sentence = fmt::format("{}; moves were found for {} of them", wanted, answer.most);
      break;
  }
}

}  // namespace

Defragmentation PlanDefragmentation(ClusterState& state, const std::vector<RunningGang>& gangs,
                                    const DefragmentGoal& goal) {
  Defragmentation answer;
  answer.whole_before = answer.whole_after = CountWhole(state, goal);
  if (answer.whole_before >= goal.places) return answer;
  const OpenablePlaces openable = FindOpenable(state, gangs, goal);
  answer.most = answer.whole_before;
  const int free = FreeGpus(state);
  if (openable.large_enough < goal.places) {
    Refuse(DefragmentRefusal::kTooFewPlaces, goal, openable, free, answer);
    return answer;
  }
  DefragmentTrials trials(state, gangs, goal);
  Search search(trials, openable.places);
  if (int(openable.places.size()) < goal.places) {
    answer.most = std::max(answer.most, search.Most(int(openable.places.size())));
    answer.trials = trials.trials();
    Refuse(DefragmentRefusal::kPinned, goal, openable, free, answer);
    return answer;
  }
  if (GpusOfSmallest(openable.places, goal.places) > free) {
    Refuse(DefragmentRefusal::kTooFewFree, goal, openable, free, answer);
    return answer;
  }
  std::optional<Answer> found = search.Run(goal.places);
  if (!found) {
    answer.stuck = trials.stuck();
    answer.stuck_refusal = trials.stuck_refusal();
    answer.most = std::max(answer.most, search.Most(goal.places));
    answer.trials = trials.trials();
    Refuse(DefragmentRefusal::kNoRoom, goal, openable, free, answer);
    return answer;
  }
  for (const OpenablePlace* place : found->places) {
    if (!place->gangs.empty()) answer.opened.push_back(place->id);
  }
  std::sort(answer.opened.begin(), answer.opened.end());
  answer.cost = found->cost;
  const ClusterState::Savepoint before = state.Mark();
  for (const GangMove& move : found->moves) {
    const RunningGang& gang = gangs[std::size_t(move.gang)];
    for (const PodPlacement& pod : gang.pods) {
      if (const std::uint32_t gpus = trials.HealthyOf(pod)) state.Free(pod.node, gpus, {});
    }
    for (const PodPlacement& pod : move.plan.pods) {
      if (pod.gpus != 0) state.Take(pod.node, pod.gpus, {});
    }
  }
  answer.whole_after = CountWhole(state, goal);
  state.Rollback(before);
  answer.moves = std::move(found->moves);
  answer.trials = trials.trials();
  return answer;
}

}  // namespace heddle::placement
