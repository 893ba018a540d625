#include "placement/axis_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/placement/fabrics.h"

namespace heddle::placement {
namespace {

std::vector<AxisReport> Report(FabricOf fabric, const Parallelism& parallelism, int gpus_per_pod) {
  ClusterState state = FreeCluster(fabric.Build());
  const GangRequest request = Gang(parallelism, gpus_per_pod);
  const Plan plan = Planned(state, request);
  return ReportAxes(state, request, plan.pods, plan.quality);
}

TEST(ReportAxes, SaysTheSmallestLevelThatHoldsEveryGroupOfAnAxis) {
  const auto reports = Report({.units = 2, .nodes = 4}, Sizes(8, 2, 4), 8);
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_EQ(reports[0].axis, Axis::kTp);
  EXPECT_EQ(reports[0].groups, 8);
  EXPECT_EQ(reports[0].worst, Level::kNvlink);
  EXPECT_EQ(reports[0].edges, 0);
  EXPECT_EQ(reports[1].axis, Axis::kDp);
  EXPECT_EQ(reports[1].worst, Level::kLeaf) << "a rail is one leaf of a unit";
  EXPECT_EQ(reports[1].leaf_crossings, 0);
  EXPECT_EQ(reports[2].axis, Axis::kPp);
  EXPECT_EQ(reports[2].worst, Level::kSpine) << "four servers a unit hold one stage each";
  for (const AxisReport& report : reports) {
    EXPECT_GT(report.bytes, 0);
    EXPECT_GT(report.micros, 0);
    EXPECT_EQ(report.groups * report.size, 64);
  }
}

Bound BoundOf(FabricOf fabric, const Parallelism& parallelism, Axis axis) {
  for (const AxisReport& report : Report(fabric, parallelism, 8)) {
    if (report.axis == axis) return report.bottleneck.bound;
  }
  ADD_FAILURE() << "no " << AxisName(axis);
  return Bound::kNvlink;
}

TEST(ReportAxes, SaysWhatHoldsTheSlowestGroupBack) {
  EXPECT_EQ(BoundOf({.nodes = 4}, Sizes(8, 1, 4), Axis::kTp), Bound::kNvlink);
  EXPECT_EQ(BoundOf({.nodes = 4, .nvlink = false}, Sizes(1, 1, 8), Axis::kDp), Bound::kPcie);
  EXPECT_EQ(BoundOf({.nodes = 4}, Sizes(8, 1, 4), Axis::kDp), Bound::kNic);
  EXPECT_EQ(BoundOf({.units = 2, .nodes = 2}, Sizes(8, 1, 4), Axis::kDp), Bound::kCrossing);
  EXPECT_EQ(BoundOf({.units = 2, .nodes = 2, .oversubscription_percent = 800}, Sizes(8, 1, 4), Axis::kDp),
            Bound::kUplink);
}

// A ring of three servers in each of two units; what it meets first, crossing a leaf, is not what it waits for.
TEST(ReportAxes, NamesASlowNicBehindACrossing) {
  topology::Fabric fabric = FabricOf{.units = 2, .nodes = 3}.Build();
  fabric.nodes[4].uplinks[2].gbps = 100;
  const ClusterState state = FreeCluster(std::move(fabric));
  const GangRequest request = Gang(Sizes(8, 1, 6), 8);
  std::vector<PodPlacement> pods;
  for (topology::NodeId node = 0; node < 6; ++node) pods.push_back({node, 0xff});
  const auto reports = ReportAxes(state, request, pods, Evaluate(state, request, pods));
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[1].bottleneck.bound, Bound::kNic);
  EXPECT_EQ(reports[1].bottleneck.gbps, 97);
}

TEST(ReportAxes, NamesNcclsAlgorithm) {
  const auto reports = Report({.nodes = 4}, Sizes(8, 1, 4), 8);
  EXPECT_EQ(reports[0].bottleneck.algorithm, Algorithm::kNvls) << "an all-reduce inside one H100 server";
  EXPECT_EQ(reports[1].bottleneck.algorithm, Algorithm::kRing) << "a reduce-scatter knows no other";
}

TEST(ReportAxes, HasNothingToSayOfOneGpu) {
  EXPECT_THAT(Report({}, Sizes(1, 1, 1), 1), testing::IsEmpty());
}

TEST(ReportAxes, CountsPcieAsTheNodeWhereThereIsNoNvlink) {
  GangRequest request = Gang(Sizes(1, 1, 8), 8);
  ClusterState state = FreeCluster(FabricOf{.units = 1, .nodes = 2, .nvlink = false}.Build());
  const Plan plan = Planned(state, request);
  EXPECT_EQ(ReportAxes(state, request, plan.pods, plan.quality).at(0).worst, Level::kNode);
}

}  // namespace
}  // namespace heddle::placement
