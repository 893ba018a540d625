#include <gmock/gmock.h>

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
               FabricOf("su:2 node:3 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100 "
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

}  // namespace
}  // namespace heddle::cli
