#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "crds/fabric.h"
#include "operator/assembly.h"
#include "operator/switch_verdicts.h"
#include "operator/ufm_watch.h"
#include "topology/suspects.h"

namespace heddle::operators {

inline constexpr std::string_view kConditionStale = "Stale";  // Fabric: some agent has fallen silent
inline constexpr std::string_view kConditionComplete =
    "Complete";  // Fabric: every node's report could be used
inline constexpr std::string_view kConditionUniform =
    "Uniform";  // Fabric: no node has fewer parts than others of its kind

inline constexpr std::string_view kConditionLossless =
    "Lossless";  // Fabric: both ends of each cable to and between switches that are asked go together; absent
                 // where no cable of a host is judged and none between switches contradicts
inline constexpr std::string_view kConditionLinksHealthy =
    "LinksHealthy";  // Fabric: no cable, host or leaf is suspected

// Fabric: its UFM answers, and proves who it is; its counters are read. Both absent where spec names none.
inline constexpr std::string_view kConditionUfmReachable = "UfmReachable";
inline constexpr std::string_view kConditionUfmCounted = "UfmCounted";

inline constexpr std::string_view kReasonNoNodes = "NoNodes";  // of Ready

struct FabricView {
  const std::string& name;
  const Assembly& assembly;
  const std::set<std::string>& stale_nodes;
  const SwitchVerdicts* verdicts = nullptr;  // null: nobody has compared any cable yet
  std::vector<topology::Suspect> suspects;   // of this fabric, the worst first
  bool asks_ufm = false;                     // spec names one
  const UfmAnswer* ufm = nullptr;            // null: nobody has asked it yet
};

// What the status of Fabric `name` should say. Conditions whose status has not changed keep their times, so
// equal facts give an equal status.
crds::FabricStatus DesiredStatus(const FabricView& view, const crds::FabricStatus& current,
                                 std::int64_t generation, base::WallTime now);

// For events: faults that are new, and those that are gone.
struct FaultChanges {
  std::vector<topology::CablingFault> found;
  std::vector<topology::CablingFault> gone;
};
FaultChanges CompareFaults(const crds::FabricStatus& before, const crds::FabricStatus& after);

// Likewise suspects, by what they are and what they are suspected of.
struct SuspectChanges {
  std::vector<topology::Suspect> found;
  std::vector<topology::Suspect> gone;
};
SuspectChanges CompareSuspects(const crds::FabricStatus& before, const crds::FabricStatus& after);

// "a, b, c and 4 more"
std::string SomeOf(const std::vector<std::string>& names, std::size_t limit, std::string_view between = ", ");

}  // namespace heddle::operators
