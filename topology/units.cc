#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "topology/wiring.h"

namespace heddle::topology {
namespace {

using LeafSet = std::vector<LeafId>;  // sorted, each once

// Hosts with exactly the same leaves.
struct HostClass {
  LeafSet leaves;
  std::vector<NodeId> nodes;  // sorted
};

std::vector<HostClass> ClassesOf(const Wiring& wiring, std::size_t node_count) {
  std::map<LeafSet, std::vector<NodeId>> by_leaves;
  LeafSet leaves;
  auto last = by_leaves.end();  // of the host before: neighbours are mostly of one class
  for (std::size_t n = 0; n < node_count; ++n) {
    leaves.clear();
    for (std::size_t c = wiring.first_cable[n]; c < wiring.first_cable[n + 1]; ++c) {
      leaves.push_back(wiring.cables[c].leaf);
    }
    std::sort(leaves.begin(), leaves.end());
    leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
    if (leaves.empty()) continue;
    if (last == by_leaves.end() || last->first != leaves) last = by_leaves.try_emplace(leaves).first;
    last->second.push_back(NodeId(n));
  }
  std::vector<HostClass> classes;
  classes.reserve(by_leaves.size());
  for (auto& [set, nodes] : by_leaves) classes.push_back(HostClass{set, std::move(nodes)});
  // The largest first: they are what the others are compared with. Of equal ones that with the most leaves: of two
  // hosts the one that misses rails belongs to the other, and not the other to it.
  std::sort(classes.begin(), classes.end(), [](const HostClass& a, const HostClass& b) {
    if (a.nodes.size() != b.nodes.size()) return a.nodes.size() > b.nodes.size();
    if (a.leaves.size() != b.leaves.size()) return a.leaves.size() > b.leaves.size();
    return a.nodes.front() < b.nodes.front();
  });
  return classes;
}

// Puts classes together to units.
class Grouping {
 public:
  explicit Grouping(std::size_t leaf_count) : units_of_leaf_(leaf_count) {}

  // Returns the unit of the class, new if none has most of its leaves.
  UnitId Join(const HostClass& hosts) {
    // A lone host with half of its leaves here and half there has a wrong cable; many such hosts are a unit.
    const bool half_is_enough =
        hosts.nodes.size() == 1 && std::all_of(hosts.leaves.begin(), hosts.leaves.end(), [&](LeafId leaf) {
          return !units_of_leaf_[std::size_t(leaf)].empty();
        });
    const std::size_t enough = half_is_enough ? (hosts.leaves.size() + 1) / 2 : hosts.leaves.size() / 2 + 1;
    UnitId best = kNone;
    std::size_t most = 0;
    for (const UnitId unit : Candidates(hosts.leaves, enough)) {
      const auto count =
          std::size_t(std::count_if(hosts.leaves.begin(), hosts.leaves.end(), [&](LeafId leaf) {
            const std::vector<UnitId>& units = units_of_leaf_[std::size_t(leaf)];
            return std::binary_search(units.begin(), units.end(), unit);
          }));
      if (count > most) std::tie(best, most) = std::pair(unit, count);
    }
    if (most < enough) {
      best = count_++;
      for (const LeafId leaf : hosts.leaves) units_of_leaf_[std::size_t(leaf)].push_back(best);
      return best;
    }
    for (const LeafId leaf : hosts.leaves) {
      if (units_of_leaf_[std::size_t(leaf)].empty()) units_of_leaf_[std::size_t(leaf)].push_back(best);
    }
    return best;
  }
  int count() const { return count_; }

 private:
  // The units that may have `enough` of the leaves: they have one of any so many that too few would be left.
  // Looked for on the leaves that the fewest units have: a leaf that all hosts share says nothing.
  std::vector<UnitId> Candidates(LeafSet leaves, std::size_t enough) const {
    std::stable_sort(leaves.begin(), leaves.end(), [&](LeafId a, LeafId b) {
      return units_of_leaf_[std::size_t(a)].size() < units_of_leaf_[std::size_t(b)].size();
    });
    leaves.resize(leaves.size() - enough + 1);
    std::vector<UnitId> candidates;
    for (const LeafId leaf : leaves) {
      const std::vector<UnitId>& units = units_of_leaf_[std::size_t(leaf)];
      candidates.insert(candidates.end(), units.begin(), units.end());
    }
    std::sort(candidates.begin(), candidates.end());
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    return candidates;
  }

  std::vector<std::vector<UnitId>> units_of_leaf_;  // ascending
  int count_ = 0;
};

void NumberBySmallestNode(Units& units) {
  std::vector<UnitId> number(std::size_t(units.count), kNone);
  UnitId next = 0;
  for (UnitId& unit : units.of_node) {
    if (unit == kNone) continue;
    if (number[std::size_t(unit)] == kNone) number[std::size_t(unit)] = next++;
    unit = number[std::size_t(unit)];
  }
}

struct Vote {
  UnitId unit;
  Slot slot;
  LeafId leaf;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 in it for a pointer
  friend auto operator<=>(const Vote&, const Vote&) = default;
};

// Decides, slot by slot, where the cables of a unit should end.
class Election {
 public:
  Election(const Wiring& wiring, const std::vector<UnitId>& unit_of_node)
      : wiring_(wiring), outside_(wiring.leaves.size(), 0) {
    votes_.reserve(wiring.cables.size());
    for (const Cable& cable : wiring.cables) {
      ++outside_[std::size_t(cable.leaf)];
      if (cable.slot.rail != kNone) {
        votes_.push_back({unit_of_node[std::size_t(cable.node)], cable.slot, cable.leaf});
      }
    }
    SortVotes();
  }

