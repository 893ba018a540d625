#pragma once

#include <optional>
#include <vector>

#include "base/random.h"
#include "placement/cluster_state.h"
#include "placement/plan.h"

namespace heddle::peers {

// How others choose nodes for a gang, said again over our own fabric and state, so that one evaluator prices
// all of them on equal inputs. What each keeps of the real thing, and what it leaves out, stands beside it.
// All take the lowest free GPU indexes of a node, as the kubelet's device manager does without a hint.
// None sees rails, links, or which ranks talk to each other: that is what they have in common.
//
// Requires: the gang's pods are alike, with GPUs, and none is bound already. Nothing = it does not fit.
using Assignment = std::optional<std::vector<placement::PodPlacement>>;

// Bin packing: each pod, in rank order, goes to the node with the fewest free GPUs that still holds it; equal
// nodes by name. This is kube-scheduler's MostAllocated score, Volcano's and KAI's binpack.
// Left out: CPU and memory in the score. kube-scheduler breaks ties by lot; by name neighbours in the rack
// stay together, which is kinder to it than life.
Assignment PackBestFit(const placement::ClusterState& state, const placement::GangRequest& request);

// Each pod goes to any node that holds it, by lot: what whole-node pods get from any scheduler that knows no
// topology and breaks ties by lot.
Assignment PickAtRandom(const placement::ClusterState& state, const placement::GangRequest& request,
                        base::Random& random);

// Packing by one label level at a time, as Kueue's topology-aware scheduling does it (`BestFit`, the rack
// preferred): count what each domain holds; take the lowest level at which one domain holds the whole gang,
// and there the tightest such domain; where none does, the fewest domains of the top level, most free first
// and the tightest for what is left. Then go down level by level over the children of all that was taken, in
// the same manner. Pods go to the nodes in rank order, nodes in the order of their names.
// `slice`: so many consecutive pods must share a node, or an NVLink domain where no node could hold them
// (podset-slice-size with its level); their number must divide the gang's.
// Levels: set of spines, scalable unit, NVLink domain where it spans nodes, node.
// Volcano (HyperNode tiers), KAI (fewest free first) and kube-scheduler's own (one level) pick the domain by
// the same counts. Left out: quota, preemption, leaders, balanced placement (alpha, off), taints. Domains sort
// by number here, su-2 before su-10, where Kueue compares text.
Assignment PackRacks(const placement::ClusterState& state, const placement::GangRequest& request,
                     int slice = 1);

// Pods of this gang that a node holds now.
int PodsOn(const placement::ClusterState& state, topology::NodeId node, const placement::PodRequest& pod);

}  // namespace heddle::peers
