#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace heddle::crds {

enum class ConditionStatus : std::uint8_t { kFalse, kTrue, kUnknown };

// The standard Kubernetes condition; a list of them is a map by type, kept sorted by type.
struct Condition {
  std::string type;
  ConditionStatus status = ConditionStatus::kUnknown;
  std::string reason;   // one CamelCase word for programs
  std::string message;  // a sentence for people
  std::int64_t observed_generation = 0;
  base::WallTime last_transition;  // whole seconds
  friend bool operator==(const Condition&, const Condition&) = default;
};

// Null when there is none of that type.
const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type);
bool IsTrue(const std::vector<Condition>& conditions, std::string_view type);

// Adds or replaces the condition of that type. Its time moves only when its status does: a new message on an
// old status is no transition. Returns whether anything changed, its time aside.
bool SetCondition(std::vector<Condition>& conditions, Condition condition);

// Condition types, by kind.
inline constexpr std::string_view kReady = "Ready";          // NodeTopology, Fabric
inline constexpr std::string_view kCabled = "Cabled";        // Fabric: what is wired is what was expected
inline constexpr std::string_view kCollected = "Collected";  // Gang: all pods seen
inline constexpr std::string_view kPlanned = "Planned";      // Gang: every slot is in status.placement
inline constexpr std::string_view kReleased = "Released";    // Gang: every pod is pinned and without our gate
inline constexpr std::string_view kRunning = "Running";      // Gang: every pod is bound
inline constexpr std::string_view kRepairing = "Repairing";  // Gang: a rank looks for a new slot
inline constexpr std::string_view kDegraded =
    "Degraded";  // Gang: a rank has no slot, and the owner must choose
inline constexpr std::string_view kPreempted = "Preempted";  // Gang: it makes room for status.preemptedBy
inline constexpr std::string_view kEnded = "Ended";          // Gang: it holds nothing

}  // namespace heddle::crds
