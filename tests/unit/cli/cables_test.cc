#include "cli/cables.h"

#include <gmock/gmock.h>

#include "tests/unit/cli/cluster_text.h"
#include "tests/unit/cli/golden.h"
#include "tests/unit/cli/stage.h"

namespace heddle::cli {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kSwapped =
    "su:2 node:4 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100 swap:node-01/rail-2/rail-3 "
    "down:node-06/rail-5";

class CablesTest : public Stage {
 protected:
  Output Run(CablesOptions options = {}, Format format = Format::kText, std::size_t width = 0) {
    return RunCables(client, options, {.format = format, .style = {.width = width}}, {});
  }
  Json Items(CablesOptions options = {}) {
    return Json::parse(Run(std::move(options), Format::kJson).out, nullptr, false)["items"];
  }
  // Changes the first port of a NIC of a node.
  void EditPort(const std::string& node, const std::string& nic, const std::function<void(Json&)>& change) {
    server.Edit(ResourceOf(keys::kNodeTopology), {"", node}, [&](Json& object) {
      for (Json& one : object["status"]["nics"]) {
        if (one["name"] == nic) change(one["ports"][0]);
      }
    });
  }
};

TEST_F(CablesTest, ShowsWhatIsWrongFirstWithBothEndsOfASwap) {
  AddCluster(kSwapped);
  const Output output = Run({.problems = true});
  EXPECT_EQ(output.exit_code, Output::kRefused) << output.err;
  ExpectGolden("cables.txt", output.out);
  ExpectFits(
      [this](const Style& style) { return RunCables(client, {.problems = true}, {.style = style}, {}).out; });
  ExpectGolden("cables_80.txt", Run({.problems = true}, Format::kText, 80).out);
}

TEST_F(CablesTest, HasARowForEachPort) {
  AddCluster(kSwapped);
  const Json items = Items();
  ASSERT_EQ(items.size(), 64U);
  EXPECT_EQ(items[0]["verdict"], "swapped");
  EXPECT_EQ(items[1]["verdict"], "swapped");
  EXPECT_EQ(items[0]["node"], "node-01");
  EXPECT_EQ(items[0]["rail"], 2);
  EXPECT_EQ(items[0]["leafRail"], 3);
  EXPECT_EQ(items[0]["leaf"], items[1]["expectedLeaf"]);
  EXPECT_THAT(items[0]["swappedWith"].get<std::string>(),
              HasSubstr("node-01 mlx5_3 on " + items[1]["leaf"].get<std::string>()));
  EXPECT_EQ(items[2]["verdict"], "down");
  EXPECT_EQ(items[63]["verdict"], "ok");
  EXPECT_EQ(items[63]["leaf"], items[63]["expectedLeaf"]);
}

TEST_F(CablesTest, SaysTheSameAsTheFabric) {
  AddCluster(kSwapped);
  const std::string fabric = RunFabric(client, {.format = Format::kJson}, {}).out;
  const Json faults = Json::parse(fabric)["items"][0]["status"]["faults"];
  ASSERT_EQ(faults.size(), 2U);
  for (std::size_t i = 0; i < faults.size(); ++i) EXPECT_EQ(Items()[i]["message"], faults[i]["sentence"]);
}

TEST_F(CablesTest, TellsAWrongLeafFromAWrongRail) {
  AddCluster("su:2 node:4 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100");
  const std::string other = Items({.node = "node-07"})[4]["leaf"],
                    same = Items({.node = "node-07"})[5]["leaf"];
  EditPort("node-01", "mlx5_4", [&](Json& port) { port["leaf"] = other, port["leafPort"] = "99"; });
  EditPort("node-06", "mlx5_4", [&](Json& port) { port["leaf"] = same, port["leafPort"] = "98"; });
  const Json items = Items({.problems = true});
  ASSERT_EQ(items.size(), 2U) << items.dump(1);
  EXPECT_EQ(items[0]["verdict"], "wrong rail");
  EXPECT_EQ(items[0]["node"], "node-06");
  EXPECT_EQ(items[1]["verdict"], "wrong leaf");
  EXPECT_EQ(items[1]["node"], "node-01");
  EXPECT_THAT(Run({.node = "node-01"}).out,
              HasSubstr("belongs on " + items[1]["expectedLeaf"].get<std::string>()));
}

TEST_F(CablesTest, TellsWhatNobodyKnowsFromWhatIsWrong) {
  AddCluster("su:1 node:4 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100");
  const auto missing = [this](const std::string& nic, const char* why) {
    EditPort("node-02", nic, [why](Json& port) {
      port.erase("leaf");
      port.erase("leafPort");
      port["leafMissing"] = why;
    });
  };
  missing("mlx5_0", "Stale");
  missing("mlx5_1", "Ambiguous");
  missing("mlx5_2", "Unknown");
  missing("mlx5_3", "NotApplicable");
  const Output output = Run({.node = "node-02"});
  EXPECT_EQ(output.exit_code, Output::kOk);
  EXPECT_THAT(output.out, HasSubstr("8 ports: 1 ambiguous, 1 stale, 1 unknown, 1 not judged, 4 ok"));
  EXPECT_EQ(Items({.problems = true}).size(), 3U);
}

TEST_F(CablesTest, SaysInASentenceThatAllIsWell) {
  AddCluster("su:1 node:4 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100");
  EXPECT_EQ(Run({.problems = true}).out, "All 32 ports end where they should.\n");
  EXPECT_EQ(Run({.problems = true}).exit_code, Output::kOk);
}

TEST_F(CablesTest, DoesNotCallWellWhatIsNotJudged) {
  AddCluster("su:1 node:4 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100");
  for (int nic = 0; nic < 8; ++nic) {
    EditPort("node-02", "mlx5_" + std::to_string(nic), [](Json& port) {
      port.erase("leaf");
      port.erase("leafPort");
      port["leafMissing"] = "NotApplicable";
    });
  }
  EXPECT_EQ(Run({.problems = true}).out, "32 ports: 24 ok, 8 not judged.\n");
  EXPECT_EQ(Run({.node = "node-02", .problems = true}).out, "8 ports: 0 ok, 8 not judged.\n");
  EXPECT_EQ(Run({.node = "node-01", .problems = true}).out, "All 8 ports end where they should.\n");
}

TEST_F(CablesTest, WritesCsvThatEveryReaderTakes) {
  AddCluster(kSwapped);
  EditPort("node-00", "mlx5_0", [](Json& port) { port["leaf"] = "leaf \"A\", row 3"; });
  const std::string csv = Run({.csv = true}).out;
  EXPECT_THAT(csv, testing::StartsWith("verdict,node,nic,port,netdev,rail,"));
  EXPECT_THAT(csv, HasSubstr(",\"leaf \"\"A\"\", row 3\","));
  std::size_t lines = 0;
  for (std::size_t at = csv.find('\n'); at != std::string::npos; at = csv.find('\n', at + 1)) {
    ++lines;
    EXPECT_EQ(csv[at - 1], '\r');
  }
  EXPECT_EQ(lines, 65U);
}

TEST_F(CablesTest, DoesNotJudgeANodeThatIsLeftOut) {
  AddCluster(kSwapped);
  Json fabric = kube::NewObject(ResourceOf(keys::kFabric), {"", "infiniband"});
  fabric["spec"]["excludedNodes"] = Json::array({"node-01"});
  server.Put(ResourceOf(keys::kFabric), fabric);
  for (const Json& item : Items({.node = "node-01"})) EXPECT_EQ(item["verdict"], "not judged");
}

TEST_F(CablesTest, NamesTheOneNodeThatHasNoPortForJobs) {
  AddCluster(kSwapped);
  server.Edit(ResourceOf(keys::kNodeTopology), {"", "node-02"}, [](Json& object) {
    for (Json& nic : object["status"]["nics"]) nic["role"] = "storage";
  });
  Files files;
  files.texts["nt.json"] = ListOf(server.All(ResourceOf(keys::kNodeTopology)));
  const Output live = Run({.node = "node-02"});
  EXPECT_EQ(live.exit_code, Output::kFailed);
  const Output file = ShowCables({.node = "node-02", .topology = {"nt.json"}}, files.read, {});
  EXPECT_EQ(file.exit_code, Output::kUsage);
  for (const Output& output : {live, file})
    EXPECT_THAT(output.err, HasSubstr("Node node-02 has no port that carries jobs.\n"));
}

TEST_F(CablesTest, RefusesWhatCannotBeAnswered) {
  EXPECT_EQ(Run().exit_code, Output::kFailed);
  EXPECT_THAT(Run().err, HasSubstr("kubectl heddle doctor"));
  EXPECT_EQ(Run({}, Format::kJson).exit_code, Output::kFailed) << "in every form";
  EXPECT_EQ(Items(), Json::array());
  EXPECT_EQ(Run({.csv = true}).exit_code, Output::kFailed);
  AddCluster(kSwapped);
  EXPECT_EQ(Run({.node = "node-99"}).exit_code, Output::kFailed);
  EXPECT_THAT(Run({.node = "node-99"}).err, HasSubstr("kubectl heddle topology"));
  EXPECT_EQ(Run({.csv = true}, Format::kJson).exit_code, Output::kUsage);
  server.FailNext({.method = "GET", .path_contains = "nodetopologies", .status = 404});
  EXPECT_THAT(Run().err, HasSubstr("Is Heddle installed here?"));
}

}  // namespace
}  // namespace heddle::cli
