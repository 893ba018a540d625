#pragma once

#include "placement/cluster_state.h"
#include "placement/plan.h"

namespace heddle::placement {

// Finds the plan with the least predicted communication time that meets every hard constraint; ties go to the
// plan that leaves the most whole NVLink domains, then to the first names. Pure and deterministic: equal
// inputs give equal answers. `state` is used for trials and comes back as it was.
//
// Hard: each pod's GPUs on one allowed, usable node with room; each TP group in one NVLink domain unless
// `require` names another level for tp; every other requirement. Preferences weigh, never refuse.
Decision PlanGang(ClusterState& state, const GangRequest& request);

// Scores an assignment that somebody else made (the stock scheduler, a running gang). `pods` by pod index,
// all placed.
Quality Evaluate(const ClusterState& state, const GangRequest& request,
                 const std::vector<PodPlacement>& pods);

// Moves only the pods in `lost` (indexes), everything else stays; the moved pods' old GPUs are not assumed
// free.
Decision RepairGang(ClusterState& state, const GangRequest& request, const std::vector<PodPlacement>& current,
                    const std::vector<int>& lost);

// Ranks nodes for a GPU pod of no gang, so that whole domains stay whole: 0 (worst) … 100 (best), by node.
// Prefers the node whose free count is the tightest fit in the fullest domain. A node where a pod of several GPUs
// would meet NVLinks that carry less than they should counts half; a pod of one is as well off there as anywhere.
// Nodes that are kept as spares (GangRequest::spares) come last: at most 4.
std::vector<int> ScoreLonePod(const ClusterState& state, int gpus,
                              const std::vector<topology::NodeId>& candidates, int spares = 0);

}  // namespace heddle::placement
