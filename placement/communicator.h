#pragma once

#include <vector>

#include "placement/axis_report.h"
#include "placement/cluster_state.h"
#include "placement/collective.h"
#include "placement/group_cost.h"
#include "placement/plan.h"

namespace heddle::placement {

// One NCCL communicator over all ranks of a placed gang, as nccl-tests makes one over the GPUs that it is given: what a
// call takes there by the model of collective.h, on the links that the fabric shows. Immutable.
//
// NCCL orders the GPUs of a node for itself, so that a ring comes and goes by one rail; a plan's price, where rank
// follows rank, does not. Sends go from rank to rank as they are (sendrecv_perf).
class Communicator {
 public:
  // `pods` by pod, all placed, two ranks in all at least.
  Communicator(const ClusterState& state, const std::vector<PodPlacement>& pods);

  int ranks() const { return ranks_; }
  Prediction Predict(Collective collective, double bytes) const;  // of one call, as placement::Predict
  AxisBottleneck BottleneckOf(Collective collective, double bytes) const;

 private:
  int ranks_ = 0;
  GroupTally all_;   // of what NCCL lays out
  GroupTally next_;  // of sends to the next rank
};

}  // namespace heddle::placement
