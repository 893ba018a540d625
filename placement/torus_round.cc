#include "placement/torus_round.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "base/check.h"

namespace heddle::placement {
namespace {

// Pieces that are joined where they are nearest; more of them follow each other as they come.
constexpr int kMostPieces = 32;
// Places moved in order to shorten steps, in all: about half a millisecond.
constexpr std::int64_t kMoves = 1 << 18;
// A round of more places than this that has no long step at all is hardly ever found.
constexpr std::size_t kMostForNeighbours = 128;

// Steps of at most `reach` along every dimension, nearest first: faces, edges, corners.
std::vector<std::array<int, 3>> StepsWithin(int reach) {
  std::vector<std::array<int, 3>> steps;
  for (int x = -reach; x <= reach; ++x) {
    for (int y = -reach; y <= reach; ++y) {
      for (int z = -reach; z <= reach; ++z) {
        if (x != 0 || y != 0 || z != 0) steps.push_back({x, y, z});
      }
    }
  }
  const auto links = [](const std::array<int, 3>& s) {
    return std::abs(s[0]) + std::abs(s[1]) + std::abs(s[2]);
  };
  std::stable_sort(steps.begin(), steps.end(),
                   [&](const auto& a, const auto& b) { return links(a) < links(b); });
  return steps;
}

void CutRange(std::vector<std::array<int, 3>>& places, std::size_t first, std::size_t last,
              std::size_t parts) {
  if (parts < 2) return;
  std::array<int, 3> low = places[first], high = places[first];
  for (std::size_t i = first; i < last; ++i) {
    for (std::size_t d = 0; d < 3; ++d) {
      low[d] = std::min(low[d], places[i][d]);
      high[d] = std::max(high[d], places[i][d]);
    }
  }
  std::size_t along = 0;
  for (std::size_t d = 1; d < 3; ++d) {
    if (high[d] - low[d] > high[along] - low[along]) along = d;
  }
  const std::size_t half = parts / 2, middle = first + (last - first) / parts * half;
  std::nth_element(places.begin() + std::ptrdiff_t(first), places.begin() + std::ptrdiff_t(middle),
                   places.begin() + std::ptrdiff_t(last), [along](const auto& a, const auto& b) {
                     return std::tie(a[along], a) < std::tie(b[along], b);
                   });
  CutRange(places, first, middle, half);
  CutRange(places, middle, last, parts - half);
}

}  // namespace

void CutIntoParts(std::vector<std::array<int, 3>>& places, int parts) {
  CHECK(parts > 0 && places.size() % std::size_t(parts) == 0);
  CutRange(places, 0, places.size(), std::size_t(parts));
}

TorusRounds::TorusRounds(const Sides& torus) : size_(torus), index_at_(std::size_t(Volume(torus)), -1) {}

int TorusRounds::Stretch(std::int32_t a, std::int32_t b) const {
  int longest = 0;
  for (std::size_t d = 0; d < 3; ++d) {
    const int apart = std::abs(places_[std::size_t(a)][d] - places_[std::size_t(b)][d]);
    longest = std::max(longest, std::min(apart, size_[d] - apart));
  }
  return longest;
}

std::int32_t TorusRounds::Neighbour(std::int32_t from, const Place& step) const {
  Place to = places_[std::size_t(from)];
  for (std::size_t d = 0; d < 3; ++d) {
    to[d] += step[d];
    if (to[d] < 0) to[d] += size_[d];
    if (to[d] >= size_[d]) to[d] -= size_[d];
    if (to[d] < 0 || to[d] >= size_[d]) return -1;  // a torus narrower than the step
  }
  return index_at_[At(to)];
}

// The tour of every piece, one after the other: how many pieces there are if steps reach so far.
int TorusRounds::Visit(int reach) {
  const std::vector<Place> steps = StepsWithin(reach);
  seen_.assign(places_.size(), 0);
  order_.clear();
  tours_.clear();
  for (std::int32_t root = 0; root < std::int32_t(places_.size()); ++root) {
    if (seen_[std::size_t(root)] != 0) continue;
    tours_.push_back(order_.size());
    Tour(root, steps);
  }
  return int(tours_.size());
}

// Depth-first, a place of even depth on the way out and one of odd depth on the way back: no two in a row are
// more than three steps of the tree apart, and neither are the last and the first (Sekanina 1960: the cube of
// a connected graph has a Hamiltonian cycle).
void TorusRounds::Tour(std::int32_t root, const std::vector<Place>& steps) {
  std::vector<std::pair<std::int32_t, std::size_t>> path{{root, 0}};  // and the step to try next
  seen_[std::size_t(root)] = 1;
  order_.push_back(root);
  while (!path.empty()) {
    auto& [here, next] = path.back();
    std::int32_t to = -1;
    while (next < steps.size() && to < 0) {
      to = Neighbour(here, steps[next++]);
      if (to >= 0 && seen_[std::size_t(to)] != 0) to = -1;
    }
    if (to >= 0) {
      seen_[std::size_t(to)] = 1;
      if (path.size() % 2 == 0) order_.push_back(to);
      path.emplace_back(to, 0);
      continue;
    }
    if (path.size() % 2 == 0) order_.push_back(here);
    path.pop_back();
  }
}

// Each further piece goes between two places of the round so far, where that is shortest.
void TorusRounds::JoinTours() {
  std::vector<std::int32_t> round(
      order_.begin(), order_.begin() + std::ptrdiff_t(tours_.size() > 1 ? tours_[1] : order_.size()));
  for (std::size_t t = 1; t < tours_.size(); ++t) {
    const auto begin = order_.begin() + std::ptrdiff_t(tours_[t]);
    const auto end = t + 1 < tours_.size() ? order_.begin() + std::ptrdiff_t(tours_[t + 1]) : order_.end();
    const std::int32_t first = *begin, last = *(end - 1);
    std::size_t best = 0;
    int shortest = 0;
    for (std::size_t i = 0; i < round.size(); ++i) {
      const int longest = std::max(Stretch(round[i], first), Stretch(last, round[(i + 1) % round.size()]));
      if (i > 0 && longest >= shortest) continue;
      shortest = longest;
      best = i;
    }
    round.insert(round.begin() + std::ptrdiff_t(best) + 1, begin, end);
  }
  order_ = std::move(round);
}

void TorusRounds::Reverse(std::size_t from, std::size_t to, std::int64_t& budget) {
  const std::size_t all = order_.size();
  std::size_t length = (to + all - from) % all + 1;
  if (2 * length > all) {  // the rest the other way round is the same round
    const std::size_t end = from;
    from = (to + 1) % all;
    to = (end + all - 1) % all;
    length = all - length;
  }
  budget -= std::int64_t(length);
  for (std::size_t k = 0; k < length / 2; ++k) {
    const std::size_t a = (from + k) % all, b = (to + all - k) % all;
    std::swap(order_[a], order_[b]);
    position_[std::size_t(order_[a])] = std::int32_t(a);
    position_[std::size_t(order_[b])] = std::int32_t(b);
  }
}

// Exchanges the step from `at`, and another, for two that are short.
bool TorusRounds::ShortenAt(std::size_t at, int longest, const std::vector<Place>& steps,
                            std::int64_t& budget) {
  const std::size_t all = order_.size();
  const std::int32_t here = order_[at], next = order_[(at + 1) % all];
  for (const Place& step : steps) {
    const std::int32_t other = Neighbour(here, step);
    if (other < 0 || other == here || other == next) continue;
    const auto where = std::size_t(position_[std::size_t(other)]);
    const std::int32_t after = order_[(where + 1) % all];
    if (after == here || Stretch(next, after) > longest) continue;
    Reverse((at + 1) % all, where, budget);
    return true;
  }
  return false;
}

void TorusRounds::Shorten(int longest, std::int64_t budget) {
  const std::vector<Place> steps = StepsWithin(longest);
  bool better = true;
  while (better && budget > 0) {
    better = false;
    for (std::size_t i = 0; i < order_.size() && budget > 0; ++i) {
      if (Stretch(order_[i], order_[(i + 1) % order_.size()]) <= longest) continue;
      better = ShortenAt(i, longest, steps, budget) || better;
    }
  }
}

std::vector<std::array<int, 3>> TorusRounds::Through(const std::vector<Place>& places) {
  places_ = places;
  for (std::size_t i = 0; i < places_.size(); ++i) index_at_[At(places_[i])] = std::int32_t(i);
  if (Visit(1) > kMostPieces) Visit(2);
  if (int(tours_.size()) <= kMostPieces) JoinTours();
  position_.resize(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) position_[std::size_t(order_[i])] = std::int32_t(i);
  if (order_.size() > 3) {
    const std::int64_t budget = std::min<std::int64_t>(kMoves, 64 * std::int64_t(order_.size()));
    Shorten(2, budget);
    if (order_.size() <= kMostForNeighbours) Shorten(1, budget);
  }
  std::vector<Place> round;
  round.reserve(order_.size());
  for (const std::int32_t i : order_) round.push_back(places_[std::size_t(i)]);
  for (const Place& place : places_) index_at_[At(place)] = -1;
  return round;
}

}  // namespace heddle::placement
