#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "extender/gang_members.h"

namespace heddle::extender {

// "<owner>-heddle-ranks", as people write it into their pods' volumes.
std::string RankFileName(std::string_view owner);

// The ConfigMap that says which pod of a gang has which rank, on which node and with which GPUs:
//   ranks.tsv  a line a pod in the order of ranks: rank, pod, node, GPU indexes; a first line names the columns
//   hostfile   the same order for mpirun: "<host> slots=<GPUs>"; the host is the pod's own name in DNS
// The Gang owns it, so that it goes with the gang. Fails where it would not fit a ConfigMap.
// Requires: gang.status.placement, with a row for each of members.ranks.
[[nodiscard]] base::Result<kube::Json> RankFile(const crds::Gang& gang, const GangMembers& members);

// The name of the Gang that an existing ConfigMap of that name is about; empty: it is not Heddle's to change.
std::string RankFileOwner(const kube::Json& config_map);

}  // namespace heddle::extender
