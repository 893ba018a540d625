// Files in place of a cluster: what `fabric design --topology` writes is taken by every command that reads one, and what
// a cluster's own objects say is said of a file of them too.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/bench.h"
#include "cli/cables.h"
#include "cli/check.h"
#include "cli/commands.h"
#include "cli/fabric_design.h"
#include "cli/import.h"
#include "cli/lint.h"
#include "cli/observed.h"
#include "cli/plan.h"
#include "cli/status.h"
#include "cli/switch_compare.h"
#include "cli/switch_render.h"
#include "tests/unit/cli/cluster_text.h"
#include "tests/unit/cli/from_disk.h"
#include "tests/unit/cli/ib_dump.h"
#include "tests/unit/cli/stage.h"

namespace heddle::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kTests = std::string(HEDDLE_SOURCE_DIR) + "/tests/";
const std::string kJob = kTests + "fixtures/workloads/sound.yaml";
const std::vector<std::string> kFile{"fabric.json"};
constexpr base::WallTime kNow{std::chrono::seconds(1'800'000'000)};

// Files that stand nowhere, and those on disk.
struct Shelf {
  std::map<std::string, std::string> texts;
  ReadFile read = [this](const std::string& path) -> base::Result<std::string> {
    const auto found = texts.find(path);
    return found == texts.end() ? FromDisk(path) : base::Result<std::string>(found->second);
  };

  // As the command writes it.
  void Design(int gpus, const std::string& transport) {
    FabricDesignOptions options;
    options.gpus = gpus;
    options.transport = transport;
    options.model = "llama3-8b";  // whose times are predicted soonest
    options.topology = "-";
    options.now = kNow;
    const WriteFile nowhere = [](const std::string& path, const std::string&) -> base::Status {
      return base::Fail(base::Code::kInternal, path + " cannot be written");
    };
    const Output written = FabricDesign(options, read, nowhere, {});
    EXPECT_EQ(written.exit_code, Output::kOk) << written.err;
    texts[kFile.front()] = written.out;
  }
};

TEST(DesignedFile, IsShownAsAClusterIs) {
  Shelf shelf;
  shelf.Design(512, "roce");
  const Output nodes = ShowTopology(kFile, "", shelf.read, {});
  EXPECT_EQ(nodes.exit_code, Output::kOk) << nodes.err;
  EXPECT_EQ(nodes.err, "");
  EXPECT_THAT(nodes.out, AllOf(HasSubstr("node-00  ?      HGX H100"), HasSubstr("node-63"), HasSubstr("RoCE"),
                               Not(HasSubstr("True"))));
  const Output node = ShowTopology(kFile, "node-00", shelf.read, {});
  EXPECT_EQ(node.exit_code, Output::kOk) << node.err;
  EXPECT_THAT(node.out, AllOf(HasSubstr("leaf su0-r0 port 1"), Not(HasSubstr("Not ready"))));
  const Output fabric = ShowFabric(kFile, shelf.read, {});
  EXPECT_EQ(fabric.exit_code, Output::kOk) << fabric.err;
  EXPECT_THAT(fabric.out, AllOf(HasSubstr("64 nodes, 512 GPUs, 8 rails"), Not(HasSubstr("cabling faults"))));
  const Json fabrics = Json::parse(ShowFabric(kFile, shelf.read, {.format = Format::kJson}).out);
  EXPECT_EQ(fabrics["items"][0]["status"]["transport"], "RoCE");
}

TEST(DesignedFile, HasNothingWrongAsFarAsItTells) {
  Shelf shelf;
  shelf.Design(512, "roce");
  const Output output = ShowStatus({.topology = kFile}, kNow, shelf.read, {});
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  EXPECT_EQ(output.out,
            "Nothing is wrong, as far as can be seen: 64 nodes, 512 GPUs; 0 gangs running, 0 waiting.\n");
  EXPECT_THAT(output.err, AllOf(HasSubstr("Note: This is of files and no cluster was asked"),
                                HasSubstr("(Leases, "), HasSubstr("Gangs, Pods, Nodes")));
  EXPECT_EQ(std::count(output.err.begin(), output.err.end(), '\n'), 1) << "one line";
  shelf.texts["-"] = shelf.texts[kFile.front()];
  EXPECT_EQ(ShowStatus({.topology = {"-"}}, kNow, shelf.read, {}).out, output.out);
  const Json json =
      Json::parse(ShowStatus({.topology = kFile}, kNow, shelf.read, {.format = Format::kJson}).out);
  EXPECT_EQ(json["wrong"], false);
  EXPECT_EQ(json["totals"]["gpus"], 512);
  EXPECT_EQ(json["totals"]["gpusFree"], nullptr) << "nobody knows";
}

TEST(DesignedFile, HoldsNoGangToExplainOrToObserve) {
  Shelf shelf;
  shelf.Design(64, "ib");
  const Output explained = ShowExplain({.target = "job/llama", .topology = kFile}, shelf.read, {});
  EXPECT_EQ(explained.exit_code, Output::kUsage);
  EXPECT_EQ(explained.out, "");
  EXPECT_THAT(explained.err, AllOf(HasSubstr("the files hold no gang of job/llama: they hold none at all"),
                                   HasSubstr("`kubectl heddle plan` with the same --topology")));
  const Output observed = ShowObserved({.topology = kFile}, kNow, shelf.read, {});
  EXPECT_EQ(observed.exit_code, Output::kFailed);
  EXPECT_THAT(observed.err, HasSubstr("The files hold no gang that was observed"));
}

// No operator and no agent has judged these.
TEST(ImportedFile, HasItsCablesJudgedAndItsPortsThatAreDown) {
  IbDump dump = IbDump::RailOptimised(2, 4, 8, 2, 1);
  dump.Swap(dump.Adapter("gpu-02", "mlx5_1"), 1, dump.Adapter("gpu-02", "mlx5_6"), 1);
  dump.Unplug(dump.Adapter("gpu-01", "mlx5_4"), 1);
  std::string text = dump.Text();
  // Without a cable ibnetdiscover does not reach the adapter at all.
  const std::size_t line = text.find("\"gpu-01 mlx5_4\"");
  ASSERT_NE(line, std::string::npos);
  text.erase(text.rfind('\n', line), text.find('\n', line) - text.rfind('\n', line));
  Shelf shelf;
  shelf.texts["ib"] = text;
  ImportOptions options;
  options.sources = {"ib"};
  options.now = kNow;
  const Output imported = ImportFabric(options, shelf.read, {.format = Format::kJson});
  ASSERT_EQ(imported.exit_code, Output::kOk) << imported.err;
  shelf.texts[kFile.front()] = imported.out;
  const Output output = ShowStatus({.topology = kFile}, kNow, shelf.read, {.format = Format::kJson});
  EXPECT_EQ(output.exit_code, Output::kRefused) << output.err;
  const Json items = Json::parse(output.out)["items"];
  ASSERT_EQ(items.size(), 2U) << items.dump(2);
  EXPECT_EQ(items[0]["what"], "link down");
  EXPECT_EQ(items[0]["names"], Json::array({"gpu-01 mlx5_4"}));
  EXPECT_EQ(items[1]["what"], "cabled wrongly");
  EXPECT_EQ(items[1]["names"], Json::array({"gpu-02 mlx5_1", "gpu-02 mlx5_6"}));
  EXPECT_THAT(items[1]["message"].get<std::string>(), HasSubstr("swapped with"));
}

TEST(DesignedFile, SaysWhereEachCableGoes) {
  Shelf shelf;
  for (const auto& [gpus, transport] : {std::pair(512, "roce"), std::pair(64, "ib")}) {
    shelf.Design(gpus, transport);
    const Output output = ShowCables({.problems = true, .topology = kFile}, shelf.read, {});
    EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
    EXPECT_EQ(output.out, "All " + std::to_string(gpus) + " ports end where they should.\n");
  }
  shelf.Design(512, "roce");
  EXPECT_THAT(ShowCables({.csv = true, .topology = kFile}, shelf.read, {}).out,
              HasSubstr("\r\nok,node-00,mlx5_0,1,eth0,0,su0-r0,su0-r0,1,0,,\r\n"));
}

TEST(DesignedFile, IsWhereCheckLooks) {
  Shelf shelf;
  shelf.Design(512, "roce");
  const CheckOptions options{.targets = {kJob}, .topology = kFile, .where = true};
  EXPECT_FALSE(AsksCluster(options));
  const Output output = CheckFiles(options, shelf.read, {});
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  EXPECT_THAT(output.out, AllOf(HasSubstr("Job train/llama would land on 16 nodes of RoCE: node-"),
                                HasSubstr("for nodes of 8 GPUs with RoCE: nothing was found")));
  EXPECT_THAT(output.err, HasSubstr("each counts as Ready, and node selectors are passed over"));
  shelf.Design(64, "ib");
  const Output small = CheckFiles(options, shelf.read, {});
  EXPECT_EQ(small.exit_code, Output::kOk) << small.err;
  EXPECT_THAT(small.out, AllOf(HasSubstr("Job train/llama has no place: TooLargeForFabric: "),
                               HasSubstr("plan --what-if"), HasSubstr("8 GPUs with InfiniBand")));
}

TEST(DesignedFile, SaysToCheckWhatNodesHave) {
  Shelf shelf;
  shelf.Design(64, "ib");
  const Output output = CheckFiles({.targets = {kJob}, .topology = kFile}, shelf.read, {});
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  EXPECT_EQ(output.err, "");
  EXPECT_THAT(output.out, HasSubstr("for nodes of 8 GPUs with InfiniBand: nothing was found"));
  EXPECT_THAT(CheckFiles({.targets = {kJob}, .gpus_per_node = 4, .topology = kFile}, shelf.read, {}).out,
              HasSubstr("for nodes of 4 GPUs with InfiniBand"));
}

TEST(DesignedFile, IsPlannedOnAndBenched) {
  Shelf shelf;
  shelf.Design(512, "roce");
  const PlanOptions plan{.ground = {.topology = kFile}, .parallelism = "tp=8,dp=64"};
  EXPECT_EQ(Plan(plan, shelf.read, {}).exit_code, Output::kOk) << Plan(plan, shelf.read, {}).err;
  const BenchOptions bench{
      .nodes = {"node-00", "node-01"}, .ground = {.topology = kFile}, .image = "registry.example/nccl"};
  const Output output = Bench(bench, shelf.read, {});
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  EXPECT_THAT(output.out, HasSubstr("kind: MPIJob"));
}

TEST(DesignedFile, IsLookedAtByLintAndSwitch) {
  Shelf shelf;
  for (const auto& [gpus, transport] : {std::pair(64, "ib"), std::pair(512, "roce")}) {
    shelf.Design(gpus, transport);
    const Output lint = Lint({.files = kFile}, shelf.read, {});
    EXPECT_EQ(lint.exit_code, Output::kOk) << lint.err;
    EXPECT_THAT(lint.out, HasSubstr("nothing was found"));
    const Output compared = SwitchCompare({.files = kFile}, shelf.read, {});
    // InfiniBand has no cable whose two ends could be set apart.
    const bool has_cables = compared.exit_code != Output::kUsage;
    EXPECT_EQ(has_cables, std::string_view(transport) == "roce") << compared.err;
  }
  Json config = Json::parse(*FromDisk(kTests + "fixtures/lossless/sonic-default.json"));
  config["DEVICE_METADATA"]["localhost"]["hostname"] = "su0-r0";
  shelf.texts["leaf.json"] = config.dump();
  const Output rendered = SwitchRender({.policy = kTests + "cluster/samples/good/lossless-defaults.yaml",
                                        .config = "leaf.json",
                                        .hosts_on = kFile,
                                        .profile = "spectrum/v1",
                                        .format = "nvue"},
                                       shelf.read, {});
  EXPECT_EQ(rendered.exit_code, Output::kOk) << rendered.err;
  EXPECT_THAT(rendered.out, HasSubstr("nv set interface"));
}

class FileOfACluster : public Stage {
 protected:
  FileOfACluster() {
    server.Serve(ResourceOf(keys::kRdmaDevicePolicy));
    AddCluster(
        "su:2 node:16 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100 "
        "swap:node-01/rail-2/rail-3 down:node-06/rail-5 badgpu:node-02/5");
    Json fabric = kube::NewObject(ResourceOf(keys::kFabric), {"", "infiniband"});
    fabric["spec"]["excludedNodes"] = Json::array({"node-31"});
    server.Put(ResourceOf(keys::kFabric), fabric);
    Json items = Json::array();
    for (const keys::Kind kind : {keys::kNodeTopology, keys::kFabric}) {
      for (const Json& object : server.All(ResourceOf(kind))) items.push_back(object);
    }
    shelf_.texts[kFile.front()] = ListOf(std::move(items));
  }

  static void ExpectEqual(const Output& file, const Output& live) {
    EXPECT_EQ(file.exit_code, live.exit_code);
    EXPECT_EQ(file.out, live.out);
    EXPECT_EQ(file.err, live.err);
  }

  Shelf shelf_;
};

TEST_F(FileOfACluster, IsShownAsTheClusterIs) {
  for (const Format format : {Format::kText, Format::kJson, Format::kYaml}) {
    const OutputOptions look{.format = format};
    for (const char* node : {"", "node-06"})
      ExpectEqual(ShowTopology(kFile, node, shelf_.read, look), RunTopology(client, node, look, {}));
    ExpectEqual(ShowFabric(kFile, shelf_.read, look), RunFabric(client, look, {}));
    ExpectEqual(ShowCables({.topology = kFile}, shelf_.read, look), RunCables(client, {}, look, {}));
  }
}

TEST_F(FileOfACluster, IsLandedOnAsTheClusterIs) {
  const OutputOptions look{.format = Format::kJson};
  const Output file = CheckFiles({.targets = {kJob}, .topology = kFile, .where = true}, shelf_.read, look);
  const Output live = RunCheck(client, clock, {.targets = {kJob}, .where = true}, shelf_.read, look, {});
  EXPECT_EQ(file.exit_code, Output::kOk) << file.err;
  EXPECT_EQ(Json::parse(file.out), Json::parse(live.out));
}

// The workload is asked of the cluster and its nodes are not.
TEST_F(FileOfACluster, StandsForTheNodesOfAWorkloadThatRuns) {
  Json job = AddJob("bert", 2, "tp=8,dp=2"), container;
  container["name"] = "trainer";
  container["resources"]["limits"]["nvidia.com/gpu"] = "8";
  job["spec"]["template"]["spec"]["containers"] = Json::array({container});
  server.Put(kube::kJobs, job);
  shelf_.Design(64, "roce");
  CheckOptions options{.targets = {"job/bert"}, .ns = "train"};
  EXPECT_THAT(RunCheck(client, clock, options, shelf_.read, {}, {}).out,
              HasSubstr("of 8 GPUs with InfiniBand"));
  options.topology = kFile;
  EXPECT_TRUE(AsksCluster(options));
  EXPECT_THAT(RunCheck(client, clock, options, shelf_.read, {}, {}).out, HasSubstr("of 8 GPUs with RoCE"));
  options.topology = {"nowhere.json"};
  EXPECT_EQ(RunCheck(client, clock, options, shelf_.read, {}, {}).exit_code, Output::kUsage);
}

// What a person may give in place of a file of a cluster.
struct Given {
  const char* what;
  std::vector<std::string> files;
  std::vector<std::string> named;
};

TEST(TopologyFiles, AreRefusedInSentencesThatNameThem) {
  Shelf shelf;
  shelf.texts["service.yaml"] = "kind: Service\n";
  shelf.texts["cut.json"] = R"({"items":[{"kind":"NodeTo)";
  shelf.texts["empty"] = "";
  shelf.texts["program"] = std::string(
      "\x7f"
      "ELF\x02\x01\x01\0\0\0\"\\1",
      13);
  shelf.texts["nt.json"] = ListOf(NodeTopologiesOf("su:1 node:2"));
  const std::vector<Given> all{
      {"nothing there", {"nowhere.json"}, {"--topology: nowhere.json cannot be read"}},
      {"another kind",
       {"service.yaml"},
       {"no NodeTopology with a status is in there, only 1 Service", "kubectl get nt,fabrics,gangs -A",
        "kubectl heddle fabric design --topology"}},
      {"nothing in it",
       {"empty"},
       {"--topology: empty is empty; it should hold the NodeTopologies of `kubectl get nt,fabrics,gangs"}},
      {"a program",
       {"program"},
       {"--topology: program is neither YAML nor JSON but binary; it should hold the NodeTopologies"}},
      {"cut short", {"nt.json", "cut.json"}, {"--topology: cut.json: line 1"}},
      {"twice the same", {"nt.json", "nt.json"}, {"nt.json: item 0: NodeTopology node-00 stands twice"}}};
  for (const Given& given : all) {
    const std::vector<Output> outputs{
        ShowTopology(given.files, "", shelf.read, {}),
        ShowFabric(given.files, shelf.read, {}),
        ShowCables({.topology = given.files}, shelf.read, {}),
        CheckFiles({.targets = {kJob}, .topology = given.files, .where = true}, shelf.read, {}),
        ShowStatus({.topology = given.files}, kNow, shelf.read, {}),
        ShowExplain({.target = "gang/llama", .topology = given.files}, shelf.read, {}),
        ShowObserved({.topology = given.files}, kNow, shelf.read, {})};
    for (const Output& output : outputs) {
      EXPECT_EQ(output.exit_code, Output::kUsage) << given.what;
      EXPECT_EQ(output.out, "") << given.what;
      for (const std::string& named : given.named) EXPECT_THAT(output.err, HasSubstr(named)) << given.what;
    }
  }
}

TEST(TopologyFiles, NameANodeThatTheyDoNotHave) {
  Shelf shelf;
  shelf.texts[kFile.front()] = ListOf(NodeTopologiesOf("su:1 node:2"));
  for (const Output& output : {ShowTopology(kFile, "gpu-9", shelf.read, {}),
                               ShowCables({.node = "gpu-9", .topology = kFile}, shelf.read, {})}) {
    EXPECT_EQ(output.exit_code, Output::kUsage);
    EXPECT_THAT(output.err, HasSubstr("node gpu-9 is not in the files; `kubectl heddle topology`"));
  }
  EXPECT_EQ(ShowCables({.csv = true, .topology = kFile}, shelf.read, {.format = Format::kJson}).exit_code,
            Output::kUsage);
}

// Nobody is sent to a cluster that may not be there.
TEST(TopologyFiles, SayOfACableWhatTheyKnow) {
  Shelf shelf;
  Json items = NodeTopologiesOf("su:1 node:4 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100");
  std::size_t nic = 0;
  for (const char* why : {"Stale", "Ambiguous", "Unknown"}) {
    Json& port = items[0]["status"]["nics"][nic++]["ports"][0];
    port.erase("leaf");
    port.erase("leafPort");
    port["leafMissing"] = why;
  }
  shelf.texts[kFile.front()] = ListOf(std::move(items));
  const Output output = ShowCables({.problems = true, .topology = kFile}, shelf.read, {});
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  EXPECT_THAT(output.out, AllOf(HasSubstr("its switch was known and was no longer heard"),
                                HasSubstr("several switches answered for it"),
                                HasSubstr("the files do not say where it ends"), Not(HasSubstr("kubectl"))));
}

TEST(TopologyFiles, LeaveNowhereToLandWhereEveryNodeIsExcluded) {
  Shelf shelf;
  Json items = NodeTopologiesOf("su:1 node:2");
  crds::Fabric fabric;
  fabric.name = "infiniband";
  for (const Json& item : items) fabric.spec.excluded_nodes.push_back(item.at("metadata").at("name"));
  items.push_back(crds::ToJson(fabric));
  shelf.texts[kFile.front()] = ListOf(std::move(items));
  const Output output = CheckFiles({.targets = {kJob}, .topology = kFile, .where = true}, shelf.read, {});
  EXPECT_EQ(output.exit_code, Output::kUsage);
  EXPECT_THAT(output.err, HasSubstr("there is nowhere to land"));
}

TEST(TopologyFiles, TakeStandardInputOnce) {
  const Output output = CheckFiles({.targets = {"-"}, .topology = {"-"}}, Shelf().read, {});
  EXPECT_EQ(output.exit_code, Output::kUsage);
  EXPECT_THAT(output.err, HasSubstr("standard input is what is looked at already"));
}

}  // namespace
}  // namespace heddle::cli
