#include "cli/check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "tests/unit/cli/check_stage.h"
#include "tests/unit/cli/from_disk.h"
#include "tests/unit/cli/golden.h"
#include "tests/unit/cli/shell_words.h"

namespace heddle::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Output CheckOf(const std::vector<std::string>& files, Format format = Format::kText,
               CheckOptions options = {}) {
  for (const std::string& file : files) options.targets.push_back(kWorkloads + file);
  return Check(options, GroundOf(options), {.read = FromDisk}, {.format = format});
}

Output CheckText(const std::string& text) {
  const ReadFile read = [&](const std::string&) -> base::Result<std::string> { return text; };
  return Check({.targets = {"-"}}, {}, {.read = read}, {});
}

std::string Read(const std::string& name) {
  return *FromDisk(kWorkloads + name);
}

TEST(CheckCommand, FindsNothingInASoundJob) {
  const Output output = CheckOf({"sound.yaml"});
  EXPECT_EQ(output.exit_code, Output::kOk);
  EXPECT_EQ(output.err, "");
  EXPECT_THAT(output.out,
              HasSubstr("1 workload looked at, for nodes of 8 GPUs with RoCE: nothing was found"));
}

TEST(CheckCommand, SaysOfAFirstTryAllThatItLacks) {
  const Output output = CheckOf({"first-try.yaml"});
  EXPECT_EQ(output.exit_code, Output::kRefused);
  ExpectGolden("check.txt", output.out);
}

TEST(CheckCommand, KnowsTheFrameworksAndKindsThatNobodyKnows) {
  const Output output = CheckOf({"frameworks.yaml"});
  EXPECT_EQ(output.exit_code, Output::kRefused);
  ExpectGolden("check_frameworks.txt", output.out);
  EXPECT_THAT(output.err, HasSubstr("1 of kind ConfigMap left out: no pod template"));
}

TEST(CheckCommand, FitsATerminalOf80Columns) {
  const CheckOptions options{.targets = {kWorkloads + "frameworks.yaml", kWorkloads + "first-try.yaml"}};
  const std::string text =
      Check(options, GroundOf(options), {.read = FromDisk}, {.style = {.width = 80}}).out;
  ExpectGolden("check_80.txt", text);
  ExpectFits([&options](const Style& style) {
    return Check(options, GroundOf(options), {.read = FromDisk}, {.style = style}).out;
  });
  EXPECT_EQ(WiderThan(80, text), std::vector<std::string>{});
}

TEST(CheckCommand, ReadsAListOfPods) {
  const Output output = CheckOf({"pods.json"});
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out,
              AllOf(HasSubstr("Pod train/llama-0"), HasSubstr("may-not-pin"), HasSubstr("no-interface"),
                    HasSubstr("shm-small"), Not(HasSubstr("no-rdma"))));
  EXPECT_THAT(output.err, HasSubstr("Pod default/web left out: it asks for no GPU"));
}

TEST(CheckCommand, IsForScriptsToo) {
  const Output output = CheckOf({"first-try.yaml"}, Format::kJson);
  EXPECT_EQ(output.exit_code, Output::kRefused);
  const Json json = Json::parse(output.out);
  ASSERT_EQ(json.at("workloads").size(), 1u);
  const Json& workload = json["workloads"][0];
  EXPECT_EQ(workload.at("workload"), "Job train/llama");
  EXPECT_EQ(workload.at("templates")[0].at("pods"), 16);
  EXPECT_EQ(workload.at("templates")[0].at("gpusPerPod"), 8);
  std::vector<std::string> rules;
  for (const Json& finding : workload.at("findings")) rules.push_back(finding.at("rule"));
  EXPECT_THAT(rules, ElementsAre("no-rdma", "shm-small", "no-nccl-file", "no-retry"));
  EXPECT_EQ(json.at("nodes").at("gpus"), 8);
}

