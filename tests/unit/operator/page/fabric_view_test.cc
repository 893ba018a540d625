#include "operator/page/fabric_view.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "operator/page/journal.h"
#include "tests/unit/operator/page/sights.h"

namespace heddle::operators::page {
namespace {

using kube::Json;
using testing::HasSubstr;
using testing::SizeIs;

constexpr std::size_t kState = 2, kUnit = 3, kGpus = 5, kBadGpus = 6, kLinks = 7, kReasons = 8;

int StateOf(const Json& node) {
  return node[kState].get<int>();
}
crds::Condition Complaint(std::string type, std::string message) {
  return {.type = std::move(type),
          .status = crds::ConditionStatus::kFalse,
          .reason = "Because",
          .message = std::move(message)};
}

topology::Suspect FlappingCable(std::string near) {
  return {.name = "leaf su0-r1 port 2 <-> " + near + " mlx5_1:1",
          .node = std::move(near),
          .gangs = 3,
          .evidence = "41 flaps in 10 min",
          .next = "drain or reseat it"};
}

TEST(FabricView, IsTheDocumentThatThePageIsWrittenFor) {
  Sight sight(
      "su:2 node:2 gpu:2 nic:2 rail:2 spine:2 rate:400 transport:ib machine:h100 down:node-01/rail-1 "
      "half:node-02/rail-0");
  sight.stale = {"node-03"};
  sight.topologies.push_back("node-09");
  sight.gangs = {RunningGang({"node-00", "node-01"})};
  sight.suspects["infiniband"] = {FlappingCable("node-01"), FlappingCable("su0-r1")};
  sight.sources.back() = {.kind = "Gang", .error = "forbidden", .since = "2027-01-15T08:00:00Z"};
  Journal journal("test");
  ASSERT_TRUE(journal.Update(sight.Shown()));
  const std::string text = Json::parse(*journal.Since("")).dump(1) + "\n";
  const std::string path = std::string(HEDDLE_SOURCE_DIR) + "/tests/golden/operator/view.json";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::stringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(golden.str(), text) << "run with UPDATE_GOLDEN=1 if this is meant";
}

TEST(FabricView, SaysOfEveryNodeWhatStandsAgainstIt) {
  Sight sight(std::string(kFourNodes) + " down:node-01/rail-1 badgpu:node-02/0");
  EXPECT_EQ(StateOf(sight.Node("node-00")), int(NodeState::kOk));
  EXPECT_THAT(sight.Node("node-00")[kReasons], SizeIs(0));
  const Json link = sight.Node("node-01");
  EXPECT_EQ(StateOf(link), int(NodeState::kDegraded));
  EXPECT_THAT(link[kReasons].dump(), HasSubstr("rail 1"));
  EXPECT_EQ(link[kLinks][3], 400);
  EXPECT_EQ(link[kLinks][7], 0) << "usable bandwidth of rail 1";
  const Json gpu = sight.Node("node-02");
  EXPECT_EQ(StateOf(gpu), int(NodeState::kDegraded));
  EXPECT_EQ(gpu[kGpus], 2);
  EXPECT_EQ(gpu[kBadGpus], 1);
}

TEST(FabricView, HasTheSuspectsOfItsFabricAndNamesTheHostToGoTo) {
  Sight sight(kFourNodes);
  const auto suspects = [&] { return Json::parse(sight.Shown().fabrics)[0]["suspects"]; };
  EXPECT_THAT(suspects(), SizeIs(0));
  sight.suspects["infiniband"] = {FlappingCable("node-01"), FlappingCable("su0-r0")};
  sight.suspects["another"] = {FlappingCable("node-02")};
  const Json shown = suspects();
  ASSERT_THAT(shown, SizeIs(2));
  EXPECT_EQ(shown[0][0], "node-01");
  EXPECT_EQ(
      shown[0][1],
      "leaf su0-r1 port 2 <-> node-01 mlx5_1:1: 41 flaps in 10 min, 3 gangs cross it; drain or reseat it");
  EXPECT_EQ(shown[1][0], "") << "a switch is no node of the page";
}

TEST(FabricView, CallsANodeWithCablesThatContradictDegraded) {
  Sight sight(kFourNodes);
  sight.assembly.complaints["node-01"] = {
      Complaint("CablesLossless", "mlx5_0:1: the switch maps DSCP 26 to 0")};
  EXPECT_EQ(StateOf(sight.Node("node-01")), int(NodeState::kDegraded));
  EXPECT_EQ(sight.Node("node-01")[kReasons][0], "mlx5_0:1: the switch maps DSCP 26 to 0");
}

TEST(FabricView, CallsANodeDownWithoutAnyRailAndStaleWhenItsAgentIsSilent) {
  Sight sight(std::string(kFourNodes) + " down:node-01/rail-0 down:node-01/rail-1");
  EXPECT_EQ(StateOf(sight.Node("node-01")), int(NodeState::kDown));
  EXPECT_EQ(sight.Node("node-01")[kReasons][0], "no rail can be used");
  sight.stale = {"node-01", "node-02"};
  EXPECT_EQ(StateOf(sight.Node("node-01")), int(NodeState::kStale)) << "what it said last may be old";
  EXPECT_EQ(StateOf(sight.Node("node-02")), int(NodeState::kStale));
}

TEST(FabricView, GoesByWhatTheAgentSaysAndDoesNotSayItTwice) {
  Sight sight(std::string(kFourNodes) + " down:node-01/rail-1");
  sight.assembly.complaints["node-01"] = {Complaint("LinksUp", "mlx5_1 is down since 03:12"),
                                          Complaint("LeavesKnown", "the leaf of mlx5_1 is stale")};
  const Json node = sight.Node("node-01");
  EXPECT_EQ(node[kReasons], Json({"mlx5_1 is down since 03:12", "the leaf of mlx5_1 is stale"}));
}

TEST(FabricView, ANoteThatCostsNoBandwidthIsNoVerdict) {
  Sight sight(kFourNodes);
  sight.assembly.complaints["node-01"] = {Complaint("NcclFilesWritten", "the folder cannot be written")};
  EXPECT_EQ(StateOf(sight.Node("node-01")), int(NodeState::kOk));
  EXPECT_EQ(sight.Node("node-01")[kReasons], Json({"the folder cannot be written"}));
  sight.assembly.complaints["node-01"] = {Complaint("PcieLinksFull", "x8 of x16")};
  EXPECT_EQ(StateOf(sight.Node("node-01")), int(NodeState::kDegraded));
}

TEST(FabricView, NamesACableAtTheNodeThatHasIt) {
  const Sight sight(
      "su:2 node:3 gpu:2 nic:2 rail:2 spine:2 rate:400 transport:ib machine:h100 swap:node-01/rail-0/rail-1");
  EXPECT_EQ(StateOf(sight.Node("node-01")), int(NodeState::kDegraded));
  EXPECT_THAT(sight.Node("node-01")[kReasons].dump(), HasSubstr("is cabled to"));
  EXPECT_EQ(StateOf(sight.Node("node-00")), int(NodeState::kOk));
}

TEST(FabricView, ShowsNodesThatNobodyKnowsAnythingOf) {
  Sight sight(kFourNodes);
  sight.topologies.push_back("silent");
  sight.topologies.push_back("garbled");
  sight.topologies.push_back("excluded");
  sight.assembly.left_out["garbled"] = "status.gpus: must be an array";
  sight.assembly.reporting.insert(sight.assembly.reporting.begin(), "excluded");
  for (const char* name : {"silent", "garbled", "excluded"}) {
    EXPECT_EQ(StateOf(sight.Node(name)), int(NodeState::kUnknown)) << name;
    EXPECT_EQ(sight.Node(name)[kUnit], -1);
  }
  EXPECT_THAT(sight.Node("silent")[kReasons][0].get<std::string>(), HasSubstr("no agent has reported yet"));
  EXPECT_THAT(sight.Node("garbled")[kReasons][0].get<std::string>(), HasSubstr("must be an array"));
  EXPECT_THAT(sight.Node("excluded")[kReasons][0].get<std::string>(), HasSubstr("excludedNodes"));
}

TEST(FabricView, AGangLiesOnItsNodesUntilItEnds) {
  Sight sight(kFourNodes);
  sight.gangs = {RunningGang({"node-01", "node-03"})};
  const std::string key = "team/train-12345678-0";
  EXPECT_EQ(sight.Gang(key)["places"], Json({1, 0, 3, 0}));
  EXPECT_EQ(sight.Gang(key)["state"], "running");
  EXPECT_EQ(sight.Gang(key)["axes"], Json({{"tp", 2, 0, 0, 900}, {"dp", 2, 4, 8, 1500}}));
  sight.topologies.insert(sight.topologies.begin(), "a-new-one");
  EXPECT_EQ(sight.Gang(key)["places"], Json({2, 0, 4, 0})) << "places are positions among all names";
  crds::SetCondition(
      sight.gangs[0].status.conditions,
      {.type = std::string(crds::kEnded), .status = crds::ConditionStatus::kTrue, .reason = "x"});
  EXPECT_FALSE(sight.Gang(key).contains("places"));
}

TEST(FabricView, SaysWhatHeddleWouldHaveDoneOnlyOfAGangWithAPrice) {
  Sight sight(kFourNodes);
  crds::Gang gang = RunningGang({"node-01"});
  gang.status.placement.reset();
  gang.status.observed = crds::Observed{.refusal = "16 hosts needed"};
  sight.gangs = {gang};
  const std::string key = "team/train-12345678-0";
  EXPECT_EQ(sight.Gang(key)["observed"]["refusal"], "16 hosts needed");
  sight.gangs[0].status.predicted.reset();
  sight.gangs[0].status.observed.emplace();
  sight.gangs[0].status.reason = "NotPriced";
  EXPECT_FALSE(sight.Gang(key).contains("observed"));
  EXPECT_EQ(sight.Gang(key)["state"], "running");
  EXPECT_EQ(sight.Gang(key)["reason"], "NotPriced");
}

TEST(FabricView, AddsUpTheGpusOfSeveralPodsOnOneNode) {
  Sight sight(kFourNodes);
  sight.gangs = {RunningGang({"node-01"})};
  sight.gangs[0].status.placement =
      crds::ToColumns({{.node = "node-01", .gpus = 1}, {.node = "node-01", .gpus = 2}}, 1);
  EXPECT_EQ(sight.Gang("team/train-12345678-0")["places"], Json({1, 3}));
}

TEST(FabricView, ARankWithoutASlotLiesNowhere) {
  Sight sight(kFourNodes);
  sight.gangs = {RunningGang({"node-01"})};
  sight.gangs[0].spec.pods = 3;
  sight.gangs[0].status.placement =
      crds::ToColumns({{.node = "node-01", .gpus = 1}, {}, {.node = "node-03", .gpus = 2}}, 1);
  EXPECT_EQ(sight.Gang("team/train-12345678-0")["places"], Json({1, 1, 3, 2}));
}

TEST(FabricView, SurvivesPlacementsThatPointNowhereAndTextThatIsNone) {
  Sight sight(kFourNodes);
  crds::Gang bad = RunningGang({"node-01", "gone"});
  bad.status.placement->nodes.push_back(77);
  bad.status.message = std::string("\xff\xfe</script>") + std::string(5000, 'x');
  sight.gangs = {bad};
  sight.assembly.complaints["node-00"] = std::vector(48, Complaint("Ready", std::string(4000, '\xe2')));
  const Json gang = sight.Gang("team/train-12345678-0");
  EXPECT_EQ(gang["places"], Json({1, 0}));
  EXPECT_LT(gang["message"].get<std::string>().size(), 700U);
  EXPECT_LT(sight.Shown().nodes.at("node-00").size(), 4000U);
}

TEST(FabricView, KeepsEveryGangThatHoldsSomethingAndTheLastThatEnded) {
  Sight sight(kFourNodes);
  for (int i = 0; i < 500; ++i) {
    crds::Gang gang = RunningGang({"node-01"});
    gang.name = "gang-" + std::to_string(i);
    // The longer it ran, the later it ended.
    *gang.status.planned_at -= std::chrono::seconds(i);
    if (i >= 10) {
      crds::SetCondition(gang.status.conditions,
                         {.type = std::string(crds::kEnded),
                          .status = crds::ConditionStatus::kTrue,
                          .reason = "x",
                          .last_transition = base::WallTime{std::chrono::seconds(1'900'000'000 + i)}});
    }
    sight.gangs.push_back(gang);
  }
  const Pieces pieces = sight.Shown();
  EXPECT_THAT(pieces.gangs, SizeIs(110));
  EXPECT_TRUE(pieces.gangs.contains("team/gang-0"));
  EXPECT_TRUE(pieces.gangs.contains("team/gang-499"));
  EXPECT_FALSE(pieces.gangs.contains("team/gang-10"));
}

TEST(FabricView, OfTooManyGangsNoneInTroubleIsLeftOutAndItSaysHowManyAre) {
  Sight sight(kFourNodes);
  const auto add = [&](const std::string& name, int count, std::string_view condition) {
    for (int i = 0; i < count; ++i) {
      crds::Gang gang = RunningGang({"node-01"});
      gang.name = name + std::to_string(i);
      if (condition.empty()) {
        gang.status.conditions.clear();
      } else {
        crds::SetCondition(
            gang.status.conditions,
            {.type = std::string(condition), .status = crds::ConditionStatus::kTrue, .reason = "x"});
      }
      sight.gangs.push_back(gang);
    }
  };
  add("a-waiting-", 2500, "");
  add("b-running-", 1000, crds::kRunning);
  add("c-degraded-", 10, crds::kDegraded);
  add("d-ended-", 10, crds::kEnded);
  const Pieces pieces = sight.Shown();
  EXPECT_THAT(pieces.gangs, SizeIs(2000));
  EXPECT_EQ(pieces.gangs_left_out, 1510U) << "of those that have not ended";
  EXPECT_TRUE(pieces.gangs.contains("team/a-waiting-0"));
  EXPECT_TRUE(pieces.gangs.contains("team/b-running-999")) << "its node would seem free";
  EXPECT_TRUE(pieces.gangs.contains("team/c-degraded-9"));
  EXPECT_FALSE(pieces.gangs.contains("team/d-ended-9"));
}

TEST(FabricView, AGangThatCannotBeReadIsInTroubleAndSaysWhy) {
  Sight sight(kFourNodes);
  sight.unread_gangs[{"team", "odd"}] = "Gang odd: spec.pods: must be an integer";
  const Json gang = sight.Gang("team/odd");
  EXPECT_EQ(gang["state"], "degraded");
  EXPECT_EQ(gang["message"], "it cannot be read: Gang odd: spec.pods: must be an integer");
  EXPECT_EQ(sight.Shown().gangs_left_out, 0U);
  for (int i = 0; i < 200; ++i) sight.unread_gangs[{"team", "odd-" + std::to_string(i)}] = "why";
  EXPECT_THAT(sight.Shown().gangs, SizeIs(100));
  EXPECT_EQ(sight.Shown().gangs_left_out, 101U);
}

TEST(FabricView, TenThousandNodesAreLessThanThreeMegabytes) {
  Sight sight("su:313 node:32 gpu:8 nic:8 rail:8 spine:16 rate:400 transport:ib machine:h100");
  ASSERT_GT(sight.topologies.size(), 10'000U);
  Journal journal("test");
  journal.Update(sight.Shown());
  EXPECT_LT(journal.Since("")->size(), std::size_t(3) << 20);
}

}  // namespace
}  // namespace heddle::operators::page
