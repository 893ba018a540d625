#include "cli/bench.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <regex>

#include "cli/bench_manifest.h"
#include "cli/check.h"
#include "crds/parallelism.h"
#include "crds/yaml.h"
#include "placement/collective.h"
#include "stage.h"
#include "tests/unit/cli/cluster_text.h"
#include "tests/unit/cli/golden.h"

namespace heddle::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kCluster = "su:2 node:4 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100";
constexpr std::uint64_t kMiB = 1 << 20;

crds::Gang Llama() {
  auto gang = crds::GangFromJson(GangOn(
      {{"node-00", 0xff, {}}, {"node-01", 0xff, {}}, {"node-02", 0xff, {}}, {"node-03", 0xff, {}}}, "llama"));
  gang->spec.parallelism = *crds::ParseParallelism("tp=8,dp=2,pp=2,order=tp-cp-pp-dp");
  gang->spec.model = *crds::ParseModel("params=70e9,layers=80,hidden=8192");
  gang->spec.require = *crds::ParseConstraints("tp=nvlink,dp=leaf");
  gang->spec.gpu_resource = "nvidia.com/gpu";
  return *gang;
}

// As all_reduce_perf and its sisters print it.
struct NcclOutput {
  std::string program = "all_reduce_perf";
  int ranks = 32;
  double speed = 1;  // of what is predicted
  std::string wrong = "0", end = "# Out of bounds values : 0 OK\n";
  std::vector<std::uint64_t> sizes{kMiB, 64 * kMiB, 1024 * kMiB, 8192 * kMiB};

  std::string Text(const Json& predicted) const {
    std::string text =
        program.empty() ? "" : "# Collective test starting: " + program + "\n# Using devices\n";
    for (int rank = 0; rank < ranks; ++rank) {
      text +=
          fmt::format("#  Rank {:2} Group  0 Pid {} on nccl-worker-{} device {} [0000:1b:00] NVIDIA H100\n",
                      rank, 40 + rank, rank / 8, rank % 8);
    }
    text += "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
    for (const std::uint64_t bytes : sizes) {
      double micros = 0, bus = 0;
      for (const Json& size : predicted) {
        if (size.at("bytes") != bytes) continue;
        micros = size.at("predicted").at("microseconds").get<double>() / speed;
        bus = size.at("predicted").at("busGbs").get<double>() * speed;
      }
      const std::string way = fmt::format("{:.2f} {:.2f} {:.2f}", micros, bus / 2, bus);
      text += fmt::format("{} {} float sum -1 {} {} {} N/A\n", bytes, bytes / 4, way, wrong, way);
    }
    return text + end;
  }
};

class BenchOffline : public testing::Test {
 protected:
  BenchOffline() {
    Json items = NodeTopologiesOf(kCluster);
    items.push_back(crds::ToJson(Llama()));
    files_.texts["cluster.json"] = ListOf(std::move(items));
  }

  Output Run(BenchOptions options, Format format = Format::kText, std::size_t width = 0) {
    if (AsksCluster(options)) options.ground.topology = {"cluster.json"};
    return Bench(options, files_.read, {.format = format, .style = {.width = width}});
  }

  // What is predicted of the gang, in the manifest's sizes.
  Json Predicted(const std::string& collective = "") {
    const Output output = Run({.target = "job/llama", .collective = collective, .image = "x"}, Format::kJson);
    EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
    return Json::parse(output.out).at("runs")[0].at("sizes");
  }

  Output Results(const std::string& text, Format format = Format::kText, std::size_t width = 0) {
    files_.texts["results.txt"] = text;
    return Run({.target = "job/llama", .results = "results.txt"}, format, width);
  }

  Files files_;
};

TEST_F(BenchOffline, RendersAnMpiJobForTheGang) {
  const Output output = Run(
      {.target = "gang/llama", .image = "registry.example/nccl-tests:2.18", .rdma_resources = {"rdma/hca"}});
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  // Predicted times belong to the cost model's own tests.
  ExpectGolden("bench.yaml", std::regex_replace(output.out, std::regex(" +[0-9]+\\.[0-9]+\\b"), " <n>"));
  EXPECT_EQ(output.err,
            "Note: gang train/llama still holds its GPUs: the workers wait until it has ended, or find other "
            "places\n");
  const auto manifest = crds::FromYaml(output.out);
  ASSERT_TRUE(manifest) << manifest.error().message;
  const Json annotations =
      (*manifest)["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"]["annotations"];
  EXPECT_EQ(*crds::ParseParallelism(annotations["heddle.dev/parallelism"].get<std::string>()),
            *Llama().spec.parallelism);
  EXPECT_EQ(*crds::ParseModel(annotations["heddle.dev/model"].get<std::string>()), Llama().spec.model);
  EXPECT_EQ(*crds::ParseConstraints(annotations["heddle.dev/require"].get<std::string>()),
            Llama().spec.require);
}

