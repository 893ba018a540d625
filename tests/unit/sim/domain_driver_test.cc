// Gangs with a ComputeDomain on racks of the simulated cluster, in good weather.
#include "tests/sim/domain_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "extender/compute_domain.h"
#include "extender/resources.h"
#include "tests/sim/world.h"

namespace heddle::sim {
namespace {

using kube::Json;
using std::chrono::minutes;

class Racks : public testing::Test {
 protected:
  std::string Summary(const std::string& job) {
    std::string summary;
    world_.server().Visit(extender::kGangs, [&](const Json& gang) {
      if (kube::StringAt(gang, {"spec", "owner", "name"}) == job)
        summary = kube::StringAt(gang, {"status", "summary"});
    });
    return summary;
  }
  std::set<std::string> Nodes() {
    std::set<std::string> nodes;
    for (const PodRow& pod : PodRows(world_.server())) nodes.insert(pod.node);
    return nodes;
  }
  std::vector<std::string> Broken() {
    std::vector<std::string> broken;
    for (const Violation& violation : world_.checks().violations())
      broken.push_back(violation.rule + ": " + violation.what);
    return broken;
  }

  Simulation simulation_{1};
  World world_{
      simulation_, {.cluster = "rack:2 tray:3 gpu:4 nic:4 rail:4 rate:400 nvl", .compute_domains = true}, {}};
};

TEST_F(Racks, AComputeDomainComesBeforeThePodsOfItsGangAndGoesWithItsJob) {
  world_.jobs().Submit(
      {.name = "train", .pods = 2, .gpus = 4, .parallelism = "tp=8", .compute_domain = true});
  ASSERT_TRUE(world_.Until([this] { return Summary("train") == "Running 2/2"; }, minutes(2)))
      << Summary("train");
  const auto held = [this] {
    const auto domains = world_.server().All(extender::kComputeDomains);
    return domains.size() == 1 && !kube::ArrayAt(domains[0], {"metadata", "finalizers"}).empty();
  };
  EXPECT_TRUE(world_.Until(held, minutes(1)));
  world_.server().Remove(kube::kJobs, {kTeam, "train"});
  EXPECT_TRUE(
      world_.Until([this] { return world_.server().All(extender::kComputeDomains).empty(); }, minutes(1)));
  EXPECT_THAT(Broken(), testing::IsEmpty());
}

TEST_F(Racks, PodsThatClaimChannelsAreEachOnANodeOfItsOwnAlsoThoseOfTwoGangs) {
  for (const char* name : {"one", "other"}) {
    world_.jobs().Submit(
        {.name = name, .pods = 3, .gpus = 1, .parallelism = "tp=1,dp=3", .compute_domain = true});
  }
  ASSERT_TRUE(world_.Until(
      [this] { return Summary("one") == "Running 3/3" && Summary("other") == "Running 3/3"; }, minutes(3)))
      << Summary("one") << "; " << Summary("other");
  EXPECT_EQ(Nodes().size(), 6u);
  EXPECT_THAT(Broken(), testing::IsEmpty());
}

}  // namespace
}  // namespace heddle::sim
