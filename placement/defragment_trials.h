#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "placement/defragment.h"

namespace heddle::placement {

// A domain or unit that may be opened.
struct OpenablePlace {
  std::int32_t id = 0;  // DomainId or UnitId
  std::vector<topology::NodeId> nodes;
  int gpus = 0;            // healthy
  std::vector<int> gangs;  // that stand in it, sorted; empty = it is whole
};

// The places of the goal's level and size without those that nobody can open.
struct OpenablePlaces {
  std::vector<OpenablePlace> places;  // by id
  int large_enough = 0;               // of which `places` are those that no pod or fault pins
};
OpenablePlaces FindOpenable(const ClusterState& state, const std::vector<RunningGang>& gangs,
                            const DefragmentGoal& goal);
// All places of that level and size that are whole.
int CountWhole(const ClusterState& state, const DefragmentGoal& goal);

// Trials of sets of places: can the gangs on them go elsewhere, one after the other? Thread rule: one owner.
class DefragmentTrials {
 public:
  DefragmentTrials(ClusterState& state, const std::vector<RunningGang>& gangs, const DefragmentGoal& goal);

  // The moves that empty these places, or nothing. A gang for which there is no room may have one other gang moved out
  // of its way, if that costs no more than `most`, all together.
  std::optional<std::vector<GangMove>> Open(const std::vector<const OpenablePlace*>& places, double most);
  double CostOf(const std::vector<GangMove>& moves) const;
  // Of the gangs on these places; every one counts once.
  double CostOf(const std::vector<const OpenablePlace*>& places) const;
  // Of the gangs on a place that are not moving already.
  double CostBeside(const OpenablePlace& place, const std::set<int>& moving) const;
  bool exhausted() const { return trials_ >= kMostDefragmentTrials; }
  int trials() const { return trials_; }
  // The last gang that had no place, and why; nothing where it had one that was too slow.
  const std::optional<int>& stuck() const { return stuck_; }
  const std::optional<Refusal>& stuck_refusal() const { return stuck_refusal_; }

  // The bits of a gang's pod that count as free once it ends.
  std::uint32_t HealthyOf(const PodPlacement& pod) const;

 private:
  using Moves = std::vector<GangMove>;
  std::vector<int> GangsOn(const std::vector<const OpenablePlace*>& places) const;
  std::optional<Moves> InOrder(const std::vector<int>& order, double most);
  bool Move(int gang, Moves& moves);
  // Moves another gang first.
  bool MoveBehindAnother(int gang, const std::set<int>& waiting, double most, Moves& moves);
  void Stop(int gang);
  void Start(int gang, const std::vector<PodPlacement>& pods);
  const Quality& BeforeOf(int gang);
  bool TooSlow(const GangMove& move) const;

  ClusterState& state_;
  const std::vector<RunningGang>& gangs_;
  const DefragmentGoal goal_;
  std::vector<std::uint32_t> healthy_;  // by node
  std::vector<char> closed_;            // by node: in a place that is to be opened
  std::vector<int> by_cost_;            // movable gangs, the cheapest first
  std::map<int, Quality> before_;
  std::optional<int> stuck_;
  std::optional<Refusal> stuck_refusal_;
  int trials_ = 0;
};

}  // namespace heddle::placement
