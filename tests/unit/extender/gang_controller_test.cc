#include "extender/gang_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crds/keys.h"
#include "extender/resources.h"
#include "tests/unit/extender/cluster.h"

namespace heddle::extender {
namespace {

using test::Cluster;
using test::JobWords;
using test::RunningExtender;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace keys = crds::keys;

constexpr const char* kTwoUnits = "su:2 node:8 gpu:8 nic:8 rail:8 spine:2 rate:400";

TEST(GangController, PlansCommitsAndReleasesAnIndexedJob) {
  Cluster cluster(kTwoUnits);
  RunningExtender extender(cluster);
  cluster.Submit({});
  ASSERT_TRUE(extender.Until([&] { return cluster.Released("train") == 8; }));
  EXPECT_THAT(cluster.Violations(), IsEmpty());
  cluster.BindReleased();
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Running 8/8"; })) << cluster.Summary("train");
  const auto gang = cluster.GangOf("train");
  ASSERT_TRUE(gang);
  EXPECT_EQ(gang->spec.pods, 8);
  EXPECT_EQ(gang->status.placement->epoch, 1);
  EXPECT_EQ(gang->status.predicted->tp_groups_in_domain, 8);
  EXPECT_EQ(gang->owners.at(0).name, "train");
  for (int rank = 0; rank < 8; ++rank) {
    const PodFacts pod = ReadPod(cluster.Pod("train-" + std::to_string(rank)));
    ASSERT_TRUE(pod.plan);
    EXPECT_EQ(pod.plan->rank, rank);
    EXPECT_EQ(pod.plan->gang_uid, gang->uid);
    EXPECT_EQ(pod.plan->node, crds::ToRows(*gang->status.placement)[std::size_t(rank)].node);
  }
}

}  // namespace
}  // namespace heddle::extender
