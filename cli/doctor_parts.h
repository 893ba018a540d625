#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/doctor.h"

namespace heddle::cli {

// The checks of `doctor`, each pure and total.

// What people and the chart have decided, as far as it can be seen.
struct Installation {
  bool observes = false;    // mode=observe: no pod is touched
  bool everywhere = false;  // scope=cluster
  bool scope_known = false;
  bool left_out = false;  // mutatingPolicies=never, and so there is no policy that gates
  bool by_hand = false;   // that, or no MutatingAdmissionPolicy is served: people prepare their Jobs
  std::set<Option> options{Option::kAny};
};
Installation InstallationOf(const DoctorReading& reading);
// Whether what that right is for is done there.
bool IsNeeded(const NeededRight& right, const Installation& installed);

void CheckServer(const DoctorReading& reading, const Installation& installed, Findings& findings);
void CheckCrds(const DoctorReading& reading, Findings& findings);
void CheckPolicies(const DoctorReading& reading, const Installation& installed, Findings& findings);
void CheckScope(const DoctorReading& reading, const Installation& installed, Findings& findings);
void CheckInstalls(const DoctorReading& reading, Findings& findings);
void CheckDeployments(const DoctorReading& reading, const Installation& installed, Findings& findings);
void CheckLeases(const DoctorReading& reading, const Installation& installed, Findings& findings);
void CheckAgents(const DoctorReading& reading, Findings& findings);
void CheckVersions(const DoctorReading& reading, Findings& findings);
void CheckRights(const DoctorReading& reading, const Installation& installed, Findings& findings);
void CheckPods(const DoctorReading& reading, const Installation& installed, Findings& findings);
// Pods that wait for a gate or a scheduler that nobody serves. Says nothing where there are none.
void CheckStranded(const DoctorReading& reading, const Installation& installed, Findings& findings);
void CheckNeighbours(const DoctorReading& reading, Findings& findings);

// Why nobody holds that Lease of ours: "nobody holds heddle-scheduler". Empty = somebody does. The Leases were read.
std::string WhyNotHeld(const DoctorReading& reading, std::string_view lease_name);

// Why pods of Heddle's own are not ready, by what most of them say: "heddle-operator-x1 and heddle-operator-x2:
// container operator: ImagePullBackOff: …"; empty where they say nothing or could not be read.
std::string WhyPodsAreNotReady(const DoctorReading& reading, std::string_view component);
// What keeps a Deployment or DaemonSet from making its pods, in the server's words; empty where nothing says it.
std::string WhyNoneIsMade(const DoctorReading& reading, const crds::Json& controller);

// Whether gangs' pods in that namespace go through Heddle.
bool InScope(const DoctorReading& reading, const Installation& installed, const std::string& ns);

// What could not be read: the check is unknown, and the right that is missing for it is named.
Finding NotRead(std::string check, std::string_view what, const base::Error& error);

// The 36 of "v1.36.3-gke.100"; nothing of what is no version 1.x.
std::optional<int> MinorOf(std::string_view version);

// What a cluster's CustomResourceDefinition lacks of ours, or has more: fields as "status.gpus[].numa", sorted.
struct SchemaDifference {
  std::vector<std::string> missing, more;
};
SchemaDifference CompareSchemas(const crds::Json& ours, const crds::Json& theirs);
// The CustomResourceDefinitions of this version.
const Objects& OurCrds();

}  // namespace heddle::cli
