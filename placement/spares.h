#pragma once

#include <set>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/plan.h"

namespace heddle::placement {

// How many a plan for this request leaves: none where a pod of it stands already, as that is a repair.
int SparesLeftBy(const GangRequest& request);

// The wholly free nodes that are kept of one NVLink domain: its last `spares`, or fewer where fewer are free. Empty for
// a domain of one node.
std::vector<topology::NodeId> SparesOf(const ClusterState& state, const topology::NvlinkDomain& domain,
                                       int spares);

// What has to be free, or the gang would have no such place: the nodes of its pods and, of each NVLink domain whose
// GPUs it uses, the spares that it leaves. `state`: as the place was found on, apart from SparesHeld.
std::set<topology::NodeId> NodesNeeded(const ClusterState& state, const GangRequest& request,
                                       const std::vector<PodPlacement>& place);

// Takes the spares of every NVLink domain over several nodes, and all that is free where there are too few of
// them; gives them back in the end. See GangRequest::spares.
class SparesHeld {
 public:
  SparesHeld(ClusterState& state, int spares);
  ~SparesHeld() { state_.Rollback(mark_); }
  SparesHeld(const SparesHeld&) = delete;
  SparesHeld& operator=(const SparesHeld&) = delete;

 private:
  ClusterState& state_;
  const ClusterState::Savepoint mark_;
};

}  // namespace heddle::placement