TEST_F(BenchOffline, RunsOnTheRanksOfTheGangThatHaveASlot) {
  crds::Gang gang = Llama();
  gang.spec.parallelism = *crds::ParseParallelism("tp=8,dp=4");
  gang.status.placement =
      crds::ToColumns({{"node-00", 0xff, {}}, {}, {"node-02", 0xff, {}}, {"node-03", 0xff, {}}}, 1);
  Json items = NodeTopologiesOf(kCluster);
  items.push_back(crds::ToJson(gang));
  files_.texts["cluster.json"] = ListOf(std::move(items));
  const Output output = Run({.target = "job/llama", .image = "x"});
  ASSERT_EQ(output.exit_code, Output::kOk) << output.err;
  const auto manifest = crds::FromYaml(output.out);
  ASSERT_TRUE(manifest) << manifest.error().message;
  const Json& worker = (*manifest)["spec"]["mpiReplicaSpecs"]["Worker"];
  EXPECT_EQ(worker["replicas"], 3);
  EXPECT_EQ(*crds::ParseParallelism(
                worker["template"]["metadata"]["annotations"]["heddle.dev/parallelism"].get<std::string>()),
            (placement::Parallelism{.tp = 8, .dp = 3}));
}

// Heddle's own check finds nothing wrong with what it renders.
TEST_F(BenchOffline, RendersWhatCheckFindsSound) {
  const Output output = Run({.target = "job/llama", .image = "x", .rdma_resources = {"rdma/hca"}});
  files_.texts["bench.yaml"] = output.out;
  CheckOptions check{.targets = {"bench.yaml"}};
  check.infiniband = true;
  const Output checked = Check(check, GroundOf(check), {.read = files_.read}, {});
  EXPECT_EQ(checked.exit_code, Output::kOk) << checked.out << checked.err;
}

TEST_F(BenchOffline, PinsNodesThatAreNamed) {
  const Output output = Run({.ns = "team",
                             .nodes = {"node-05", "node-01"},
                             .collective = "sendrecv",
                             .image = "x",
                             .network = "rails"},
                            Format::kJson);
  ASSERT_EQ(output.exit_code, Output::kOk) << output.err;
  const Json json = Json::parse(output.out);
  EXPECT_EQ(json.at("ranks"), 16);
  EXPECT_EQ(json.at("nodes"), Json::array({"node-01", "node-05"}));
  const Json& manifest = json.at("manifest");
  EXPECT_EQ(manifest.at("metadata").at("namespace"), "team");
  EXPECT_EQ(manifest.at("metadata").at("name"), "nccl-sendrecv-nodes");
  const Json& worker = manifest.at("spec").at("mpiReplicaSpecs").at("Worker");
  EXPECT_EQ(worker.at("replicas"), 2);
  const Json& pod = worker.at("template");
  EXPECT_EQ(pod.at("metadata").at("annotations").at("heddle.dev/parallelism"), "tp=1,pp=1,dp=16");
  EXPECT_EQ(pod.at("metadata").at("annotations").at("k8s.v1.cni.cncf.io/networks"), "rails");
  EXPECT_EQ(pod.at("spec").at("affinity").at("nodeAffinity").dump(),
            R"({"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[)"
            R"({"key":"kubernetes.io/hostname","operator":"In","values":["node-01","node-05"]}]}]}})");
  EXPECT_EQ(pod.at("spec").at("containers")[0].at("resources").at("limits").dump(),
            R"({"nvidia.com/gpu":8})");
  EXPECT_THAT(manifest.at("spec").at("mpiReplicaSpecs").at("Launcher").dump(), HasSubstr("sendrecv_perf"));
  EXPECT_THAT(output.err, HasSubstr("no --rdma-resource is given"));
}

TEST_F(BenchOffline, MissesNoRdmaResourceWhereNicsComeWithTheGpus) {
  const Output pairs = Run({.nodes = {"node-00", "node-01"}, .image = "x", .gpu_resource = "heddle.dev/gpu"});
  EXPECT_EQ(pairs.exit_code, Output::kOk);
  EXPECT_EQ(pairs.err, "");
}

