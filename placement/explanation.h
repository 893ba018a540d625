#pragma once

#include <string>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/gang_classes.h"
#include "placement/plan.h"
#include "placement/search.h"

namespace heddle::placement {

// Why here, as sentences, most important first.
std::vector<std::string> Explain(const ClusterState& state, const GangRequest& request, const Found& found,
                                 const std::vector<Requirement>& missed_preferences);

// Up to 7 nodes per pod that could take it instead; see Substitutes.
Substitutes FindSubstitutes(ClusterState& state, const GangRequest& request, const GangClasses& classes,
                            const std::vector<PodPlacement>& pods);

// Why a request that FindPlace did not place has no place. Requires: the request is sound.
Refusal Refuse(ClusterState& state, const GangRequest& request, const SearchResult& result);

// Nodes that no gang, or not this one, may use, by word.
std::vector<std::pair<std::string, int>> LeftOut(const ClusterState& state, const GangRequest& request);

}  // namespace heddle::placement
