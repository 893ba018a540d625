// A write that lands late, in weather that is good but for that.
#include "tests/sim/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "extender/resources.h"
#include "tests/sim/world.h"

namespace heddle::sim {
namespace {

using kube::Json;
using std::chrono::milliseconds;
using std::chrono::minutes;

std::string SummaryOf(World& world, const std::string& job) {
  std::string summary;
  world.server().Visit(extender::kGangs, [&](const Json& gang) {
    if (kube::StringAt(gang, {"spec", "owner", "name"}) == job)
      summary = kube::StringAt(gang, {"status", "summary"});
  });
  return summary;
}

// Whoever sent it dies, freezes or waits, as the seed says. What lands says how.
std::string LandALatePlan(std::uint64_t seed) {
  SCOPED_TRACE(seed);
  Simulation simulation(seed);
  std::string landed;
  simulation.SetSink([&landed](const std::string& line) {
    if (line.find(" lands ") != std::string::npos) landed += line + "\n";
  });
  // Two requests take longer than a slice of a release.
  World world(simulation, {.cluster = "su:2 node:4 gpu:8 nic:8 rail:8 spine:2"},
              {.latency = milliseconds(30)});
  world.network().HoldNextPlan(true);
  world.jobs().Submit({.name = "late", .pods = 4, .parallelism = "tp=8,dp=4"});
  EXPECT_TRUE(world.Until([&] { return world.network().holds_plan(); }, minutes(2)));
  EXPECT_EQ(landed, "");
  world.jobs().Submit({.name = "big", .pods = 4, .parallelism = "tp=8,dp=4", .priority = 100});
  EXPECT_TRUE(world.Until(
      [&] { return SummaryOf(world, "late") == "Running 4/4" && SummaryOf(world, "big") == "Running 4/4"; },
      minutes(10)))
      << "late: " << SummaryOf(world, "late") << "; big: " << SummaryOf(world, "big");
  EXPECT_FALSE(world.network().holds_plan());
  for (const Violation& violation : world.checks().violations())
    ADD_FAILURE() << violation.rule << ": " << violation.what;
  return landed;
}

TEST(Life, APlanThatLandsLateOverNodesOfAnotherGangLeavesNeitherInHalves) {
  int between = 0;
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    const std::string landed = LandALatePlan(seed);
    EXPECT_THAT(landed, testing::HasSubstr("the plan of team/")) << "seed " << seed;
    EXPECT_THAT(landed, testing::HasSubstr(" -> 200")) << "seed " << seed;
    between += landed.find("as another gang is let go") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(between, 0) << "no plan landed while the other gang was let go";
}

}  // namespace
}  // namespace heddle::sim
