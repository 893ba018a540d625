#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/status.h"
#include "crds/gang.h"

namespace heddle::cli {

// The parts of a report, one for each kind of object. All are pure and total.

// Where a trouble stands among those of its gravity.
enum TroubleOrder : int {
  kOfGangs,
  kOfNodes,
  kOfGpus,
  kOfSuspects,
  kOfRails,
  kOfCables,
  kOfWaiting,
  kOfPolicies,
  kOfSwitches,
  kOfAgents,
  kOfRest
};

// Once a condition is this old, what should pass by itself has not.
inline constexpr std::chrono::minutes kPatience{10};

// When the condition last changed; nothing where it does not say.
std::optional<base::WallTime> ConditionSince(const crds::Json& condition);

std::vector<Trouble> GangTroubles(const std::vector<crds::Gang>& gangs, base::WallTime now);
// Why no gang may use a node.
struct Unusable {
  std::string word;     // of docs/conditions.md#nodes-that-no-gang-may-use: "NotReady", "GpuCountMismatch"
  std::string message;  // of GPUs that were counted
  std::string fabric;   // of Excluded: whose list it is in
};
// By node, as the extender judges: of those that have a NodeTopology, or offer GPUs without one. What could not be read
// condemns none.
std::map<std::string, Unusable> FindUnusable(const StatusReading& reading);
// Those of them that neither their agents' reports nor their Leases name.
std::vector<Trouble> NodeTroubles(const Objects& nodes, const std::map<std::string, Unusable>& unusable);
// What agents say of their nodes.
std::vector<Trouble> TopologyTroubles(const Objects& topologies);
// Agents that do not renew their Lease, of those that have reported.
std::vector<Trouble> SilentAgents(const Objects& topologies, const Objects& leases, base::WallTime now);
// `silence`: whether the Fabrics' word on silent agents is wanted, as where Leases cannot be read.
std::vector<Trouble> FabricTroubles(const Objects& fabrics, bool silence);
// Cables, hosts and leaves that the Fabrics suspect, and cables whose ends contradict each other.
std::vector<Trouble> SuspectTroubles(const Objects& fabrics);
// FabricSwitches that do not answer, or are not who they should be.
std::vector<Trouble> SwitchTroubles(const Objects& fabric_switches);
// Of LosslessPolicies and RdmaDevicePolicies.
std::vector<Trouble> PolicyTroubles(const Objects& policies, const std::string& kind, base::WallTime now);

}  // namespace heddle::cli