TEST_F(BenchOffline, ReadsResultsByTheCommandThatItsManifestSays) {
  files_.texts["the cluster's.json"] = files_.texts["cluster.json"];
  BenchOptions options{.nodes = {"node-05", "node-01"}, .image = "x"};
  options.ground.topology = {"the cluster's.json"};
  EXPECT_THAT(Run(options).out, HasSubstr("\n#   kubectl heddle bench --nodes node-05,node-01 --topology "
                                          R"('the cluster'\''s.json' --results results.txt)"));
  options.ground = {.synthetic = "su:1 node:8 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100"};
  EXPECT_THAT(Run(options).out, HasSubstr(" --synthetic 'su:1 node:8 gpu:8 nic:8 rail:8 rate:400 "
                                          "transport:ib machine:h100' --results results.txt"));
}

TEST_F(BenchOffline, PutsMeasuredBesidePredicted) {
  NcclOutput printed;
  const Output output = Results(printed.Text(Predicted()));
  EXPECT_EQ(output.exit_code, Output::kOk) << output.out << output.err;
  EXPECT_THAT(output.out,
              AllOf(HasSubstr("all_reduce over 32 ranks of gang train/llama on 4 nodes, InfiniBand"),
                    HasSubstr("Every size from 64 MiB on reaches 80% of the prediction")));
  printed.speed = 0.55;
  const Output slow = Results(printed.Text(Predicted()), Format::kText, 80);
  EXPECT_EQ(slow.exit_code, Output::kRefused);
  ExpectGolden("bench_slow_80.txt", slow.out);
  EXPECT_EQ(WiderThan(80, slow.out), std::vector<std::string>{});
}

TEST_F(BenchOffline, JudgesFrom64MebibytesOnOnly) {
  NcclOutput printed{.speed = 0.3, .sizes = {kMiB, 32 * kMiB}};
  const Output small = Results(printed.Text(Predicted()));
  EXPECT_EQ(small.exit_code, Output::kOk) << small.out;
  EXPECT_THAT(small.out, HasSubstr("no size from 64 MiB on was measured"));
  printed.sizes.push_back(64 * kMiB);
  EXPECT_THAT(
      Results(printed.Text(Predicted())).out,
      HasSubstr("from 64 MiB on 1 of 1 sizes is below 80% of the prediction, the worst 64 MiB at 30%"));
  printed.speed = 0.81;
  EXPECT_EQ(Results(printed.Text(Predicted())).exit_code, Output::kOk);
}

TEST_F(BenchOffline, NamesCorruptedData) {
  const Output wrong =
      Results(NcclOutput{.wrong = "16", .end = "# Out of bounds values : 4 FAILED\n"}.Text(Predicted()));
  EXPECT_EQ(wrong.exit_code, Output::kRefused);
  EXPECT_THAT(wrong.out, HasSubstr("Error: all_reduce: 64 elements came out wrong, at 1 MiB, 64 MiB"));
  EXPECT_THAT(wrong.out, AllOf(HasSubstr("data is corrupted on the way"), Not(HasSubstr("Every size"))));
  // Versions that count no elements.
  const Output old =
      Results(NcclOutput{.wrong = "N/A", .end = "# Out of bounds values : 4 FAILED\n"}.Text(Predicted()));
  EXPECT_EQ(old.exit_code, Output::kRefused);
  EXPECT_THAT(old.out, HasSubstr("4 values came out wrong"));
}

TEST_F(BenchOffline, SaysThatARunBrokeOff) {
  const Output output = Results(NcclOutput{.end = ""}.Text(Predicted()));
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out, HasSubstr("the run has no end"));
}

TEST_F(BenchOffline, ReadsWhichWayNcclWent) {
  const std::string text = NcclOutput{}.Text(Predicted());
  EXPECT_EQ(Results("a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n" + text)
                .exit_code,
            Output::kOk);
  const Output staged =
      Results("a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0\n" + text);
  EXPECT_EQ(staged.exit_code, Output::kOk) << "by itself it is to know";
  EXPECT_THAT(staged.out, HasSubstr("Note: NCCL says nowhere that it uses GPUDirect RDMA"));
  const Output sockets = Results("a:1:2 [0] NCCL INFO Using network Socket\n" + text);
  EXPECT_EQ(sockets.exit_code, Output::kRefused);
  EXPECT_THAT(sockets.out, HasSubstr("NCCL went over TCP sockets"));
}

