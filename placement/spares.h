#pragma once

#include <vector>

#include "placement/cluster_state.h"

namespace heddle::placement {

// The wholly free nodes that are kept of one NVLink domain: its last `spares`, or fewer where fewer are free. Empty for
// a domain of one node.
std::vector<topology::NodeId> SparesOf(const ClusterState& state, const topology::NvlinkDomain& domain,
                                       int spares);

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
