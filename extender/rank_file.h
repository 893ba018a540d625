#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "extender/gang_members.h"

namespace heddle::extender {

// "<owner>-heddle-ranks", as people write it into their pods' volumes; DnsName of an owner with which that is no name.
std::string RankFileName(std::string_view owner);

// The ConfigMap that says which pod of a gang has which rank, on which node and with which GPUs:
//   ranks.tsv  a line a pod in the order of ranks: rank, pod, node, GPU indexes; a first line names the columns
//   hostfile   the same order for mpirun: "<host> slots=<GPUs>"; the host is the pod's own name in DNS
// The groups of a LeaderWorkerSet have one pod template, which mounts one name: they share the ConfigMap, and each has
// its own "ranks-<group>.tsv" and "hostfile-<group>" there. `there` is what has that name already, null where nothing
// does; what other groups have in it stays.
// Its Gangs own it, so that it goes with the last of them. Fails where it would not fit a ConfigMap.
// Requires: gang.status.placement, with a row for each of members.ranks.
[[nodiscard]] base::Result<kube::Json> RankFile(const crds::Gang& gang, const GangMembers& members,
                                                const kube::Json* there = nullptr);

// The names of the Gangs that an existing ConfigMap of that name is about; none: it is not Heddle's to change.
std::vector<std::string> RankFileOwners(const kube::Json& config_map);

}  // namespace heddle::extender
