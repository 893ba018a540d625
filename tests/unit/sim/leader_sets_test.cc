// LeaderWorkerSets of the simulated cluster, in good weather.
#include "tests/sim/leader_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "extender/resources.h"
#include "tests/sim/world.h"

namespace heddle::sim {
namespace {

using kube::Json;
using std::chrono::minutes;

class Serving : public testing::Test {
 protected:
  std::string Summary(int group) {
    std::string summary;
    world_.server().Visit(extender::kGangs, [&](const Json& gang) {
      if (kube::StringAt(gang, {"spec", "group"}) == "LeaderWorkerSet/serve/" + std::to_string(group))
        summary = kube::StringAt(gang, {"status", "summary"});
    });
    return summary;
  }
  // Of the group's pods that run.
  std::set<std::string> Uids(int group) {
    std::set<std::string> uids;
    for (const PodRow& pod : PodRows(world_.server())) {
      if (pod.group == group && pod.phase == "Running" && !pod.terminating) uids.insert(pod.uid);
    }
    return uids;
  }
  bool BothRun() {
    return Uids(0).size() == 2 && Uids(1).size() == 2 && Summary(0) == "Running 2/2" &&
           Summary(1) == "Running 2/2";
  }
  std::vector<std::string> Broken() {
    std::vector<std::string> broken;
    for (const Violation& violation : world_.checks().violations())
      broken.push_back(violation.rule + ": " + violation.what);
    return broken;
  }
  void Submit() {
    world_.leader_sets().Submit({.name = "serve", .pods = 4, .parallelism = "tp=8,dp=2", .groups = 2});
    ASSERT_TRUE(world_.Until([this] { return BothRun(); }, minutes(3))) << Summary(0) << "; " << Summary(1);
  }

  Simulation simulation_{1};
  World world_{simulation_, {.cluster = "su:1 node:4 gpu:8 nic:8 rail:8 spine:2", .leader_sets = true}, {}};
};

TEST_F(Serving, EachGroupIsAGangAndAllGoWithTheirSet) {
  Submit();
  EXPECT_EQ(world_.server().All(extender::kGangs).size(), 2u);
  world_.server().Remove(LeaderSetKind(), {kTeam, "serve"});
  EXPECT_TRUE(world_.Until(
      [this] {
        return world_.server().All(kube::kPods).empty() && world_.server().All(extender::kGangs).empty();
      },
      minutes(3)));
  EXPECT_THAT(Broken(), testing::IsEmpty());
}

TEST_F(Serving, AWorkerThatFailsTakesItsGroupAlongAndLeavesTheOtherAlone) {
  Submit();
  const auto first = Uids(0), second = Uids(1);
  world_.kubelets().Crash({kTeam, "serve-0-1"});
  const auto anew = [&] {
    const std::set<std::string> now = Uids(0);
    return BothRun() && std::none_of(now.begin(), now.end(),
                                     [&first](const std::string& uid) { return first.contains(uid); });
  };
  EXPECT_TRUE(world_.Until(anew, minutes(4))) << Summary(0);
  EXPECT_EQ(Uids(1), second);
  EXPECT_THAT(Broken(), testing::IsEmpty());
}

}  // namespace
}  // namespace heddle::sim
