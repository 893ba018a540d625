#include "cli/plan.h"

#include <gmock/gmock.h>

#include <tuple>

#include "cli/what_if.h"
#include "crds/gang.h"
#include "crds/node_topology.h"
#include "crds/yaml.h"
#include "tests/support/seeds.h"
#include "tests/unit/cli/cluster_text.h"
#include "tests/unit/cli/golden.h"
#include "topology/synthetic.h"

namespace heddle::cli {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTwoNodes = "su:1 node:2 gpu:8 nic:8 rail:8 rate:400 transport:ib";

PlanOptions OnFile(const std::string& parallelism = "tp=8,dp=2") {
  return {.ground = {.topology = {"nt.json"}}, .parallelism = parallelism};
}

TEST(PlanCommand, PlacesAGangOnAClusterInOneLine) {
  Files files;
  const PlanOptions options{
      .ground = {.synthetic = "su:2 node:4 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100",
                 .taken = "node-00=4"},
      .parallelism = "tp=8,pp=2,dp=2",
      .gpus_per_pod = 4};
  const std::string text = Plan(options, files.read, {}).out;
  ExpectFits([&](const Style& style) { return Plan(options, files.read, {.style = style}).out; });
  // The sentences that follow are the planner's.
  ExpectGolden("plan.txt", WithoutTimes(text.substr(0, text.find("\n\n", text.find("left whole")) + 1)));
}

TEST(PlanCommand, FitsATerminalOf80Columns) {
  Files files;
  PlanOptions options{.ground = {.synthetic = "su:2 node:4 gpu:8 nic:8 rail:8 spine:2"},
                      .parallelism = "tp=8,pp=2,dp=2"};
  const OutputOptions narrow{.style = {.width = 80}};
  const std::string text = Plan(options, files.read, narrow).out;
  EXPECT_EQ(WiderThan(80, text), std::vector<std::string>{});
  EXPECT_THAT(text, HasSubstr("\n    bound by NVLink 2952 Gb/s, as NVLS\n"));
  EXPECT_EQ(Plan(options, files.read, {.style = {.width = 500}}).out, Plan(options, files.read, {}).out);
  options.parallelism = "tp=128";
  EXPECT_EQ(WiderThan(80, Plan(options, files.read, narrow).out), std::vector<std::string>{});
}

TEST(PlanCommand, WritesEveryRankWithItsPlaceForScripts) {
  Files files;
  const PlanOptions options{
      .ground = {.synthetic = kTwoNodes}, .parallelism = "tp=8,dp=2", .gpus_per_pod = 4};
  const Output output = Plan(options, files.read, {.format = Format::kJson});
  EXPECT_EQ(output.exit_code, Output::kOk);
  const Json json = Json::parse(output.out);
  EXPECT_EQ(json["feasible"], true);
  EXPECT_EQ(json["refusal"], nullptr);
  ASSERT_EQ(json["ranks"].size(), 16u);
  std::set<std::pair<std::string, int>> gpus;
  for (std::size_t rank = 0; rank < 16; ++rank) {
    const Json& one = json["ranks"][rank];
    EXPECT_EQ(one["rank"], rank);
    EXPECT_EQ(one["pod"], rank / 4);
    EXPECT_EQ(one["rail"], one["gpu"]);
    EXPECT_EQ(one["leaf"], "su0-r" + std::to_string(one["gpu"].get<int>()));
    EXPECT_TRUE(one["nic"].is_string());
    EXPECT_TRUE(one["nvlinkDomain"].is_string());
    gpus.emplace(one["node"], one["gpu"]);
  }
  EXPECT_EQ(gpus.size(), 16u);
  EXPECT_EQ(json["axes"][0]["axis"], "tp");
  EXPECT_EQ(json["axes"][0]["worstTier"], "nvlink");
  EXPECT_EQ(json["axes"][1]["worstTier"], "leaf");
  EXPECT_EQ(json["axes"][1]["groups"], 8);
  EXPECT_GT(json["axes"][1]["bytes"], 0);
  EXPECT_EQ(json["leafCrossings"], 0);
  EXPECT_GT(json["milliseconds"], 0);
  const Output yaml = Plan(options, files.read, {.format = Format::kYaml});
  EXPECT_EQ(*crds::FromYaml(yaml.out), json);
}

std::set<std::string> KeysOf(const Json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

// Scripts read these: a new one may come, none may go. docs/plan.md has them.
TEST(PlanCommand, KeepsTheKeysThatScriptsRead) {
  Files files;
  PlanOptions options{.ground = {.synthetic = kTwoNodes}, .parallelism = "tp=8,dp=2"};
  const auto ask = [&] { return Json::parse(Plan(options, files.read, {.format = Format::kJson}).out); };
  using Keys = std::set<std::string>;
  const Json plan = ask();
  EXPECT_EQ(KeysOf(plan),
            (Keys{"axes", "explanation", "feasible", "leafCrossings", "milliseconds", "railMisaligned",
                  "ranks", "refusal", "tpGroups", "tpGroupsInDomain", "wholeDomainsLeft"}));
  EXPECT_EQ(KeysOf(plan["ranks"][0]),
            (Keys{"rank", "pod", "node", "gpu", "nic", "rail", "leaf", "nvlinkDomain"}));
  EXPECT_EQ(KeysOf(plan["axes"][0]), (Keys{"axis", "size", "groups", "worstTier", "edges", "leafCrossings",
                                           "bytes", "algorithm", "boundBy", "gbps", "milliseconds"}));
  options.parallelism = "tp=8,dp=4";
  const Json refused = ask();
  EXPECT_EQ(KeysOf(refused), (Keys{"axes", "feasible", "leafCrossings", "milliseconds", "ranks", "refusal"}));
  EXPECT_EQ(KeysOf(refused["refusal"]), (Keys{"reason", "message", "closest", "leftOut"}));
  EXPECT_EQ(KeysOf(refused["refusal"]["closest"]), (Keys{"place", "name", "neededGpus", "hasGpus"}));
}

TEST(PlanCommand, ExitsWithThreeAndTheClosestMissWhenThereIsNoPlace) {
  Files files;
  const PlanOptions options{.ground = {.synthetic = kTwoNodes}, .parallelism = "tp=16"};
  EXPECT_EQ(Plan(options, files.read, {}).exit_code, Output::kRefused);
  const Output output = Plan(options, files.read, {.format = Format::kJson});
  EXPECT_EQ(output.exit_code, Output::kRefused);
  const Json json = Json::parse(output.out);
  EXPECT_EQ(json["feasible"], false);
  EXPECT_EQ(json["ranks"], Json::array());
  EXPECT_EQ(json["refusal"]["reason"], "TooLargeForDomain");
  EXPECT_THAT(json["refusal"]["message"].get<std::string>(), HasSubstr("16"));
  EXPECT_EQ(json["refusal"]["closest"]["place"], "NVLink domain");
  EXPECT_EQ(json["refusal"]["closest"]["neededGpus"], 16);
  EXPECT_EQ(json["refusal"]["closest"]["hasGpus"], 8);
}

TEST(PlanCommand, SaysOnWhichOfSeveralFabricsTheGangLies) {
  Files files;
  PlanOptions options{.ground = {.synthetic = "site:2 su:1 node:2,4"}, .parallelism = "tp=8,dp=4"};
  EXPECT_THAT(
      Plan(options, files.read, {}).out,
      testing::StartsWith("Of 2 fabrics, InfiniBand at site-1 is the fastest; no gang lies on two.\n"));
  options.parallelism = "tp=8,dp=6";
  const Output refused = Plan(options, files.read, {});
  EXPECT_EQ(refused.exit_code, Output::kRefused);
  EXPECT_THAT(refused.out, testing::StartsWith("Of 2 fabrics, InfiniBand at site-1 has the most GPUs;"));
  options.ground.synthetic = "su:1 node:8";
  EXPECT_THAT(Plan(options, files.read, {}).out, testing::StartsWith("6 pods of 8 GPUs"));
}

TEST(PlanCommand, SaysWhenPodsAreLargerThanNodesBecauseNobodySaidHowLarge) {
  Files files;
  PlanOptions options{.ground = {.synthetic = "nvlink:18 su:1 node:18 gpu:4"}, .parallelism = "tp=8,dp=2"};
  EXPECT_THAT(Plan(options, files.read, {}).out, HasSubstr("try --gpus-per-pod 4\n"));
  options.gpus_per_pod = 8;
  EXPECT_THAT(Plan(options, files.read, {}).out, testing::Not(HasSubstr("try --gpus-per-pod")));
  options.gpus_per_pod = 4;
  EXPECT_EQ(Plan(options, files.read, {}).exit_code, Output::kOk);
}

TEST(PlanCommand, SaysThatMillisecondsAreAGuessWithoutAModel) {
  Files files;
  PlanOptions options{.ground = {.synthetic = kTwoNodes}, .parallelism = "tp=8,dp=2"};
  EXPECT_THAT(Plan(options, files.read, {}).out, HasSubstr("without --model the bytes are a guess"));
  options.model = "params=8e9";
  EXPECT_THAT(Plan(options, files.read, {}).out, HasSubstr("axes weigh by default"));
  options.model = "params=8e9,layers=32,hidden=4096,seq=8192";
  EXPECT_THAT(Plan(options, files.read, {}).out, testing::Not(HasSubstr("a guess")));
}

TEST(PlanCommand, PlansOnWhatKubectlPrinted) {
  Files files;
  Json items = NodeTopologiesOf("su:1 node:3 gpu:8 nic:8 rail:8");
  files.texts["nt.json"] = ListOf(items);
  EXPECT_EQ(Plan(OnFile("tp=8,dp=3"), files.read, {}).exit_code, Output::kOk);
  items.push_back(GangOn({{"node-01", 0, {}}}));
  files.texts["nt.json"] = ListOf(items);
  EXPECT_EQ(Plan(OnFile("tp=8,dp=3"), files.read, {}).exit_code, Output::kRefused) << "a Gang holds a node";
  const Json two = Json::parse(Plan(OnFile(), files.read, {.format = Format::kJson}).out);
  for (const Json& rank : two["ranks"]) EXPECT_NE(rank["node"], "node-01");
  items.back()["status"]["conditions"] = Json::array({{{"type", "Ended"},
                                                       {"status", "True"},
                                                       {"reason", "OwnerGone"},
                                                       {"message", "gone"},
                                                       {"lastTransitionTime", "2026-11-21T00:00:00Z"}}});
  files.texts["nt.json"] = ListOf(items);
  EXPECT_EQ(Plan(OnFile("tp=8,dp=3"), files.read, {}).exit_code, Output::kOk) << "it has ended";
  Json list = Json::parse(files.texts["nt.json"]);
  files.texts["nt.json"] = crds::ToYaml(list);
  EXPECT_EQ(Plan(OnFile("tp=8,dp=3"), files.read, {}).exit_code, Output::kOk) << "YAML too";
  std::string documents;
  for (const Json& item : list["items"]) documents += "---\n" + crds::ToYaml(item);
  files.texts["nt.json"] = documents;
  EXPECT_EQ(Plan(OnFile("tp=8,dp=3"), files.read, {}).exit_code, Output::kOk) << "document after document";
}

TEST(PlanCommand, CountsThePodsOfAFileAsTaken) {
  Files files;
  files.texts["nt.json"] = ListOf(NodeTopologiesOf("su:1 node:2 gpu:8 nic:8 rail:8"));
  files.texts["pods.json"] =
      ListOf(Json::array({Json::parse(R"({"kind":"Pod","metadata":{"name":"p","namespace":"n","uid":"u"},
      "spec":{"nodeName":"node-00","containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}]},
      "status":{"phase":"Running"}})")}));
  PlanOptions options = OnFile();
  EXPECT_EQ(Plan(options, files.read, {}).exit_code, Output::kOk);
  options.ground.taken = "pods.json";
  EXPECT_EQ(Plan(options, files.read, {}).exit_code, Output::kRefused);
  options.ground = {.synthetic = "su:1 node:2 gpu:8 nic:8 rail:8"};
  EXPECT_EQ(Plan(options, files.read, {}).exit_code, Output::kOk);
  options.ground.taken = "pods.json";
  EXPECT_EQ(Plan(options, files.read, {}).exit_code, Output::kRefused) << "on a cluster in one line too";
}

// Of 32 GPUs 10 are held.
TEST(PlanCommand, TellsPodsThatAPersonWroteByTheirNames) {
  Files files;
  Json items = NodeTopologiesOf("su:1 node:4 gpu:8 nic:8 rail:8");
  for (const auto& [name, node, gpus] : {std::tuple("a", "node-00", "8"), std::tuple("b", "node-01", "2")}) {
    Json pod = Json::parse(R"({"kind":"Pod","metadata":{"namespace":"n"},"status":{"phase":"Running"}})");
    pod["metadata"]["name"] = name;
    pod["spec"]["nodeName"] = node;
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = gpus;
    items.push_back(std::move(pod));
  }
  files.texts["nt.json"] = ListOf(std::move(items));
  PlanOptions options = OnFile("dp=22");
  options.gpus_per_pod = 1;
  const Output fits = Plan(options, files.read, {});
  EXPECT_EQ(fits.exit_code, Output::kOk) << fits.err;
  options.parallelism = "dp=23";
  EXPECT_EQ(Plan(options, files.read, {}).exit_code, Output::kRefused);
}

// A pod of a whole node, of which nobody says which GPUs it has.
Json SilentPod(const std::string& node) {
  Json pod = Json::parse(R"({"kind":"Pod","metadata":{"name":"p","namespace":"n","uid":"u"},
      "spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"8"}}}]},"status":{"phase":"Running"}})");
  pod["spec"]["nodeName"] = node;
  return pod;
}

TEST(PlanCommand, GivesNobodyTheOtherGpusOfAPodUnderWhichOneBroke) {
  Files files;
  Json items = NodeTopologiesOf("su:1 node:2 gpu:8 nic:8 rail:8");
  items[0]["status"]["gpus"][3]["health"] = "Unhealthy";
  items.push_back(SilentPod("node-00"));
  files.texts["nt.json"] = ListOf(items);
  PlanOptions options = OnFile("tp=4");
  options.gpus_per_pod = 4;
  options.what_if = true;
  const Json json = Json::parse(Plan(options, files.read, {.format = Format::kJson}).out);
  EXPECT_EQ(json["whatIf"]["copies"], 2) << "on node-01";
}

TEST(PlanCommand, RefusesAFileThatTakesNothing) {
  Files files;
  files.texts["job.json"] = R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"llama"}})";
  files.texts["nt.json"] = ListOf(NodeTopologiesOf(kTwoNodes));
  files.texts["none.json"] = ListOf(Json::array());
  files.texts["elsewhere.json"] = ListOf(Json::array({SilentPod("gpu-017")}));
  files.texts["gangs.json"] = ListOf(Json::array({GangOn({{"gpu-017", 0, {}}})}));
  PlanOptions options{.ground = {.synthetic = kTwoNodes}, .parallelism = "tp=8,dp=2"};
  for (const char* other : {"job.json", "nt.json"}) {
    options.ground.taken = other;
    const Output refused = Plan(options, files.read, {});
    EXPECT_EQ(refused.exit_code, Output::kUsage) << refused.out;
    EXPECT_THAT(refused.err, HasSubstr(std::string("--taken: ") + other + " holds no Pods and no Gangs"));
  }
  for (const char* elsewhere : {"elsewhere.json", "gangs.json"}) {
    options.ground.taken = elsewhere;
    const Output refused = Plan(options, files.read, {});
    EXPECT_EQ(refused.exit_code, Output::kUsage) << refused.out;
    EXPECT_THAT(refused.err, HasSubstr("--taken: there is no node gpu-017; the first is node-00"));
  }
  options.ground.taken = "none.json";
  EXPECT_EQ(Plan(options, files.read, {}).exit_code, Output::kOk) << "nobody holds any";
  options.ground = {.topology = {"nt.json"}, .taken = "elsewhere.json"};
  EXPECT_EQ(Plan(options, files.read, {}).exit_code, Output::kOk) << "a file may hold a part of the cluster";
}

TEST(PlanCommand, AddsCountsToWhatTheFilesHold) {
  Files files;
  Json items = NodeTopologiesOf("su:1 node:2 gpu:8 nic:8 rail:8");
  items.push_back(GangOn({{"node-00", 0x3F, {}}}));
  files.texts["nt.json"] = ListOf(items);
  PlanOptions options = OnFile("tp=2");
  options.gpus_per_pod = 2;
  options.ground.taken = "node-00=2,node-01=8";
  EXPECT_EQ(Plan(options, files.read, {}).exit_code, Output::kRefused) << "the gang has six, others two";
  options.ground.taken = "node-00=3,node-01=1";
  const Output wrong = Plan(options, files.read, {});
  EXPECT_EQ(wrong.exit_code, Output::kUsage);
  EXPECT_THAT(wrong.err, HasSubstr("node-00=3: the files say that 6 of its 8 GPUs are taken already"));
}

TEST(PlanCommand, SaysHowManyFitNowOrWhoWouldHaveToEnd) {
  Files files;
  Json items = NodeTopologiesOf("su:1 node:4 gpu:8 nic:8 rail:8");
  items.push_back(GangOn({{"node-00", 0, {}}}));
  files.texts["nt.json"] = ListOf(items);
  const auto ask = [&](const std::string& parallelism) {
    PlanOptions options = OnFile(parallelism);
    options.what_if = true;
    return Json::parse(Plan(options, files.read, {.format = Format::kJson}).out)["whatIf"];
  };
  EXPECT_EQ(ask("tp=8"), Json::parse(R"({"copies":3,"more":false,"possible":true,"endings":[]})"));
  EXPECT_EQ(
      ask("tp=8,dp=4"),
      Json::parse(
          R"({"copies":0,"more":false,"possible":true,"endings":[{"name":"gang train/other","gpus":8}]})"));
  EXPECT_EQ(ask("tp=8,dp=5"), Json::parse(R"({"copies":0,"more":false,"possible":false,"endings":[]})"));
  PlanOptions options = OnFile("tp=8,dp=4");
  options.what_if = true;
  const Output text = Plan(options, files.read, {});
  EXPECT_EQ(text.exit_code, Output::kRefused);
  EXPECT_THAT(text.out, HasSubstr("room for one once 8 GPUs are given back"));
  EXPECT_THAT(text.out, HasSubstr("gang train/other"));
}

TEST(PlanCommand, SaysInBothFormsThatItStoppedCounting) {
  const WhatIf stopped{.copies = kMostCopies, .more = true, .possible = true, .endings = {}};
  EXPECT_EQ(WhatIfJson(stopped)["more"], true);
  EXPECT_THAT(WhatIfText(stopped, {}), HasSubstr("at least 1000 of these"));
}

TEST(PlanCommand, NamesTheFileAndTheItemThatCannotBeRead) {
  Files files;
  const auto error_of = [&](const std::string& text) {
    files.texts["nt.json"] = text;
    const Output output = Plan(OnFile(), files.read, {});
    EXPECT_EQ(output.exit_code, Output::kUsage) << text.substr(0, 80);
    return output.err;
  };
  Json items = NodeTopologiesOf("su:1 node:2 gpu:8 nic:8 rail:8");
  items[1]["apiVersion"] = "heddle.dev/v9";
  EXPECT_THAT(error_of(ListOf(items)), HasSubstr("nt.json: item 1: "));
  EXPECT_THAT(error_of(ListOf(Json::array({7}))), HasSubstr("item 0 is no object"));
  EXPECT_THAT(error_of(R"({"items":[{"kind":"NodeTopology")"), HasSubstr("nt.json: "));
  EXPECT_THAT(error_of("{"), HasSubstr("nt.json: "));
  EXPECT_THAT(error_of("kind: [\n"), HasSubstr("line "));
  EXPECT_THAT(error_of("words\n"), HasSubstr("no Kubernetes objects"));
  EXPECT_THAT(error_of(R"({"items":[]})"), HasSubstr("no NodeTopology"));
  EXPECT_THAT(error_of(""), HasSubstr("nt.json is empty; it should hold the NodeTopologies"));
  files.texts.clear();
  EXPECT_THAT(Plan(OnFile(), files.read, {}).err, HasSubstr("nt.json: No such file"));
}

TEST(PlanCommand, SurvivesDamagedFiles) {
  Files files;
  Json items = NodeTopologiesOf("su:1 node:2 gpu:2 nic:2 rail:2");
  items.push_back(GangOn({{"node-01", 1, {}}}));
  const std::string json = ListOf(items), yaml = crds::ToYaml(Json::parse(json));
  for (const std::uint64_t seed : test::Seeds(400)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    files.texts["nt.json"] = test::Damage(seed % 2 == 0 ? json : yaml, random);
    const int code = Plan(OnFile("tp=2"), files.read, {}).exit_code;
    EXPECT_THAT(code, testing::AnyOf(Output::kOk, Output::kUsage, Output::kRefused));
  }
}

TEST(PlanCommand, SaysWhatIsWrongWithItsWords) {
  Files files;
  const PlanOptions good{.ground = {.synthetic = kTwoNodes}, .parallelism = "tp=8,dp=2"};
  const auto refused = [&](auto change) {
    PlanOptions options = good;
    change(options);
    const Output output = Plan(options, files.read, {});
    EXPECT_EQ(output.exit_code, Output::kUsage) << output.out;
    EXPECT_FALSE(output.err.empty());
    return output.err;
  };
  EXPECT_THAT(refused([](PlanOptions& o) { o.ground.synthetic = "su:x"; }), HasSubstr("--synthetic"));
  EXPECT_THAT(refused([](PlanOptions& o) { o.ground.synthetic = ""; }), HasSubstr("--topology"));
  EXPECT_THAT(refused([](PlanOptions& o) { o.ground.topology = {"a"}; }), HasSubstr("either"));
  EXPECT_THAT(refused([](PlanOptions& o) { o.parallelism = "tp=0"; }), HasSubstr("--parallelism"));
  EXPECT_THAT(refused([](PlanOptions& o) { o.gpus_per_pod = 5; }), HasSubstr("--gpus-per-pod"));
  EXPECT_THAT(refused([](PlanOptions& o) { o.gpus_per_pod = 0; }), HasSubstr("--gpus-per-pod"));
  EXPECT_THAT(refused([](PlanOptions& o) { o.model = "params=many"; }), HasSubstr("--model"));
  EXPECT_THAT(refused([](PlanOptions& o) { o.require = "tp=moon"; }), HasSubstr("--require"));
  EXPECT_THAT(refused([](PlanOptions& o) { o.ground.taken = "node-0"; }), HasSubstr("--taken"));
  EXPECT_THAT(refused([](PlanOptions& o) { o.ground.taken = "node-00=x"; }), HasSubstr("--taken"));
  EXPECT_THAT(refused([](PlanOptions& o) { o.ground.taken = "moon=1"; }), HasSubstr("moon"));
}

}  // namespace
}  // namespace heddle::cli
