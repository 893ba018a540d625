#include "placement/improve.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "placement/gang_classes.h"
#include "placement/pricing.h"
#include "tests/unit/placement/fabrics.h"

namespace heddle::placement {
namespace {

// Two units of two servers; those of the second have twice the NVLink.
ClusterState FasterSecondUnit() {
  auto fabric = FabricOf{.units = 2, .nodes = 2}.Build();
  for (const std::size_t n : {std::size_t(0), std::size_t(1)})
    fabric.nodes[n].node.nvlink = {4, 18, 1800, {}};
  return FreeCluster(std::move(fabric));
}

topology::NodeId ClimbedTo(const GangRequest& request, std::vector<PodPlacement> pods) {
  const ClusterState state = FasterSecondUnit();
  const GangClasses classes = ClassesOf(request, EffectiveRequirements(request));
  Pricing pricing(state, request);
  Quality quality = pricing.Price(pods);
  Improve(state, request, classes, pricing, TrialsFor(request.parallelism.world()), pods, quality);
  return pods.front().node;
}

TEST(Improve, LeavesALauncherInTheUnitThatTheGangHasToShare) {
  GangRequest request = Gang(Sizes(1, 1, 8), 8);
  request.require = {{Axis::kGang, Level::kUnit}};
  EXPECT_GE(ClimbedTo(request, {{0, 0xff}}), 2) << "alone it is faster in the second unit";
  request.pods.emplace_back();
  request.pods.back().gpus = 0;
  EXPECT_EQ(ClimbedTo(request, {{0, 0xff}, {1, 0}}), 0);
}

}  // namespace
}  // namespace heddle::placement