TEST(CheckCommand, TakesWhatItIsToldOfTheNodes) {
  CheckOptions options;
  options.gpus_per_node = 4;
  options.infiniband = true;
  const Output output = CheckOf({"pods.json"}, Format::kText, options);
  EXPECT_THAT(output.out, AllOf(HasSubstr("for nodes of 4 GPUs with InfiniBand"),
                                HasSubstr("larger-than-node"), Not(HasSubstr("no-interface"))));
  options.gpus_per_node = 0;
  EXPECT_EQ(CheckOf({"pods.json"}, Format::kText, options).exit_code, Output::kUsage);
}

TEST(CheckCommand, LooksAtTheOthersWhereOneCannotBeRead) {
  const Output output = CheckOf({"no-such.yaml", "first-try.yaml"});
  EXPECT_EQ(output.exit_code, Output::kUsage);
  EXPECT_THAT(output.err, HasSubstr("no-such.yaml cannot be read"));
  EXPECT_THAT(output.out, HasSubstr("no-rdma"));
}

TEST(CheckCommand, SaysWhereAFileMakesNoSense) {
  EXPECT_THAT(CheckText("kind: ConfigMap\n").err,
              HasSubstr("there is no pod and no object with a pod template in it"));
  const Output broken = CheckText(Read("sound.yaml") + "---\nkind: [Job\n");
  EXPECT_EQ(broken.exit_code, Output::kUsage);
  EXPECT_THAT(broken.err, HasSubstr("document 2"));
  for (const char* text : {"", "{", "[1]", "7", "\xff\xfe", "{\"items\": 7}", "{\"items\": [7]}", "a: b: c"})
    EXPECT_EQ(CheckText(text).exit_code, Output::kUsage) << text;
  EXPECT_EQ(Check({}, {}, {.read = FromDisk}, {}).exit_code, Output::kUsage);
}

TEST(CheckCommand, SaysOfAFileThatIsNoneWhatToGive) {
  EXPECT_THAT(CheckText("\n \n").err,
              HasSubstr("Error: standard input is empty; it should hold Kubernetes objects\n"));
  EXPECT_THAT(
      CheckText("\x1f\x8b\x08\"\\1").err,
      HasSubstr("standard input is neither YAML nor JSON but binary; it should hold Kubernetes objects\n"));
  EXPECT_THAT(CheckText("kind: ConfigMap\n# \x1b[31mred\n").err, Not(HasSubstr("binary")));
  EXPECT_THAT(CheckText("- kind: Pod\n- kind: Pod\n").err,
              AllOf(HasSubstr("standard input: it is a list"), HasSubstr("a line --- between them")));
  EXPECT_THAT(CheckText("kind: Widget\nmetadata: {name: w}\n").err,
              AllOf(HasSubstr("standard input: 1 of kind Widget left out"),
                    HasSubstr("standard input: there is no pod and no object with a pod template in it")));
}

TEST(CheckCommand, SaysOfANameThatIsNoFileHowTheClusterIsAsked) {
  const auto error = [](const std::string& target) {
    return Check({.targets = {target}}, {}, {.read = FromDisk}, {}).err;
  };
  EXPECT_THAT(error("no-such-llama"),
              HasSubstr("; of a workload in the cluster say the kind, too, as job/no-such-llama"));
  EXPECT_THAT(error("jbo/llama"), HasSubstr("; if it is a workload in the cluster, is job/llama meant?"));
  EXPECT_THAT(error("job/Llama"), HasSubstr("; names of workloads in the cluster have no capital letters"));
  EXPECT_THAT(error("cronworkflow/llama"),
              AllOf(HasSubstr("; in the cluster it knows pod, job, statefulset, "),
                    HasSubstr("`kubectl get cronworkflow/llama -o yaml | kubectl heddle check -`")));
  for (const char* file : {"no-such.yaml", "no/such/file", "./no-such", "/no-such"})
    EXPECT_EQ(error(file), std::string("Error: ") + file + " cannot be read: No such file or directory\n");
}

TEST(CheckCommand, SaysWhatStandsThereTwice) {
  const std::string sound = Read("sound.yaml");
  EXPECT_THAT(CheckText(sound + "---\n" + sound).err,
              HasSubstr("Job train/llama stands 2 times in what was given: each is looked at"));
  EXPECT_EQ(CheckText(sound).err, "");
}

