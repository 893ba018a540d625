#include "cli/defragment.h"

#include <gmock/gmock.h>

#include "cli/plan.h"
#include "crds/yaml.h"
#include "tests/unit/cli/cluster_text.h"
#include "tests/unit/cli/golden.h"

namespace heddle::cli {
namespace {

using ::testing::HasSubstr;

// A gang of one pod on each of these nodes, four GPUs each.
Json Half(const std::string& name, const std::vector<std::string>& nodes, std::uint32_t gpus) {
  std::vector<crds::PlacedPod> rows;
  for (const std::string& node : nodes) rows.push_back({node, gpus, {}});
  crds::Gang gang;
  gang.ns = "train";
  gang.name = name;
  gang.spec.owner = {"batch/v1", "Job", name, "uid"};
  gang.spec.pods = int(rows.size());
  gang.spec.gpus_per_pod = 4;
  placement::Parallelism parallelism;
  parallelism.tp = 4;
  parallelism.dp = gang.spec.pods;
  gang.spec.parallelism = parallelism;
  gang.status.placement = crds::ToColumns(rows, 1);
  return crds::ToJson(gang);
}

PlanOptions Asked(int places) {
  PlanOptions options{.ground = {.topology = {"nt.json"}}};
  options.defragment = places;
  return options;
}

Files Cluster() {
  Files files;
  Json items = NodeTopologiesOf("su:1 node:3 gpu:8 nic:8 rail:8 spine:0");
  items.push_back(Half("a", {"node-00"}, 0x0F));
  items.push_back(Half("b", {"node-01"}, 0x0F));
  items.push_back(Half("c", {"node-02"}, 0xF0));
  files.texts["nt.json"] = ListOf(items);
  return files;
}

TEST(Defragment, NamesTheGangsToMoveAndWhereTo) {
  const Files files = Cluster();
  const Output output = Plan(Asked(1), files.read, {.format = Format::kJson});
  EXPECT_EQ(output.exit_code, Output::kOk);
  const Json json = Json::parse(output.out);
  EXPECT_EQ(json["possible"], true);
  EXPECT_EQ(json["wholeBefore"], 0);
  EXPECT_EQ(json["wholeAfter"], 1);
  EXPECT_EQ(json["cost"], 4);
  EXPECT_EQ(json["refusal"], nullptr);
  ASSERT_EQ(json["moves"].size(), 1u);
  const Json& move = json["moves"][0];
  ASSERT_EQ(json["opened"].size(), 1u);
  EXPECT_EQ(move["from"], json["opened"]) << "a server is its own NVLink domain";
  ASSERT_EQ(move["to"].size(), 1u);
  EXPECT_NE(move["to"][0]["node"], move["from"][0]);
  EXPECT_EQ(move["to"][0]["gpus"].size(), 4u);
  EXPECT_EQ(move["gpus"], 4);
  const std::string text = Plan(Asked(1), files.read, {}).out;
  EXPECT_THAT(text, HasSubstr("Now 0 whole NVLink domains, then 1"));
  EXPECT_THAT(text, HasSubstr("Cost: 4 GPUs"));
  const Output yaml = Plan(Asked(1), files.read, {.format = Format::kYaml});
  EXPECT_EQ(*crds::FromYaml(yaml.out), json);
}

// Beside it the others are moved as ever.
TEST(Defragment, LeavesAGangInPeaceOfWhichARankIsDone) {
  Files files;
  Json items = NodeTopologiesOf("su:1 node:3 gpu:8 nic:8 rail:8 spine:0");
  auto gang = crds::GangFromJson(Half("a", {"node-00", "node-01"}, 0x0F));
  ASSERT_TRUE(gang) << gang.error().message;
  gang->status.placement = crds::ToColumns({{"node-00", 0x0F, {}}, {}}, 1);
  items.push_back(crds::ToJson(*gang));
  items.push_back(Half("b", {"node-01"}, 0x0F));
  items.push_back(Half("c", {"node-02"}, 0xF0));
  files.texts["nt.json"] = ListOf(items);
  const Output output = Plan(Asked(1), files.read, {.format = Format::kJson});
  ASSERT_EQ(output.exit_code, Output::kOk) << output.out << output.err;
  const Json json = Json::parse(output.out);
  EXPECT_EQ(json["possible"], true);
  for (const Json& move : json["moves"]) EXPECT_NE(move["gang"], "gang train/a");
  EXPECT_THAT(Plan(Asked(1), files.read, {}).out,
              HasSubstr("others who hold GPUs and stay where they are: 1"));
}

TEST(Defragment, FitsATerminal) {
  const Files files = Cluster();
  for (const int places : {1, 2, 4}) {
    ExpectFits([&](const Style& style) { return Plan(Asked(places), files.read, {.style = style}).out; });
  }
}

TEST(Defragment, RefusesWithWhatCouldBeHad) {
  const Files files = Cluster();
  const Output output = Plan(Asked(2), files.read, {.format = Format::kJson});
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_EQ(Json::parse(output.out)["refusal"]["reason"], "TooFewFree") << "16 GPUs, and 12 are free";
  EXPECT_THAT(Plan(Asked(4), files.read, {}).out, HasSubstr("Refused TooFewPlaces"));
}

TEST(Defragment, LeavesPodsOfNoGangAlone) {
  Files files = Cluster();
  files.texts["pods.json"] = ListOf(Json::array({Json::parse(
      R"({"kind":"Pod","metadata":{"name":"p","namespace":"n","uid":"u"},
      "spec":{"nodeName":"node-02","containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}]},
      "status":{"phase":"Running"}})")}));
  PlanOptions options = Asked(1);
  options.ground.taken = "pods.json";
  const Json json = Json::parse(Plan(options, files.read, {.format = Format::kJson}).out);
  EXPECT_EQ(json["possible"], true);
  EXPECT_NE(json["opened"][0], "node-02");
  EXPECT_THAT(Plan(options, files.read, {}).out,
              HasSubstr("others who hold GPUs and stay where they are: 1"));
}

TEST(Defragment, SaysWhatIsWrongWithTheQuestion) {
  const Files files = Cluster();
  const auto error_of = [&](auto change) {
    PlanOptions options = Asked(1);
    change(options);
    const Output output = Plan(options, files.read, {});
    EXPECT_EQ(output.exit_code, Output::kUsage) << output.out;
    return output.err;
  };
  EXPECT_THAT(error_of([](PlanOptions& o) { o.defragment = 0; }), HasSubstr("--defragment 0"));
  EXPECT_THAT(error_of([](PlanOptions& o) { o.defragment_level = "leaf"; }), HasSubstr("nvlink or su"));
  EXPECT_THAT(error_of([](PlanOptions& o) { o.defragment_gpus = 0; }), HasSubstr("--defragment-gpus"));
  EXPECT_THAT(error_of([](PlanOptions& o) { o.slower_percent = -2; }), HasSubstr("--slower"));
  EXPECT_THAT(error_of([](PlanOptions& o) { o.parallelism = "tp=8"; }), HasSubstr("leave --parallelism"));
  EXPECT_THAT(error_of([](PlanOptions& o) { o.gpus_per_pod = 8; }), HasSubstr("leave --gpus-per-pod"));
  EXPECT_THAT(error_of([](PlanOptions& o) { o.require = "tp=nvlink"; }), HasSubstr("leave --require"));
  EXPECT_THAT(error_of([](PlanOptions& o) { o.suggest = true; }), HasSubstr("leave --suggest"));
  EXPECT_THAT(error_of([](PlanOptions& o) { o.ground = {.synthetic = "su:1 node:2", .taken = "node-00=4"}; }),
              HasSubstr("no gangs to move"));
  Files none;
  none.texts["nt.json"] = ListOf(NodeTopologiesOf("su:1 node:2 gpu:8 nic:8 rail:8 spine:0"));
  EXPECT_THAT(Plan(Asked(1), none.read, {}).err, HasSubstr("no Gang in the files"));
}

}  // namespace
}  // namespace heddle::cli
