#include <gmock/gmock.h>

#include "cli/plan.h"
#include "cli/topology_view.h"
#include "tests/unit/cli/golden.h"
#include "tests/unit/cli/stage.h"

namespace heddle::cli {
namespace {

using testing::HasSubstr;

class ViewsTest : public Stage {
 protected:
  Output Topology(const std::string& node = "", Format format = Format::kText) {
    return RunTopology(client, node, {.format = format}, {});
  }
  Output FabricOf(const std::string& line, Format format = Format::kText) {
    AddCluster(line);
    return RunFabric(client, {.format = format}, {});
  }
};

TEST_F(ViewsTest, ListsNodes) {
  AddCluster(
      "su:1 node:3 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100 down:node-01/rail-2 "
      "badgpu:node-02/5");
  ExpectGolden("topology.txt", Topology().out);
}

TEST_F(ViewsTest, DrawsANodeAsATree) {
  AddCluster(
      "su:1 node:2 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100 down:node-01/rail-2 "
      "badgpu:node-01/5");
  ExpectGolden("topology_node.txt", Topology("node-01").out);
}

TEST_F(ViewsTest, WritesNodesAsJson) {
  AddCluster("su:1 node:2 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100");
  EXPECT_EQ(Json::parse(Topology("", Format::kJson).out)["items"].size(), 2U);
  EXPECT_EQ(Json::parse(Topology("node-01", Format::kJson).out)["kind"], "NodeTopology");
}

TEST_F(ViewsTest, SaysWhatIsMissingWhenNobodyReported) {
  EXPECT_EQ(Topology().exit_code, Output::kFailed);
  EXPECT_THAT(Topology().err, HasSubstr("heddle-nodeagent"));
  EXPECT_THAT(Topology("node-9").err, HasSubstr("kubectl heddle topology"));
  EXPECT_EQ(RunFabric(client, {}, {}).exit_code, Output::kFailed);
}

TEST_F(ViewsTest, SaysThatHeddleIsNotInstalled) {
  server.FailNext({.method = "GET", .path_contains = "nodetopologies", .status = 404});
  const Output output = Topology();
  EXPECT_EQ(output.exit_code, Output::kFailed);
  EXPECT_THAT(output.err, HasSubstr("Is Heddle installed here?"));
}

TEST_F(ViewsTest, ShowsRailsByUnitAndWhatIsWrong) {
  ExpectGolden("fabric.txt",
               FabricOf("su:2 node:2 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100 "
                        "swap:node-01/rail-2/rail-3")
                   .out);
}

TEST_F(ViewsTest, ShowsRacks) {
  ExpectGolden("fabric_nvl72.txt", FabricOf("rack:2 tray:18 gpu:4 nic:4 rail:4 rate:400 nvl").out);
}

TEST_F(ViewsTest, ShowsPlainTors) {
  ExpectGolden("fabric_tor.txt", FabricOf("tor:2 node:2 gpu:8 nic:2 rate:100 transport:roce").out);
}

TEST_F(ViewsTest, WritesFabricsAsJson) {
  const Output output = FabricOf("tor:2 node:2 gpu:8 nic:2 rate:100 transport:roce", Format::kJson);
  EXPECT_EQ(Json::parse(output.out)["items"][0]["status"]["transport"], "RoCE");
}

TEST(PlanCommand, PlacesAGangOnAClusterInOneLine) {
  const PlanOptions options{
      .fabric = "su:2 node:4 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100",
      .parallelism = "tp=8,pp=2,dp=2",
      .gpus_per_pod = 4,
      .taken = "node-00=4"};
  const std::string text = Plan(options, {}).out;
  // The sentences that follow are the planner's.
  ExpectGolden("plan.txt", WithoutTimes(text.substr(0, text.find("\n\n", text.find("left whole")) + 1)));
  const Output json = Plan(options, {.format = Format::kJson});
  EXPECT_EQ(json.exit_code, Output::kOk);
  EXPECT_EQ(Json::parse(json.out)["tpGroupsInDomain"], 4);
  EXPECT_EQ(Json::parse(json.out)["pods"].size(), 8U);
}

TEST(PlanCommand, ExitsWithThreeAndAReasonWhenThereIsNoPlace) {
  const PlanOptions options{.fabric = "su:1 node:2 gpu:8 nic:8 rail:8 rate:400 transport:ib",
                            .parallelism = "tp=8,dp=4"};
  EXPECT_EQ(Plan(options, {}).exit_code, Output::kRefused);
  const Output json = Plan(options, {.format = Format::kJson});
  EXPECT_EQ(json.exit_code, Output::kRefused);
  EXPECT_FALSE(Json::parse(json.out)["sentence"].get<std::string>().empty());
}

TEST(PlanCommand, SaysWhatIsWrongWithItsWords) {
  const PlanOptions good{.fabric = "su:1 node:2 gpu:8 nic:8 rail:8 rate:400 transport:ib",
                         .parallelism = "tp=8,dp=2"};
  const auto refused = [&](auto change) {
    PlanOptions options = good;
    change(options);
    const Output output = Plan(options, {});
    EXPECT_EQ(output.exit_code, Output::kUsage) << output.out;
    EXPECT_FALSE(output.err.empty());
    return output.err;
  };
  EXPECT_THAT(refused([](PlanOptions& options) { options.fabric = "su:x"; }), HasSubstr("--fabric"));
  EXPECT_THAT(refused([](PlanOptions& options) { options.parallelism = "tp=0"; }),
              HasSubstr("--parallelism"));
  EXPECT_THAT(refused([](PlanOptions& options) { options.gpus_per_pod = 5; }), HasSubstr("--gpus-per-pod"));
  EXPECT_THAT(refused([](PlanOptions& options) { options.gpus_per_pod = 0; }), HasSubstr("--gpus-per-pod"));
  EXPECT_THAT(refused([](PlanOptions& options) { options.model = "params=many"; }), HasSubstr("--model"));
  EXPECT_THAT(refused([](PlanOptions& options) { options.require = "tp=moon"; }), HasSubstr("--require"));
  EXPECT_THAT(refused([](PlanOptions& options) { options.taken = "node-0"; }), HasSubstr("--taken"));
  EXPECT_THAT(refused([](PlanOptions& options) { options.taken = "moon=1"; }), HasSubstr("moon"));
}

}  // namespace
}  // namespace heddle::cli
