#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "placement/dense.h"
#include "placement/planner.h"
#include "tests/unit/placement/fabrics.h"

namespace heddle::placement {
namespace {

// Sixteen servers; of the second eight each GPU hangs on the leaf of another one, so that no leaf has nine GPUs of one
// number: a search among all that is free gives up on a place that is there.
topology::Fabric HalfRotated() {
  auto fabric = FabricOf{.units = 1, .nodes = 16}.Build();
  for (std::ptrdiff_t n = 8; n < 16; ++n) {
    auto& uplinks = fabric.nodes[std::size_t(n)].uplinks;
    std::rotate(uplinks.begin(), uplinks.begin() + 1 + n % 7, uplinks.end());
  }
  return fabric;
}

// Nine servers with one GPU free on each: of server n that with this number.
template <class GpuOf>
ClusterState OneFreeOnNine(const GpuOf& gpu_of) {
  auto fabric = HalfRotated();
  auto nodes = AllFree(fabric);
  for (std::size_t n = 0; n < nodes.size(); ++n) nodes[n].free_gpus = n < 9 ? 1U << gpu_of(n) : 0;
  return Cluster(std::move(fabric), std::move(nodes));
}

TEST(Refusal, DoesNotSayThatNoPlaceIsThereWhereTheSearchGaveUp) {
  auto request = Gang(Sizes(1, 1, 9), 1);
  request.require = {{Axis::kGang, Level::kLeaf}};
  // On the leaf of GPU 0, which has the ninth server's seventh GPU.
  ClusterState together = OneFreeOnNine([](std::size_t n) { return n < 8 ? 0 : 6; });
  Planned(together, request);
  ClusterState apart = OneFreeOnNine([](std::size_t n) { return n % 8; });
  const Refusal refusal = Refused(apart, request);
  EXPECT_EQ(refusal.reason, RefusalReason::kRequirement) << refusal.sentence;
  EXPECT_EQ(refusal.sentence, "enough is free, but no place meets tp=nvlink and gang=leaf");
}

TEST(Refusal, SaysThatGpusAreFreeWhereOnlyPodSlotsAreShort) {
  auto fabric = FabricOf{}.Build();
  auto nodes = AllFree(fabric);
  nodes[1].free_pods = 0;
  auto state = Cluster(std::move(fabric), std::move(nodes));
  EXPECT_EQ(
      Refused(state, Gang(Sizes(8, 1, 4), 8)).sentence,
      "4 pods need 8 GPUs on a node each; 3 fit now; enough GPUs are free, but CPU, memory, pod slots or "
      "another resource beside them is short");
}

// Nodes 1 and 2 are of two units and of one NVLink domain: beside 3 there is a place for two pods in 2's own unit.
TEST(Refusal, ProvesNothingWhereADomainTakesANodeOutOfItsUnit) {
  auto fabric = FabricOf{.units = 2, .nodes = 2}.Build();
  fabric.nodes[2].domain = 1;
  fabric.domains[1].nodes = {1, 2};
  fabric.domains[1].gpus = 16;
  fabric.domains[1].spans_nodes = true;
  fabric.domains[2].nodes.clear();
  fabric.domains[2].gpus = 0;
  auto nodes = AllFree(fabric);
  nodes[0].free_gpus = nodes[1].free_gpus = 0;
  auto state = Cluster(std::move(fabric), std::move(nodes));
  ASSERT_FALSE(state.dense().cells_bound());
  auto request = Gang(Sizes(8, 1, 2), 8);
  request.require = {{Axis::kGang, Level::kUnit}};
  const Refusal refusal = Refused(state, request);
  EXPECT_EQ(refusal.reason, RefusalReason::kNotFoundInBudget) << refusal.sentence;
}

TEST(Refusal, IsProvedAllTheSameWhereOnlyTheUnitOfATrayIsNotKnown) {
  auto fabric = FabricOf{.units = 1, .nodes = 8, .gpus = 4, .leaves = 4, .racks_per_unit = 2}.Build();
  fabric.nodes[7].unit = topology::kNone;
  fabric.nodes[7].uplinks.assign(4, {});
  fabric.units[0].nodes.pop_back();
  auto nodes = AllFree(fabric);
  for (std::size_t n = 1; n < 7; ++n) nodes[n].free_gpus = 0;
  auto state = Cluster(std::move(fabric), std::move(nodes));
  ASSERT_FALSE(state.dense().nested());
  auto request = Gang(Sizes(4, 1, 2), 4);
  request.require = {{Axis::kGang, Level::kUnit}};
  const Refusal refusal = Refused(state, request);
  EXPECT_EQ(refusal.reason, RefusalReason::kRequirement) << refusal.sentence;
}

}  // namespace
}  // namespace heddle::placement