TEST_F(BenchOffline, TakesSeveralRuns) {
  const Output output =
      Results(NcclOutput{}.Text(Predicted()) +
                  NcclOutput{.program = "all_gather_perf", .speed = 0.5}.Text(Predicted("all_gather")),
              Format::kJson);
  EXPECT_EQ(output.exit_code, Output::kRefused);
  const Json json = Json::parse(output.out);
  ASSERT_EQ(json.at("runs").size(), 2U);
  EXPECT_EQ(json["runs"][1].at("collective"), "all_gather");
  const Json& size = json["runs"][1].at("sizes")[3];
  EXPECT_EQ(size.at("bytes"), 8192 * kMiB);
  EXPECT_NEAR(size.at("ratio").get<double>(), 0.5, 0.001);
  EXPECT_EQ(size.at("inPlace").at("wrongElements"), nullptr);
  EXPECT_EQ(json["runs"][0].at("wrongElements"), 0);
  ASSERT_EQ(json.at("findings").size(), 1U);
  EXPECT_EQ(json["findings"][0].at("what"), "slow");
  EXPECT_EQ(json.at("manifest"), nullptr);
}

// The predictions of bench are those that the model is graded by: two DGX H100 are in tests/fixtures/busbw.
TEST_F(BenchOffline, PredictsAsTheModelDoes) {
  BenchOptions options{.nodes = {"node-00", "node-01"}, .image = "x"};
  options.ground.synthetic = "su:1 node:2 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100";
  const Json sizes = Json::parse(Run(options, Format::kJson).out).at("runs")[0].at("sizes");
  const double bus = sizes.back().at("predicted").at("busGbs");
  EXPECT_EQ(sizes.back().at("bytes"), 8192 * kMiB);
  EXPECT_NEAR(bus, 480, 20) << "xe9680-h100-2x8 and nebius-h100-2x8 measured 478 to 489";
}

TEST_F(BenchOffline, SaysWhatIsWrongInSentences) {
  const auto error = [&](const BenchOptions& options) {
    const Output output = Run(options);
    EXPECT_EQ(output.exit_code, Output::kUsage) << output.out;
    EXPECT_THAT(output.err, StartsWith("Error: "));
    return output.err;
  };
  EXPECT_THAT(error({.image = "x"}), HasSubstr("name either KIND/NAME of what made a gang"));
  EXPECT_THAT(error({.target = "job/llama", .nodes = {"node-00"}, .image = "x"}), HasSubstr("name either"));
  EXPECT_THAT(error({.target = "job/llama"}),
              AllOf(HasSubstr("--image: say what to run"), HasSubstr("MPI=1")));
  EXPECT_THAT(error({.target = "job/llama", .image = "x", .results = "r"}),
              HasSubstr("say nothing of --results"));
  EXPECT_THAT(error({.target = "job/llama", .collective = "broadcast", .image = "x"}),
              HasSubstr("--collective \"broadcast\": write one of all_reduce"));
  EXPECT_THAT(error({.target = "job/nobody", .image = "x"}),
              HasSubstr("there is no gang of job/nobody: there are gang/llama"));
  EXPECT_THAT(error({.target = "llama/x", .image = "x"}), HasSubstr("names nothing that makes a gang"));
  EXPECT_THAT(error({.target = "job/llama", .ns = "dev", .image = "x"}), HasSubstr("in namespace dev"));
  EXPECT_THAT(error({.nodes = {"node-99"}, .image = "x"}),
              HasSubstr("--nodes: --topology has no node node-99; it has node-"));
  EXPECT_THAT(error({.nodes = {"node-00", ""}, .image = "x"}),
              HasSubstr("--nodes: one of the names is empty"));
  BenchOptions made_up{.nodes = {"gpu-001"}, .image = "x"};
  made_up.ground.synthetic = kCluster;
  EXPECT_THAT(error(made_up), HasSubstr("--nodes: --synthetic has no node gpu-001; it has node-"));
  EXPECT_THAT(error({.nodes = {"node-00", "node-00"}, .image = "x"}), HasSubstr("node-00 stands twice"));
  EXPECT_THAT(error({.target = "job/llama", .image = "x", .gpu_resource = "amd.com/gpu"}),
              HasSubstr("--gpu-resource"));
  EXPECT_THAT(error({.target = "job/llama", .results = "none.txt"}), HasSubstr("none.txt"));
  files_.texts["r"] = "garbage";
  EXPECT_THAT(error({.target = "job/llama", .results = "r"}),
              HasSubstr("r: there is no table of nccl-tests in it"));
  files_.texts["r"] = NcclOutput{.ranks = 16}.Text(Predicted());
  EXPECT_THAT(error({.target = "job/llama", .results = "r"}),
              HasSubstr("these are results of 16 ranks, and gang train/llama has 32"));
  files_.texts["r"] = NcclOutput{.ranks = 1}.Text(Predicted());
  EXPECT_THAT(error({.target = "job/llama", .results = "r"}), HasSubstr("built without MPI=1?"));
  files_.texts["r"] = NcclOutput{.program = "broadcast_perf"}.Text(Predicted());
  EXPECT_THAT(error({.target = "job/llama", .results = "r"}), HasSubstr("results of broadcast_perf"));
  files_.texts["r"] = NcclOutput{}.Text(Predicted());
  EXPECT_THAT(error({.target = "job/llama", .collective = "alltoall", .results = "r"}),
              HasSubstr("--collective alltoall: these are results of all_reduce_perf"));
}

