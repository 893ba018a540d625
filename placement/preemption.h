#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/gang.h"

namespace heddle::placement {

// Somebody whose end would free GPUs: a gang, or a pod of none.
struct Victim {
  struct Hold {
    topology::NodeId node = topology::kNone;
    std::uint32_t gpus = 0;  // bit = position in Node::gpus
    Resources resources;
    friend bool operator==(const Hold&, const Hold&) = default;
  };
  std::vector<Hold> holds;
  // What its end costs, in any unit that adds up: GPU-hours since its checkpoint where known, else its GPUs.
  double cost = 0;
  friend bool operator==(const Victim&, const Victim&) = default;
};

struct VictimChoice {
  bool possible = false;     // false: not even the end of all of them makes room
  std::vector<int> victims;  // indexes, ascending; empty and possible: it fits already
  double cost = 0;
  int trials = 0;  // how many times a place was looked for
  friend bool operator==(const VictimChoice&, const VictimChoice&) = default;
};

// Who has to end so that the gang finds a place. No victim in the answer can be spared while the others in it
// end; among the answers of that kind a single victim is found at its least cost, and several at a cost that
// is low, not least. Trials are bounded by 2·kMostTrials. Pure: `state` is used for trials and comes back as
// it was. Requires: every hold is taken in `state`, and no two overlap.
VictimChoice ChooseVictims(ClusterState& state, const GangRequest& request,
                           const std::vector<Victim>& victims);
inline constexpr int kMostTrials = 256;

}  // namespace heddle::placement
