#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "bench/peers/peers.h"
#include "placement/planner.h"

namespace heddle::quality {

enum class Policy : std::uint8_t { kHeddle, kRacks, kBestFit, kRandom };
inline constexpr std::array<Policy, 4> kPolicies{Policy::kHeddle, Policy::kRacks, Policy::kBestFit,
                                                 Policy::kRandom};
std::string_view PolicyName(Policy policy);

// Where a policy puts a gang. `state` comes back as it was.
peers::Assignment Place(Policy policy, placement::ClusterState& state, const placement::GangRequest& request,
                        base::Random& random);

// What is compared. Smaller is better, but for what is left.
struct Measures {
  int dp_spread = 0, pp_spread = 0;  // the most units that one group of the axis touches
  double dp_crossings = 0, pp_crossings = 0;
  double misaligned = 0;                      // edges between two different rails
  double broken_tp = 0;                       // tp groups over more than one NVLink domain
  double step_ms = 0;                         // predicted communication of a step
  double network_ms = 0;                      // the same without tp
  double whole_domains = 0, whole_units = 0;  // left
};
Measures Measure(const placement::ClusterState& state, const placement::GangRequest& request,
                 const std::vector<placement::PodPlacement>& pods);

// Units of which every healthy GPU is free when `pods` stand too.
int WholeUnitsLeft(const placement::ClusterState& state, const std::vector<placement::PodPlacement>& pods);

}  // namespace heddle::quality
