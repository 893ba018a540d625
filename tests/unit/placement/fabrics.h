#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "placement/planner.h"

namespace heddle::placement {

// A fabric by hand: units of servers, or of NVLink racks, each GPU on the leaf of its rail.
struct FabricOf {
  int units = 1;
  int nodes = 4;  // per unit
  int gpus = 8;
  int leaves = 8;  // per unit; GPU g sits on leaf g mod leaves. 0 = nobody knows
  int gbps = 400;
  int racks_per_unit = 0;  // 0 = every server is its own NVLink domain
  bool nvlink = true;
  int spine_groups = 1;  // units are dealt to them in order; 0 = no spines
  int oversubscription_percent = 100;
  topology::Shape shape = topology::Shape::kRailOptimised;

  topology::Fabric Build() const;
};

std::vector<NodeState> AllFree(const topology::Fabric& fabric);
ClusterState FreeCluster(topology::Fabric fabric);
ClusterState Cluster(topology::Fabric fabric, std::vector<NodeState> nodes);

// `pods` equal pods; fails the test if they do not make the world.
GangRequest Gang(const Parallelism& parallelism, int gpus_per_pod);
Parallelism Sizes(int tp, int pp, int dp, int cp = 1);

// The plan, or a failed test naming the refusal.
Plan Planned(ClusterState& state, const GangRequest& request);
Refusal Refused(ClusterState& state, const GangRequest& request);

// What must hold of every plan, checked without the planner's own code: sentences; empty = sound.
std::vector<std::string> Faults(const ClusterState& state, const GangRequest& request, const Plan& plan);

}  // namespace heddle::placement
