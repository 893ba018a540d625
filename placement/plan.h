#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "placement/gang.h"

namespace heddle::placement {

struct PodPlacement {
  topology::NodeId node = topology::kNone;
  std::uint32_t gpus = 0;  // bit = position in Node::gpus; the pod's ranks take them in ascending order
  friend bool operator==(const PodPlacement&, const PodPlacement&) = default;
};

// How good an assignment is, whoever made it: what the demo's table, `explain` and the planner itself read.
struct Quality {
  int tp_groups = 0;
  int tp_groups_in_domain = 0;  // whole inside one NVLink domain
  // Ring edges (group's ranks in order, closed) that leave NVLink and whose two NICs sit on different leaves,
  // per axis; for pp the edges of the chain. TP counts too, though it should have none.
  std::array<std::int64_t, kAxisCount> leaf_crossings{};
  std::array<std::int64_t, kAxisCount> edges{};  // all edges of that axis that leave NVLink
  std::int64_t rail_misaligned = 0;  // edges of every axis that leave NVLink between two different rails
  std::array<std::int64_t, kAxisCount> axis_micros{};  // predicted communication per training step
  std::int64_t step_micros = 0;                        // sum over axes
  int whole_domains_left = 0;  // NVLink domains with every healthy GPU free, afterwards
  friend bool operator==(const Quality&, const Quality&) = default;

  std::int64_t crossings() const { return leaf_crossings[std::size_t(Axis::kDp)]; }
};

// Up to 7 nodes per pod in the same NVLink-domain or unit neighbourhood that could take the pod instead, best
// first. Most pods share their list with others.
struct Substitutes {
  std::vector<std::vector<topology::NodeId>> sets;
  std::vector<std::int32_t> of_pod;  // index into sets; kNone = none. Empty = none at all
  std::span<const topology::NodeId> For(std::size_t pod) const;
  friend bool operator==(const Substitutes&, const Substitutes&) = default;
};

struct Plan {
  std::vector<PodPlacement> pods;  // by pod
  Substitutes substitutes;
  Quality quality;
  std::vector<std::string> explanation;  // sentences, most important first: why here
  friend bool operator==(const Plan&, const Plan&) = default;
};

// Why no plan was made: data that a person can act on, never an Error.
enum class RefusalReason : std::uint8_t {
  kBadRequest,  // the gang contradicts itself: world ≠ GPUs asked for, a TP group no pod order can build
  kTooLargeForDomain,  // no NVLink domain of this fabric could ever hold a TP group
  kTooLargeForFabric,  // more GPUs than exist in any place that meets the requirements
  kNotEnoughFree,      // would fit an empty fabric; others hold the room
  kRequirement,        // enough is free, but no place meets a named requirement
  kNoAllowedNode,      // the pods' own constraints leave no node
  kNotFoundInBudget,   // not decided: the search stopped. Never called infeasible
};
std::string_view RefusalReasonName(RefusalReason reason);  // "TooLargeForDomain", …

// The place that came nearest to what one group, or the gang, needs in one such place.
struct ClosestMiss {
  std::string place;  // "node", "NVLink domain", "scalable unit", "spine", "site", "fabric"
  std::string name;   // "su-3"
  std::int64_t needed_gpus = 0;
  std::int64_t has_gpus =
      0;  // that could be used for it now; in all, where even an empty fabric would not do
  friend bool operator==(const ClosestMiss&, const ClosestMiss&) = default;
};

struct Refusal {
  RefusalReason reason = RefusalReason::kNotEnoughFree;
  // "16 hosts needed in one scalable unit, best has 12 (su-3); 3 gangs hold the rest"
  std::string sentence;
  // Nodes left out, by word: {"Cordoned", 2}, {"TopologyStale", 1}. Sorted by count, then name.
  std::vector<std::pair<std::string, int>> left_out;
  std::optional<ClosestMiss> closest;  // nothing where no one place is nearest
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

using Decision = std::variant<Plan, Refusal>;

}  // namespace heddle::placement