TEST(CheckCommand, FindsNothingWhereItLookedAtNothing) {
  const Output output = CheckOf({"no-such.yaml"});
  EXPECT_EQ(output.exit_code, Output::kUsage);
  EXPECT_EQ(output.out, "");
  const Output idle = CheckText("kind: Pod\nspec: {containers: [{name: web}]}\n");
  EXPECT_EQ(idle.exit_code, Output::kOk);
  EXPECT_EQ(idle.out, "no workload asks for a GPU\n");
  EXPECT_THAT(idle.err, HasSubstr("left out: it asks for no GPU"));
}

// docs/examples/trainjob.yaml: a runtime, and a TrainJob that makes 8 pods of 8 GPUs of it.
class CheckATrainJob : public testing::Test {
 protected:
  CheckATrainJob() {
    const auto text = FromDisk(std::string(HEDDLE_SOURCE_DIR) + "/docs/examples/trainjob.yaml");
    const std::size_t end = text ? text->find("---\n") : std::string::npos;
    EXPECT_NE(end, std::string::npos);
    if (end == std::string::npos) return;
    files["runtime.yaml"] = text->substr(0, end);
    files["job.yaml"] = text->substr(end + 4);
  }
  Output Look(const std::vector<std::string>& names, Format format = Format::kText) {
    const ReadFile read = [this](const std::string& name) -> base::Result<std::string> {
      return files.at(name);
    };
    return Check({.targets = names}, {}, {.read = read}, {.format = format});
  }
  void Replace(const std::string& file, const std::string& from, const std::string& to) {
    const std::size_t at = files.at(file).find(from);
    ASSERT_NE(at, std::string::npos) << from;
    files[file].replace(at, from.size(), to);
  }

  std::map<std::string, std::string> files;
};

TEST_F(CheckATrainJob, LooksAtWhatComesOfItAndOfItsRuntime) {
  for (const std::vector<std::string>& names :
       std::vector<std::vector<std::string>>{{"runtime.yaml", "job.yaml"}, {"job.yaml", "runtime.yaml"}}) {
    const Output output = Look(names, Format::kJson);
    EXPECT_EQ(output.exit_code, Output::kOk) << output.out;
    EXPECT_EQ(output.err, "");
    const Json json = Json::parse(output.out);
    ASSERT_EQ(json.at("workloads").size(), 1u);
    EXPECT_EQ(json["workloads"][0].at("workload"), "TrainJob llama");
    EXPECT_EQ(json["workloads"][0].at("templates")[0].at("pods"), 8);
    EXPECT_EQ(json["workloads"][0].at("templates")[0].at("gpusPerPod"), 8);
  }
  EXPECT_THAT(Look({"runtime.yaml", "job.yaml"}).out, HasSubstr("1 workload looked at, for nodes of 8 GPUs"));
  Replace("job.yaml", ", heddle.dev/rdma: 1", "");
  EXPECT_THAT(Look({"runtime.yaml", "job.yaml"}).out, HasSubstr("no-rdma"));
}

TEST_F(CheckATrainJob, IsNoSuccessWhereItsRuntimeIsElsewhere) {
  const Output output = Look({"job.yaml"});
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out,
              AllOf(HasSubstr("WARNING  not-looked-at  TrainJob llama"),
                    HasSubstr("its pods are made from ClusterTrainingRuntime torch-rdma, which is not here"),
                    HasSubstr("`kubectl get clustertrainingruntime torch-rdma -o yaml`"),
                    HasSubstr("`kubectl heddle check trainjob/llama`"), Not(HasSubstr("nothing was found"))));
  const Json json = Json::parse(Look({"job.yaml"}, Format::kJson).out);
  EXPECT_EQ(json.at("workloads")[0].at("findings")[0].at("rule"), "not-looked-at");
  Replace("job.yaml", "{name: torch-rdma}", "{name: torch-rdma, kind: TrainingRuntime}");
  EXPECT_EQ(Look({"job.yaml", "runtime.yaml"}).exit_code, Output::kRefused) << "one of another kind";
  Replace("job.yaml", "nvidia.com/gpu: 8, heddle.dev/rdma: 1", "cpu: 8");
  const Output idle = Look({"job.yaml"});
  EXPECT_EQ(idle.exit_code, Output::kOk) << idle.out;
  EXPECT_THAT(idle.err, HasSubstr("TrainJob llama left out: it asks for no GPU"));
}

