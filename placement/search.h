#pragma once

#include <optional>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/gang_classes.h"
#include "placement/plan.h"
#include "placement/spread.h"

namespace heddle::placement {

struct SearchResult {
  GangClasses classes;  // of the request under the requirements
  std::optional<Found> found;
  bool gave_up = false;      // nothing is proved
  int pod_in_conflict = -1;  // a bound pod that breaks a requirement together with other bound pods
};

// The cheapest place for a gang under exactly these requirements. Counting decides uniform gangs; the rest is
// searched. `hints`: where pods stood before, by pod; may be empty.
SearchResult FindPlace(ClusterState& state, const GangRequest& request,
                       const std::vector<Requirement>& require, const std::vector<PodPlacement>& hints);

}  // namespace heddle::placement
