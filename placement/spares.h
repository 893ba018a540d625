#pragma once

#include "placement/cluster_state.h"

namespace heddle::placement {

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