TEST_F(CheckATrainJob, LooksAtARuntimeThatNobodyNames) {
  const Output idle = Look({"runtime.yaml"});
  EXPECT_EQ(idle.exit_code, Output::kOk);
  EXPECT_THAT(idle.err, HasSubstr("ClusterTrainingRuntime torch-rdma left out: it asks for no GPU"));
  Replace("runtime.yaml", "numNodes: 1", "numNodes: 4");
  Replace(
      "runtime.yaml", "- name: node\n                  image",
      "- name: node\n                  resources: {limits: {nvidia.com/gpu: 8}}\n                  image");
  const Output output = Look({"runtime.yaml"}, Format::kJson);
  EXPECT_EQ(output.exit_code, Output::kRefused) << output.err;
  const Json workload = Json::parse(output.out).at("workloads")[0];
  EXPECT_EQ(workload.at("workload"), "ClusterTrainingRuntime torch-rdma");
  EXPECT_EQ(workload.at("templates")[0].at("pods"), 4);
  EXPECT_THAT(output.out, HasSubstr("no-rdma"));
  files["runtime.yaml"] = "kind: TrainingRuntime\nmetadata: {name: r}\n";
  EXPECT_EQ(Look({"runtime.yaml"}).exit_code, Output::kUsage);
}

// docs/examples/podgroup.yaml: a PodGroup of two, a Service, and two pods of 8 GPUs.
class CheckPodsOfAPodGroup : public testing::Test {
 protected:
  CheckPodsOfAPodGroup() {
    const auto text = FromDisk(std::string(HEDDLE_SOURCE_DIR) + "/docs/examples/podgroup.yaml");
    const std::size_t end = text ? text->find("---\n") : std::string::npos;
    EXPECT_NE(end, std::string::npos);
    if (end == std::string::npos) return;
    files["group.yaml"] = text->substr(0, end);
    files["pods.yaml"] = text->substr(end + 4);
  }
  Output Look(const std::vector<std::string>& targets, Format format = Format::kText) {
    const ReadFile read = [this](const std::string& path) -> base::Result<std::string> {
      return files.at(path);
    };
    return Check({.targets = targets}, {}, {.read = read}, {.format = format});
  }
  void Count(int pods) {
    std::string& text = files["group.yaml"];
    const std::size_t at = text.find("minCount: 2");
    ASSERT_NE(at, std::string::npos);
    text.replace(at, 11, "minCount: " + std::to_string(pods));
  }
  // Takes all that stands so out of the pods' file.
  void TakeOut(const std::string& what) {
    std::string& text = files["pods.yaml"];
    ASSERT_NE(text.find(what), std::string::npos) << what;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what))
      text.erase(at, what.size());
  }
  std::map<std::string, std::string> files;
};

TEST_F(CheckPodsOfAPodGroup, SaysOnceWhatAllOfThemLack) {
  TakeOut(", heddle.dev/rdma: 1");
  const Output output = Look({"group.yaml", "pods.yaml"});
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out, HasSubstr("ERROR    no-rdma  2 pods of PodGroup pair: pair-0 and pair-1\n"));
  EXPECT_THAT(output.out, HasSubstr("1 error and 0 warnings in 2 workloads"));
  EXPECT_EQ(output.out.find("ERROR"), output.out.rfind("ERROR")) << output.out;
  EXPECT_THAT(output.out, AllOf(HasSubstr("Pod pair-0     1     8"), HasSubstr("Pod pair-1     1     8")));
  const Json workloads = Json::parse(Look({"group.yaml", "pods.yaml"}, Format::kJson).out).at("workloads");
  ASSERT_EQ(workloads.size(), 2u);
  for (const Json& one : workloads) {
    EXPECT_EQ(one.at("findings").at(0).at("rule"), "no-rdma");
    EXPECT_EQ(one.at("gang").at("namespace"), "");
    EXPECT_EQ(one.at("gang").at("group"), "PodGroup/pair");
  }
}

