#include "bench/peers/peers.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/check.h"

namespace heddle::peers {

using placement::ClusterState;
using placement::GangRequest;
using placement::PodPlacement;
using placement::PodRequest;
using topology::NodeId;

int PodsOn(const ClusterState& state, NodeId node, const PodRequest& pod) {
  CHECK(pod.gpus > 0);
  const int slots = state.free_gpus(node) / pod.gpus;
  return slots == 0 ? 0 : state.Copies(node, pod.resources, slots);
}

namespace {

// The lowest `count` GPUs of `free`, which loses them.
std::uint32_t TakeLowest(std::uint32_t& free, int count) {
  std::uint32_t taken = 0;
  for (int i = 0; i < count; ++i) {
    CHECK(free != 0);
    taken |= free & -free;
    free &= free - 1;
  }
  return taken;
}

}  // namespace

// A node that took a pod is the fullest of those that may hold the next, so packing pod by pod is filling node
// after node.
Assignment PackBestFit(const ClusterState& state, const GangRequest& request) {
  const PodRequest& pod = request.pods.front();
  std::vector<NodeId> order(state.fabric().nodes.size());
  std::iota(order.begin(), order.end(), NodeId{0});
  std::erase_if(order, [&](NodeId node) { return state.free_gpus(node) < pod.gpus; });
  std::stable_sort(order.begin(), order.end(),
                   [&](NodeId a, NodeId b) { return state.free_gpus(a) < state.free_gpus(b); });
  std::vector<PodPlacement> out;
  out.reserve(request.pods.size());
  for (const NodeId node : order) {
    if (out.size() == request.pods.size()) break;
    std::uint32_t free = state.node(node).free_gpus;
    for (int left = PodsOn(state, node, pod); left > 0 && out.size() < request.pods.size(); --left) {
      out.push_back({node, TakeLowest(free, pod.gpus)});
    }
  }
  if (out.size() < request.pods.size()) return std::nullopt;
  return out;
}

Assignment PickAtRandom(const ClusterState& state, const GangRequest& request, base::Random& random) {
  struct Open {
    NodeId node;
    int pods;
    std::uint32_t free;
  };
  const PodRequest& pod = request.pods.front();
  std::vector<Open> open;
  for (std::size_t n = 0; n < state.fabric().nodes.size(); ++n) {
    const auto node = NodeId(n);
    if (const int pods = PodsOn(state, node, pod); pods > 0) {
      open.push_back({node, pods, state.node(node).free_gpus});
    }
  }
  std::vector<PodPlacement> out;
  out.reserve(request.pods.size());
  while (out.size() < request.pods.size()) {
    if (open.empty()) return std::nullopt;
    Open& chosen = open[std::size_t(random.Below(open.size()))];
    out.push_back({chosen.node, TakeLowest(chosen.free, pod.gpus)});
    if (--chosen.pods > 0) continue;
    std::swap(chosen, open.back());
    open.pop_back();
  }
  return out;
}

}  // namespace heddle::peers
