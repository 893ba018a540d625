// Very many pods that wait at the gate, as bench/scale.py crowd has them at full size: what they cost does not grow with
// their number, and they hold up nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "extender/resources.h"
#include "tests/unit/extender/cluster.h"

namespace heddle::extender {
namespace {

using std::chrono::seconds;
using test::Cluster;
using test::RunningExtender;
using ::testing::IsEmpty;

constexpr int kCrowds = 10, kPodsEach = 100;  // of eight GPUs, beside sixteen nodes
constexpr seconds kLong{600};                 // virtual; a sanitizer has to read all these pods

std::string NameOf(int crowd) {
  return "crowd-" + std::to_string(crowd);
}

// Gangs that were told why they wait.
int Refused(const Cluster& cluster) {
  int refused = 0;
  for (const kube::Json& gang : cluster.server.All(kGangs)) {
    refused += kube::StringAt(gang, {"status", "reason"}).empty() ? 0 : 1;
  }
  return refused;
}

std::vector<std::string> WritesOf(const Cluster& cluster, std::string_view plural) {
  std::vector<std::string> lines;
  for (const test::ApiRequest& request : cluster.server.writes()) {
    if (request.plural == plural) lines.push_back(request.Line());
  }
  return lines;
}

TEST(Crowd, CostsAConstantForEachGangAndNothingAtRestAndLetsASmallGangPass) {
  Cluster cluster("su:2 node:8 gpu:8 nic:8 rail:8 spine:2 rate:400");
  for (int crowd = 0; crowd < kCrowds; ++crowd) {
    cluster.Submit({.name = NameOf(crowd), .pods = kPodsEach, .parallelism = "tp=8,dp=100"});
  }
  RunningExtender extender(cluster);
  ASSERT_TRUE(extender.Until([&] { return Refused(cluster) == kCrowds; }, kLong)) << Refused(cluster);
  EXPECT_LE(WritesOf(cluster, "gangs").size(), std::size_t(kCrowds) * 4)
      << "a Gang, its refusal, a count or two";

  cluster.server.ClearRequests();
  extender.Pass(seconds(60));
  EXPECT_THAT(WritesOf(cluster, "gangs"), IsEmpty());
  EXPECT_THAT(WritesOf(cluster, "pods"), IsEmpty());

  cluster.Submit({.name = "small", .pods = 2, .parallelism = "tp=8,dp=2"});
  ASSERT_TRUE(extender.Until([&] { return WritesOf(cluster, "pods").size() == 2; }, kLong))
      << cluster.Summary("small");
  EXPECT_EQ(cluster.Released("small"), 2);
  EXPECT_THAT(cluster.Violations(), IsEmpty());
  for (int crowd = 0; crowd < kCrowds; ++crowd) {
    EXPECT_EQ(cluster.Summary(NameOf(crowd)), "Waiting: TooLargeForFabric");
  }
}

}  // namespace
}  // namespace heddle::extender