TEST_F(CheckPodsOfAPodGroup, SaysOfOneWhatItAloneLacks) {
  std::string& text = files["pods.yaml"];
  text.erase(text.rfind(", heddle.dev/rdma: 1"), std::string(", heddle.dev/rdma: 1").size());
  const Output output = Look({"group.yaml", "pods.yaml"});
  EXPECT_THAT(output.out, HasSubstr("ERROR    no-rdma  Pod pair-1\n"));
}

TEST_F(CheckPodsOfAPodGroup, TakesTwoOfOneNameForOnePod) {
  files["pods.yaml"] += "---\n" + files["pods.yaml"];
  const Output output = Look({"pods.yaml"});
  EXPECT_EQ(output.exit_code, Output::kOk) << output.out;
  EXPECT_THAT(output.err, AllOf(HasSubstr("its gang is taken for the pods that are: 2"),
                                HasSubstr("Pod pair-0 stands 2 times")));
}

TEST_F(CheckPodsOfAPodGroup, CountsThemAsTheGroupDoes) {
  for (const bool group_first : {true, false}) {
    const Output output = group_first ? Look({"group.yaml", "pods.yaml"}) : Look({"pods.yaml", "group.yaml"});
    EXPECT_EQ(output.exit_code, Output::kOk) << output.out << output.err;
    EXPECT_THAT(output.out, HasSubstr("2 workloads looked at"));
    EXPECT_THAT(output.err, Not(HasSubstr("PodGroup")));
  }
  Count(4);
  const Output output = Look({"group.yaml", "pods.yaml"});
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out, HasSubstr("ERROR    not-its-gpus  2 pods of PodGroup pair: pair-0 and pair-1\n"));
  EXPECT_EQ(output.out.find("not-its-gpus"), output.out.rfind("not-its-gpus")) << "once for the gang";
}

TEST_F(CheckPodsOfAPodGroup, TakesThoseThatAreThereForAllWhereTheGroupIsNot) {
  const Output output = Look({"pods.yaml"});
  EXPECT_EQ(output.exit_code, Output::kOk) << output.out;
  EXPECT_THAT(output.err,
              HasSubstr("PodGroup pair is in no file, so its gang is taken for the pods that are: 2"));
}

TEST_F(CheckPodsOfAPodGroup, NamesAGroupThatAsksForNoGang) {
  files["group.yaml"] =
      "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: pair}\n"
      "spec: {schedulingPolicy: {basic: {}}}\n";
  const Output output = Look({"group.yaml", "pods.yaml"});
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out, HasSubstr("PodGroup pair has no spec.schedulingPolicy.gang"));
}

TEST(CheckCommand, ListsItsRules) {
  const Output output = Check({.rules = true}, {}, {.read = FromDisk}, {});
  EXPECT_EQ(output.exit_code, Output::kOk);
  for (const crds::WorkloadRule& rule : crds::WorkloadRules())
    EXPECT_THAT(output.out, HasSubstr(std::string(rule.id)));
}

TEST(CheckCommand, NamesEachRuleInItsHelp) {
  const CommandLine line = ReadWords({"kubectl-heddle", "check", "--help"});
  ASSERT_TRUE(line.instead);
  for (const crds::WorkloadRule& rule : crds::WorkloadRules())
    EXPECT_THAT(line.instead->out, testing::ContainsRegex("\n  " + std::string(rule.id) + "  +[A-Za-z]"));
}

// The documentation explains each rule, and no other.
TEST(CheckCommand, IsExplainedInTheDocs) {
  const auto page = FromDisk(std::string(HEDDLE_SOURCE_DIR) + "/docs/devices.md");
  ASSERT_TRUE(page);
  const std::size_t begin = page->find("\n| rule | forbids |");
  ASSERT_NE(begin, std::string::npos);
  const std::string table = page->substr(begin + 1, page->find("\n\n", begin) - begin);
  for (const crds::WorkloadRule& rule : crds::WorkloadRules())
    EXPECT_THAT(table, HasSubstr("\n| `" + std::string(rule.id) + "` |"));
  const std::size_t lines = std::size_t(std::count(table.begin(), table.end(), '\n'));
  EXPECT_EQ(lines, 2 + crds::WorkloadRules().size()) << "a rule that there is no more, or twice";
}