class BenchInACluster : public Stage {
 protected:
  void SetUp() override { AddCluster(kCluster); }
  Output Run(BenchOptions options) {
    options.ns = "train";
    options.image = "x";
    return RunBench(client, options, [](const std::string&) { return base::Result<std::string>(""); }, {},
                    {});
  }
};

TEST_F(BenchInACluster, FindsTheGang) {
  crds::Gang gang = Llama();
  gang.status.placement.reset();
  server.Put(ResourceOf(keys::kGang, true), crds::ToJson(gang));
  const Output waits = Run({.target = "job/llama"});
  EXPECT_EQ(waits.exit_code, Output::kFailed);
  EXPECT_THAT(waits.err,
              HasSubstr("job/llama has no places yet; `kubectl heddle explain job/llama` says why"));
  gang = Llama();
  gang.name = "llama-again";
  gang.spec.attempt = 1;
  crds::SetCondition(gang.status.conditions,
                     {.type = std::string(crds::kEnded),
                      .status = crds::ConditionStatus::kTrue,
                      .reason = "Ended",
                      .message = "ok",
                      .last_transition = base::WallTime(std::chrono::seconds(1'800'000'000))});
  server.Put(ResourceOf(keys::kGang, true), crds::ToJson(gang));
  const Output output = Run({.target = "llama"});
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  EXPECT_THAT(output.out, HasSubstr("namespace: train"));
  EXPECT_THAT(output.err, Not(HasSubstr("still holds"))) << "the last attempt has ended";
}

TEST_F(BenchInACluster, TakesNodes) {
  const Output output = Run({.nodes = {"node-02", "node-03"}});
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  EXPECT_THAT(output.out, HasSubstr("- node-02\n"));
}

TEST_F(BenchInACluster, SaysOfANodeThatNoAgentReportedIt) {
  EXPECT_THAT(Run({.nodes = {"gpu-001"}}).err,
              HasSubstr("--nodes: no agent has reported a node gpu-001; `kubectl heddle topology` lists"));
}

TEST_F(BenchInACluster, ReadsResultsBeforeItAsks) {
  Files files;
  const BenchOptions options{.target = "job/llama", .ns = "train", .results = "results.txt"};
  const Output missing = RunBench(client, options, files.read, {}, {});
  EXPECT_EQ(missing.exit_code, Output::kUsage);
  EXPECT_THAT(missing.err, HasSubstr("results.txt: No such file or directory"));
  files.texts["results.txt"] = "garbage";
  const Output garbage = RunBench(client, options, files.read, {}, {});
  EXPECT_EQ(garbage.exit_code, Output::kUsage);
  EXPECT_THAT(garbage.err, HasSubstr("there is no table of nccl-tests in it"));
  EXPECT_THAT(server.lines(), IsEmpty());
  files.texts["results.txt"] = NcclOutput{.ranks = 16}.Text(Json::array());
  server.Put(ResourceOf(keys::kGang, true), crds::ToJson(Llama()));
  const Output others = RunBench(client, options, files.read, {}, {});
  EXPECT_EQ(others.exit_code, Output::kUsage);
  EXPECT_THAT(others.err, HasSubstr("these are results of 16 ranks, and gang train/llama has 32"));
}

TEST_F(BenchInACluster, SaysThatHeddleIsNotThere) {
  test::FakeApiServer empty(clock);
  kube::Client other(empty, clock);
  const Output output = RunBench(other, {.target = "job/llama", .image = "x"},
                                 [](const std::string&) { return base::Result<std::string>(""); }, {}, {});
  EXPECT_EQ(output.exit_code, Output::kFailed);
  EXPECT_THAT(output.err, HasSubstr("Is Heddle installed here?"));
}

}  // namespace
}  // namespace heddle::cli
