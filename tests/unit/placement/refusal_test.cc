#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <utility>

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

}  // namespace
}  // namespace heddle::placement