TEST(CheckCommand, TellsFilesFromWorkloadsInTheCluster) {
  EXPECT_EQ(LiveWorkloadOf("job/llama")->resource, kube::kJobs);
  EXPECT_EQ(LiveWorkloadOf("PyTorchJob/bert")->name, "bert");
  EXPECT_EQ(LiveWorkloadOf("jobs.batch/a")->name, "a");
  for (const char* ray : {"raycluster/lab", "rayjob/lab", "rayservices/lab"})
    EXPECT_EQ(LiveWorkloadOf(ray)->resource.group, "ray.io") << ray;
  for (const char* file : {"llama.yaml", "job/llama.yaml", "./job/llama", "jobs/a/b", "-", "job/",
                           "manifests/llama", "job/Llama", "job/llama.json", "job/..", "job/-a"})
    EXPECT_FALSE(LiveWorkloadOf(file)) << file;
  EXPECT_FALSE(AsksCluster({.targets = {"a.yaml", "-"}}));
  EXPECT_TRUE(AsksCluster({.targets = {"a.yaml", "job/llama"}}));
  EXPECT_FALSE(AsksCluster({.targets = {"job/llama"}, .rules = true}));
}

TEST_F(CheckInACluster, KnowsItsNodes) {
  AddCluster("su:1 node:4 gpu:4 nic:4 rail:4 transport:ib");
  AddSample("rdma/hca");
  const Output output = Look({"job/llama"});
  EXPECT_EQ(output.exit_code, Output::kOk) << output.out << output.err;
  EXPECT_THAT(output.out, HasSubstr("for nodes of 4 GPUs with InfiniBand: nothing was found"));
  EXPECT_EQ(output.err, "");
}

TEST_F(CheckInACluster, KnowsRoceByItsNics) {
  AddCluster("su:1 node:4 gpu:8 nic:8 rail:8 transport:roce");
  AddSample("rdma/hca");
  const Output output = Look({"job/llama"});
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out, HasSubstr("no-interface"));
}

TEST_F(CheckInACluster, KnowsTheResourcesOfPolicies) {
  AddCluster("su:1 node:4 gpu:4 nic:4 rail:4 transport:ib");
  AddSample("example.com/rail40");
  EXPECT_THAT(Look({"job/llama"}).out, HasSubstr("no-rdma"));
  Json policy = kube::NewObject(ResourceOf(keys::kRdmaDevicePolicy), {"", "nics"});
  policy["spec"] = {
      {"mode", "Nics"}, {"plugin", "RdmaShared"}, {"resources", {{{"name", "example.com/rail{rail}"}}}}};
  server.Put(ResourceOf(keys::kRdmaDevicePolicy), policy);
  const Output output = Look({"job/llama"});
  EXPECT_EQ(output.exit_code, Output::kOk) << output.out << output.err;
  policy["spec"]["resources"][0]["rails"] = {0, 1, 2, 3};
  server.Put(ResourceOf(keys::kRdmaDevicePolicy), policy);
  const Output other_rails = Look({"job/llama"});
  EXPECT_EQ(other_rails.exit_code, Output::kRefused);
  EXPECT_THAT(other_rails.out, HasSubstr("rail-not-offered"));
  policy["spec"]["mode"] = "OfANewerVersion";
  server.Put(ResourceOf(keys::kRdmaDevicePolicy), policy);
  EXPECT_EQ(Look({"job/llama"}).exit_code, Output::kOk) << "which rails it is for is not known";
}

