// Nodes that the leader keeps are for the gang that they are kept for.
#include "tests/sim/queue_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "extender/resources.h"
#include "tests/sim/world.h"

namespace heddle::sim {
namespace {

using kube::Json;
using std::chrono::minutes;
using std::chrono::seconds;

// A gang of no priority holds both nodes and leaves them for one of priority 100; another of no priority waits.
class QueueRuleTest : public testing::Test {
 protected:
  void Begin() {
    world_.jobs().Submit({.name = "low", .pods = 2, .parallelism = "tp=8,dp=2"});
    ASSERT_TRUE(world_.Until([&] { return Says("low", "summary") == "Running 2/2"; }, minutes(2)));
    world_.jobs().Submit({.name = "other", .pods = 1, .parallelism = "tp=8", .runs = seconds(10)});
    ASSERT_TRUE(world_.Until([&] { return !Says("other", "reason").empty(); }, minutes(1)));
    world_.jobs().Submit(
        {.name = "high", .pods = 2, .parallelism = "tp=8,dp=2", .priority = 100, .runs = seconds(10)});
    ASSERT_TRUE(world_.Until([&] { return Leader() != nullptr; }, minutes(1)));
  }

  Json GangOf(const std::string& job) {
    Json found;
    world_.server().Visit(extender::kGangs, [&](const Json& gang) {
      if (kube::StringAt(gang, {"spec", "owner", "name"}) == job) found = gang;
    });
    return found;
  }
  std::string Says(const std::string& job, const std::string& field) {
    return kube::StringAt(GangOf(job), {"status", field});
  }
  // The process that keeps nodes; null while none does.
  Process* Leader() {
    for (const Machine& machine : world_.machines()) {
      if (!world_.KeptNodes(*machine.process).empty()) return machine.process;
    }
    return nullptr;
  }
  // As if the leader had planned so.
  void Write(const Json& gang) {
    test::ApiRequest request;
    request.method = "PUT";
    request.plural = "gangs";
    request.subresource = "status";
    world_.queue_rule().Requested(*Leader(), request, {200, {}, gang.dump()});
  }
  std::vector<std::string> Broken() {
    std::vector<std::string> rules;
    for (const Violation& violation : world_.checks().violations()) rules.push_back(violation.rule);
    return rules;
  }

  Simulation simulation_{1};
  World world_{simulation_, {.cluster = "su:1 node:2 gpu:8 nic:8 rail:8 spine:2"}, {}};
};

TEST_F(QueueRuleTest, SaysNothingWhereTheOneThatWaitsGetsWhatWasKept) {
  Begin();
  EXPECT_EQ(world_.KeptNodes(*Leader()),
            (QueueRule::Kept{{world_.nodes()[0], 100}, {world_.nodes()[1], 100}}));
  EXPECT_TRUE(world_.Until([&] { return Says("high", "summary") == "Running 2/2"; }, minutes(3)))
      << Says("high", "summary");
  EXPECT_TRUE(world_.Until([&] { return Says("other", "summary") == "Running 1/1"; }, minutes(5)))
      << Says("other", "summary");
  EXPECT_THAT(Broken(), testing::IsEmpty());
}

TEST_F(QueueRuleTest, SeesAPlanOnNodesThatAreKept) {
  Begin();
  Json gang = GangOf("other");
  gang["status"]["placement"] = {
      {"epoch", 1}, {"nodeNames", Json::array({world_.nodes()[0]})}, {"nodes", Json::array({0})}};
  Write(gang);
  EXPECT_EQ(world_.queue_rule().suspected(), 1u);
  EXPECT_THAT(Broken(), testing::IsEmpty());
  world_.Pass(seconds(6));
  EXPECT_THAT(Broken(), testing::ElementsAre("QueueRule"));
}

// What is put down for the one that they are kept for, or by one of more priority, is in order.
TEST_F(QueueRuleTest, SaysNothingOfAPlanOfTheSamePriority) {
  Begin();
  Json gang = GangOf("other");
  gang["spec"]["priority"] = 100;
  gang["status"]["placement"] = {
      {"epoch", 1}, {"nodeNames", Json::array({world_.nodes()[0]})}, {"nodes", Json::array({0})}};
  Write(gang);
  world_.Pass(seconds(6));
  EXPECT_EQ(world_.queue_rule().suspected(), 0u);
  EXPECT_THAT(Broken(), testing::IsEmpty());
}

}  // namespace
}  // namespace heddle::sim