  std::vector<Expectation> Run() && {
    for (std::size_t begin = 0; begin < votes_.size();) {
      std::size_t end = begin;
      while (end < votes_.size() && votes_[end].unit == votes_[begin].unit &&
             votes_[end].slot == votes_[begin].slot)
        ++end;
      Decide(begin, end);
      begin = end;
    }
    AddSecondLeaves();
    std::sort(expectations_.begin(), expectations_.end(), [](const Expectation& a, const Expectation& b) {
      return std::tie(a.unit, a.slot, a.second, a.leaf) < std::tie(b.unit, b.slot, b.second, b.leaf);
    });
    return std::move(expectations_);
  }

 private:
  // Dealt out to the units first: what is left to sort is small.
  void SortVotes() {
    std::vector<std::size_t> next;
    for (const Vote& vote : votes_) {
      if (std::size_t(vote.unit) + 1 >= next.size()) next.resize(std::size_t(vote.unit) + 2, 0);
      ++next[std::size_t(vote.unit) + 1];
    }
    std::partial_sum(next.begin(), next.end(), next.begin());
    const std::vector<std::size_t> first = next;
    std::vector<Vote> sorted(votes_.size());
    for (const Vote& vote : votes_) sorted[next[std::size_t(vote.unit)]++] = vote;
    for (std::size_t u = 0; u + 1 < first.size(); ++u) {
      std::sort(sorted.begin() + std::ptrdiff_t(first[u]), sorted.begin() + std::ptrdiff_t(first[u + 1]));
    }
    votes_ = std::move(sorted);
  }

  // A leaf that is not declared for another rail; then most votes; then a leaf that no other rail of the unit
  // has; then the one with the fewest cables of others; then by name. The third rule decides for two hosts of
  // which one has two cables swapped.
  void Decide(std::size_t begin, std::size_t end) {
    const Vote& slot = votes_[begin];
    Expectation best{slot.unit, slot.slot, kNone, 0, int(end - begin), false};
    auto best_rank = std::tuple(true, 0, true, 0);
    for (std::size_t from = begin; from < end;) {
      std::size_t to = from;
      while (to < end && votes_[to].leaf == votes_[from].leaf) ++to;
      const LeafId leaf = votes_[from].leaf;
      const int count = int(to - from);
      const auto taken = rail_of_.find({slot.unit, leaf});
      const bool is_taken = taken != rail_of_.end() && taken->second != slot.slot.rail;
      const bool contradicts = wiring_.Contradicts(leaf, slot.slot);
      const auto rank = std::tuple(contradicts, -count, is_taken, outside_[std::size_t(leaf)] - count);
      if (best.leaf == kNone || rank < best_rank) {
        best_rank = rank;
        best.leaf = leaf;
        best.votes = count;
      }
      if (count >= 2 && !contradicts)
        runners_up_.push_back({slot.unit, slot.slot, leaf, count, int(end - begin), true});
      from = to;
    }
    rail_of_.emplace(std::pair(slot.unit, best.leaf), slot.slot.rail);
    expectations_.push_back(best);
  }

  // A leaf that two hosts or more agree on and that is nobody's first is the slot's second leaf, not an
  // error.
  void AddSecondLeaves() {
    std::vector<bool> first(outside_.size(), false);
    for (const Expectation& expectation : expectations_) first[std::size_t(expectation.leaf)] = true;
    for (const Expectation& candidate : runners_up_) {
      if (!first[std::size_t(candidate.leaf)]) expectations_.push_back(candidate);
    }
  }

  const Wiring& wiring_;
  std::vector<Vote> votes_;
  std::vector<int> outside_;  // cables on a leaf
  std::map<std::pair<UnitId, LeafId>, std::int16_t> rail_of_;
  std::vector<Expectation> expectations_;
  std::vector<Expectation> runners_up_;
};

}  // namespace

const Expectation* Units::Find(UnitId unit, const Slot& slot) const {
  if (unit == kNone) return nullptr;
  const auto begin = expectations.begin() + std::ptrdiff_t(first_expectation[std::size_t(unit)]);
  const auto end = expectations.begin() + std::ptrdiff_t(first_expectation[std::size_t(unit) + 1]);
  const auto found =
      std::lower_bound(begin, end, slot, [](const Expectation& e, const Slot& key) { return e.slot < key; });
  return found != end && found->slot == slot ? &*found : nullptr;
}

bool Units::Fits(UnitId unit, const Cable& cable) const {
  const Expectation* expectation = Find(unit, cable.slot);
  if (expectation == nullptr) return true;
  const Expectation* const end = expectations.data() + expectations.size();
  for (; expectation != end && expectation->unit == unit && expectation->slot == cable.slot; ++expectation) {
    if (expectation->leaf == cable.leaf) return true;
  }
  return false;
}

Units FindUnits(const Wiring& wiring, std::size_t node_count) {
  Units units;
  units.of_node.assign(node_count, kNone);
  Grouping grouping(wiring.leaves.size());
  for (const HostClass& hosts : ClassesOf(wiring, node_count)) {
    const UnitId unit = grouping.Join(hosts);
    for (const NodeId node : hosts.nodes) units.of_node[std::size_t(node)] = unit;
  }
  units.count = grouping.count();
  NumberBySmallestNode(units);
  units.expectations = Election(wiring, units.of_node).Run();
  units.first_expectation.assign(std::size_t(units.count) + 1, 0);
  for (const Expectation& e : units.expectations) ++units.first_expectation[std::size_t(e.unit) + 1];
  std::partial_sum(units.first_expectation.begin(), units.first_expectation.end(),
                   units.first_expectation.begin());
  return units;
}

}  // namespace heddle::topology