TEST_F(CheckInACluster, LooksAtTheJobSetOfATrainJob) {
  AddCluster("su:1 node:4 gpu:4 nic:4 rail:4 transport:ib");
  const auto workload = LiveWorkloadOf("trainjob/llama");
  ASSERT_TRUE(workload && workload->makes);
  server.Serve(workload->resource);
  server.Serve(*workload->makes);
  Json train = kube::NewObject(workload->resource, {"train", "llama"});
  train["spec"] = {{"runtimeRef", {{"name", "torch"}}}};
  server.Put(workload->resource, train);
  const Output early = Look({"trainjob/llama"});
  EXPECT_EQ(early.exit_code, Output::kUsage);
  EXPECT_THAT(early.err,
              HasSubstr("TrainJob llama has made no JobSet yet; see `kubectl describe trainjobs llama"));
  AddSample("example.com/rail3");
  const Json job = *server.Find(kube::kJobs, {"train", "llama"});
  Json set = kube::NewObject(*workload->makes, {"train", "llama"});
  set["spec"]["replicatedJobs"] = Json::array({{{"name", "node"}, {"replicas", 1}, {"template", job}}});
  server.Put(*workload->makes, set);
  EXPECT_THAT(Look({"trainjob/llama"}).out, HasSubstr("no-rdma"));
}

TEST_F(CheckInACluster, AsksThePodGroupOfAPodInTheVersionThatIsServed) {
  AddCluster("su:1 node:4 gpu:4 nic:4 rail:4 transport:ib");
  AddSample("rdma/hca");
  const Json job = *server.Find(kube::kJobs, {"train", "llama"});
  Json pod = kube::NewObject(kube::kPods, {"train", "pair-0"});
  pod["metadata"]["annotations"]["heddle.dev/parallelism"] = "tp=4,dp=2";
  pod["spec"] = job["spec"]["template"]["spec"];
  pod["spec"]["schedulingGroup"]["podGroupName"] = "pair";
  server.Put(kube::kPods, pod);
  const Output early = Look({"pod/pair-0"});
  EXPECT_EQ(early.exit_code, Output::kOk) << early.out;
  EXPECT_THAT(early.err, HasSubstr("how many pods its PodGroup pair has could not be read"));
  for (const char* version : {"v1alpha2", "v1beta1"}) {
    const kube::Resource groups =
        kube::CustomResource("scheduling.k8s.io", version, "podgroups", "PodGroup", true);
    server.Serve(groups);
    Json group = kube::NewObject(groups, {"train", "pair"});
    group["spec"]["schedulingPolicy"]["gang"]["minCount"] = version == std::string("v1beta1") ? 3 : 2;
    server.Put(groups, group);
    const Output output = Look({"pod/pair-0"});
    EXPECT_EQ(output.err, "") << version;
    EXPECT_EQ(output.exit_code, version == std::string("v1beta1") ? Output::kRefused : Output::kOk)
        << output.out;
  }
}

TEST_F(CheckInACluster, SaysWhatItCouldNotRead) {
  const Output output = Look({"job/nobody", kWorkloads + "sound.yaml"});
  EXPECT_EQ(output.exit_code, Output::kUsage);
  EXPECT_THAT(output.err,
              AllOf(HasSubstr("kubectl get jobs -n train"), HasSubstr("no node has reported its GPUs")));
  EXPECT_THAT(output.out, HasSubstr("1 workload looked at"));
}

TEST_F(CheckInACluster, SaysWhereResourcesOfPoliciesMayNotBeRead) {
  AddCluster("su:1 node:4 gpu:4 nic:4 rail:4 transport:ib");
  AddSample("example.com/rail3");
  server.FailNext({.path_contains = "rdmadevicepolicies", .status = 403});
  const Output output = Look({"job/llama"});
  EXPECT_THAT(output.out, HasSubstr("no-rdma"));
  EXPECT_THAT(output.err, AllOf(HasSubstr("Note: RdmaDevicePolicies could not be read"),
                                HasSubstr("--rdma-resource says it")));
}

TEST_F(CheckInACluster, FailsWhereTheClusterCannotBeAsked) {
  server.FailNext({.path_contains = "/jobs/", .status = 0}, 2);
  const Output output = Look({"job/llama", "job/bert"});
  EXPECT_EQ(output.exit_code, Output::kFailed);
  EXPECT_EQ(output.out, "");
  const std::string hint = "Is the cluster up";
  const std::size_t at = output.err.find(hint);
  ASSERT_NE(at, std::string::npos) << output.err;
  EXPECT_EQ(output.err.find(hint, at + 1), std::string::npos) << "it is said once: " << output.err;
}

}  // namespace
}  // namespace heddle::cli
