#include "sizing/tree.h"

#include <algorithm>

namespace heddle::sizing {
namespace {

std::int64_t CeilOf(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Uplinks that go with so many downlinks.
int UpFor(int down, Ratio ratio) {
  return int(CeilOf(std::int64_t(down) * ratio.up, ratio.down));
}

// The most downlinks of a switch whose uplinks fit beside them.
int MostDown(int ports, Ratio ratio) {
  int down = int(std::int64_t(ports) * ratio.down / (ratio.down + ratio.up));
  while (down > 0 && down + UpFor(down, ratio) > ports) --down;
  return down;
}

// How switches of one tier hang on those above: `up` uplinks of each, in equal shares on `above` switches.
struct Joint {
  int up = 0, above = 0;
};

// The fewest above with at most `limit` ports for `below` switches; then the fewest uplinks, from `least` to `most`.
std::optional<Joint> JoinBy(std::int64_t below, int least, int most, int limit) {
  std::optional<Joint> best;
  for (int up = std::max(1, least); up <= most; ++up) {
    const std::int64_t fewest = std::max<std::int64_t>(1, CeilOf(below * up, limit));
    for (std::int64_t above = fewest; above <= up && (!best || above < best->above); ++above) {
      if (up % above != 0) continue;
      best = Joint{up, int(above)};
      break;
    }
  }
  return best;
}

// `all` in as many equal parts as parts of `most` are needed; `exact` = parts of that size, and a rest. The largest
// first, in whole multiples of `step`.
std::vector<int> Parts(std::int64_t all, std::int64_t most, bool exact, int step) {
  std::vector<int> parts;
  if (exact) {
    for (std::int64_t left = all; left > 0; left -= most) parts.push_back(int(std::min(left, most)));
    return parts;
  }
  const std::int64_t steps = CeilOf(all, step), count = CeilOf(steps, std::max<std::int64_t>(1, most / step));
  for (std::int64_t i = 0; i < count; ++i) {
    parts.push_back(int((steps / count + (i < steps % count ? 1 : 0)) * step));
  }
  return parts;
}

int UnitsPerPod(const TreeWish& wish) {
  return MostDown(wish.ports, wish.core) / wish.leaves;
}

std::optional<Tree> OneTier(const TreeWish& wish) {
  Tree tree;
  const bool rails = wish.wiring == Wiring::kRailOnly;
  tree.leaves_per_unit = rails ? wish.leaves : 1;
  tree.unit_nodes = {int(wish.nodes)};
  tree.pod_units = {1};
  tree.leaf_down = int(wish.nodes * wish.nics / tree.leaves_per_unit);
  return tree;
}

std::optional<Tree> SeveralTiers(const TreeWish& wish, int tiers) {
  Tree tree;
  tree.tiers = tiers;
  tree.leaves_per_unit = wish.leaves;
  const bool exact = wish.unit_nodes > 0;
  tree.unit_nodes =
      Parts(wish.nodes, exact ? wish.unit_nodes : LargestUnit(wish, tiers), exact, wish.domain_nodes);
  tree.leaf_down = (exact ? wish.unit_nodes : tree.unit_nodes.front()) * wish.nics_per_leaf();
  const auto units = std::int64_t(tree.unit_nodes.size());
  tree.pod_units = tiers == 2 ? std::vector<int>{int(units)} : Parts(units, UnitsPerPod(wish), false, 1);
  const std::int64_t leaves = std::int64_t(tree.pod_units.front()) * wish.leaves;
  const int limit = tiers == 2 ? wish.ports : MostDown(wish.ports, wish.core);
  const auto leaf = JoinBy(leaves, UpFor(tree.leaf_down, wish.leaf), wish.ports - tree.leaf_down, limit);
  if (!leaf) return std::nullopt;
  tree.leaf_up = leaf->up;
  tree.spines_per_pod = leaf->above;
  tree.spine_down = int(leaves * leaf->up / leaf->above);
  if (tiers == 2) return tree;
  const auto spine = JoinBy(std::int64_t(tree.pod_units.size()), UpFor(tree.spine_down, wish.core),
                            wish.ports - tree.spine_down, wish.ports);
  if (!spine) return std::nullopt;
  tree.spine_up = spine->up;
  tree.cores_per_spine = spine->above;
  tree.core_down = int(std::int64_t(tree.pod_units.size()) * spine->up / spine->above);
  return tree;
}

}  // namespace

int LargestUnit(const TreeWish& wish, int tiers) {
  const int down = tiers == 1 ? wish.ports : MostDown(wish.ports, wish.leaf);
  const int ports = tiers == 1 && wish.wiring != Wiring::kRailOnly ? wish.nics : wish.nics_per_leaf();
  return down / ports / wish.domain_nodes * wish.domain_nodes;
}

std::int64_t Capacity(const TreeWish& wish, int tiers) {
  if (tiers > 1 && wish.wiring == Wiring::kRailOnly) return 0;
  const int largest = LargestUnit(wish, tiers);
  if (tiers == 1) return largest;
  const std::int64_t unit = wish.unit_nodes > 0 ? wish.unit_nodes : largest;
  if (unit > largest) return 0;
  if (tiers == 2) return unit * (wish.ports / wish.leaves);
  return unit * UnitsPerPod(wish) * wish.ports;
}

std::optional<Tree> FitTree(const TreeWish& wish, int tiers) {
  if (wish.nodes > Capacity(wish, tiers)) return std::nullopt;
  return tiers == 1 ? OneTier(wish) : SeveralTiers(wish, tiers);
}

}  // namespace heddle::sizing
