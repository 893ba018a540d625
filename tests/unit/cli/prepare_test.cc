#include "cli/prepare.h"

#include <gmock/gmock.h>

#include "cli/object_documents.h"
#include "crds/keys.h"
#include "kube/object.h"
#include "tests/unit/cli/from_disk.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;
using crds::Json;
using testing::HasSubstr;

const std::vector<std::string> kGpus{"nvidia.com/gpu"};

Json Job(const std::string& parallelism, int gpus, const std::string& scheduler = "") {
  Json job{{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"metadata", {{"name", "llama"}}}};
  Json& pod = job["spec"]["template"];
  if (!parallelism.empty()) pod["metadata"]["annotations"][std::string(keys::kParallelism)] = parallelism;
  Json side{{"name", "log"}}, worker{{"name", "worker"}};
  if (gpus > 0) worker["resources"]["limits"]["nvidia.com/gpu"] = gpus;
  pod["spec"]["containers"] = Json::array({side, worker});
  if (!scheduler.empty()) pod["spec"]["schedulerName"] = scheduler;
  return job;
}

const Json& PodSpec(const Json& job) {
  return job["spec"]["template"]["spec"];
}

TEST(Prepare, GatesAGangsTemplateAndAsksForTheFabricBesideItsGpus) {
  Json job = Job("tp=8", 8);
  EXPECT_EQ(PrepareObject(job, kGpus), 1u);
  const Json& spec = PodSpec(job);
  EXPECT_EQ(spec["schedulerName"], "heddle");
  EXPECT_EQ(spec["schedulingGates"], Json::parse(R"([{"name": "heddle.dev/gang"}])"));
  EXPECT_FALSE(spec["containers"][0].contains("resources"));
  EXPECT_EQ(spec["containers"][1]["resources"]["limits"]["heddle.dev/fabric"], "1");
  EXPECT_EQ(spec["containers"][1]["resources"]["requests"]["heddle.dev/fabric"], "1");
}

// Where no agent offers it, no node has room for a pod that asks for it.
TEST(Prepare, AsksForNoFabricWhereItIsToldSo) {
  Json job = Job("tp=8", 8);
  EXPECT_EQ(PrepareObject(job, kGpus, true), 1u);
  EXPECT_EQ(PodSpec(job)["schedulerName"], "heddle");
  EXPECT_EQ(PodSpec(job)["schedulingGates"].size(), 1u);
  EXPECT_EQ(PodSpec(job)["containers"][1]["resources"], Json::parse(R"({"limits": {"nvidia.com/gpu": 8}})"));
  const auto read = [](const std::string&) -> base::Result<std::string> { return Job("tp=8", 8).dump(); };
  const Output output = Prepare({.files = {"-"}, .without_fabric = true}, read, {});
  EXPECT_THAT(output.out, HasSubstr("name: heddle.dev/gang"));
  EXPECT_THAT(output.out, testing::Not(HasSubstr("heddle.dev/fabric")));
}

TEST(Prepare, ChangesNothingASecondTime) {
  Json job = Job("tp=8", 8);
  (void)PrepareObject(job, kGpus);
  const Json once = job;
  EXPECT_EQ(PrepareObject(job, kGpus), 0u);
  EXPECT_EQ(job, once);
}

TEST(Prepare, KeepsTheGatesOfOthers) {
  Json job = Job("tp=8", 8);
  job["spec"]["template"]["spec"]["schedulingGates"] =
      Json::parse(R"([{"name": "kueue.x-k8s.io/admission"}])");
  (void)PrepareObject(job, kGpus);
  EXPECT_EQ(PodSpec(job)["schedulingGates"].size(), 2u);
}

TEST(Prepare, SendsGpuPodsOfNoGangToTheSchedulerWithoutAGate) {
  Json job = Job("", 2);
  EXPECT_EQ(PrepareObject(job, kGpus), 1u);
  EXPECT_EQ(PodSpec(job)["schedulerName"], "heddle");
  EXPECT_FALSE(PodSpec(job).contains("schedulingGates"));
}

TEST(Prepare, LeavesWhatIsNotHeddlesAlone) {
  for (Json job : {Job("tp=8", 0), Job("tp=8", 8, "volcano")}) {
    const Json before = job;
    EXPECT_EQ(PrepareObject(job, kGpus), 0u);
    EXPECT_EQ(job, before);
  }
  Json other = Json::parse(R"({"kind": "ConfigMap", "data": {"spec": "no"}})");
  EXPECT_EQ(PrepareObject(other, kGpus), 0u);
  Json amd = Job("tp=8", 0);
  amd["spec"]["template"]["spec"]["containers"][1]["resources"]["limits"]["amd.com/gpu"] = "8";
  EXPECT_EQ(PrepareObject(amd, {"amd.com/gpu"}), 1u);
}

// docs/examples/trainjob.yaml: the GPUs and the annotation stand in the TrainJob, and the template in the runtime.
struct Example {
  Json runtime, job;
};
Example TrainJobExample() {
  Example example;
  const auto text = FromDisk(std::string(HEDDLE_SOURCE_DIR) + "/docs/examples/trainjob.yaml");
  EXPECT_TRUE(text && ForEachObject(*text, nullptr, [&](const Json& one) -> base::Status {
                (kube::StringAt(one, {"kind"}) == "TrainJob" ? example.job : example.runtime) = one;
                return {};
              }));
  return example;
}

const Json& PodOfRuntime(const Json& runtime) {
  return runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"];
}

const Json kGate = Json::parse(R"([{"name": "heddle.dev/gang"}])");

TEST(PrepareTrainJob, PutsEachThingWhereItCanStand) {
  auto [runtime, job] = TrainJobExample();
  EXPECT_EQ(PrepareTrainJob(job, runtime, kGpus), 1u);
  EXPECT_EQ(PodOfRuntime(runtime)["spec"]["schedulerName"], "heddle");
  EXPECT_FALSE(PodOfRuntime(runtime)["spec"].contains("schedulingGates")) << "other TrainJobs are of it, too";
  EXPECT_FALSE(PodOfRuntime(runtime)["spec"]["containers"][0].contains("resources"));
  EXPECT_EQ(job["spec"]["podTemplateOverrides"][0]["spec"]["schedulingGates"], kGate);
  const Json& resources = job["spec"]["trainer"]["resourcesPerNode"];
  EXPECT_EQ(resources["limits"]["heddle.dev/fabric"], "1");
  EXPECT_EQ(resources["requests"]["heddle.dev/fabric"], "1");
  const Json once[] = {runtime, job};
  EXPECT_EQ(PrepareTrainJob(job, runtime, kGpus), 0u);
  EXPECT_EQ(runtime, once[0]);
  EXPECT_EQ(job, once[1]);
}

TEST(PrepareTrainJob, AsksForNoFabricWhereItIsToldSo) {
  auto [runtime, job] = TrainJobExample();
  const Json before = job["spec"]["trainer"];
  EXPECT_EQ(PrepareTrainJob(job, runtime, kGpus, true), 1u);
  EXPECT_EQ(job["spec"]["podTemplateOverrides"][0]["spec"]["schedulingGates"], kGate);
  EXPECT_EQ(job["spec"]["trainer"], before);
}

TEST(PrepareTrainJob, GatesTheRuntimeWhereTheAnnotationAndTheGpusStandThere) {
  auto [runtime, job] = TrainJobExample();
  Json& pod = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"];
  pod["metadata"]["annotations"][std::string(keys::kParallelism)] = "tp=8";
  pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 8;
  job["spec"].erase("podTemplateOverrides");
  job["spec"]["trainer"].erase("resourcesPerNode");
  const Json before = job;
  EXPECT_EQ(PrepareTrainJob(job, runtime, kGpus), 1u);
  EXPECT_EQ(job, before);
  EXPECT_EQ(pod["spec"]["schedulingGates"], kGate);
  EXPECT_EQ(pod["spec"]["containers"][0]["resources"]["limits"]["heddle.dev/fabric"], "1");
}

TEST(PrepareTrainJob, LeavesWhatIsNotHeddlesAlone) {
  auto [runtime, job] = TrainJobExample();
  Json cpu = job, volcano = runtime;
  cpu["spec"]["trainer"]["resourcesPerNode"]["limits"] = {{"cpu", 8}};
  EXPECT_EQ(PrepareTrainJob(cpu, runtime, kGpus), 0u);
  volcano["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
         ["schedulerName"] = "volcano";
  EXPECT_EQ(PrepareTrainJob(job, volcano, kGpus), 0u);
  for (const char* text :
       {"{}", R"({"spec": {"template": {"spec": {"replicatedJobs": [7, {"template": 7}, {"template": {"spec":
           {"template": {"spec": 7}}}}]}}}})"}) {
    Json odd = Json::parse(text);
    EXPECT_EQ(PrepareTrainJob(job, odd, kGpus), 0u) << text;
  }
}

TEST(PrepareTrainJob, IsSaidToStayAsItIsWithoutItsRuntime) {
  auto [runtime, job] = TrainJobExample();
  std::vector<Json> objects{job};
  const auto read = [&](const std::string&) -> base::Result<std::string> {
    return Json{{"items", objects}}.dump();
  };
  const Output alone = Prepare({.files = {"-"}}, read, {.format = Format::kJson});
  EXPECT_EQ(alone.exit_code, Output::kOk);
  EXPECT_EQ(Json::parse(alone.out)["items"][0], job);
  EXPECT_EQ(
      alone.err,
      "Note: TrainJob llama stays as it is: its pods are made from ClusterTrainingRuntime torch-rdma, which "
      "is not here; give that as well (kubectl get clustertrainingruntime torch-rdma -o yaml)\n");
  objects.push_back(runtime);
  const Output both = Prepare({.files = {"-"}}, read, {.format = Format::kJson});
  EXPECT_EQ(both.err, "Prepared 1 pod template.\n");
  EXPECT_EQ(PodOfRuntime(Json::parse(both.out)["items"][1])["spec"]["schedulerName"], "heddle");
}

TEST(Prepare, NamesAnnotationsThatHeddleWillRefuse) {
  Json misspelt = Job("tp=8", 8);
  misspelt["spec"]["template"]["metadata"]["annotations"]["heddle.dev/modle"] = "params=70e9";
  const auto read = [&](const std::string&) -> base::Result<std::string> { return misspelt.dump(); };
  const Output output = Prepare({.files = {"-"}}, read, {});
  EXPECT_EQ(output.exit_code, Output::kOk);
  EXPECT_THAT(output.err, testing::StartsWith("Note: Job llama: the annotation heddle.dev/modle is none of "
                                              "Heddle's; is heddle.dev/model meant? It knows"));
  EXPECT_THAT(output.err, testing::EndsWith("\nPrepared 1 pod template.\n"));

  auto [runtime, job] = TrainJobExample();
  job["spec"]["podTemplateOverrides"][0]["metadata"]["annotations"]["heddle.dev/modle"] = "params=70e9";
  const Json both{{"items", Json::array({runtime, job})}};
  const auto read_both = [&](const std::string&) -> base::Result<std::string> { return both.dump(); };
  EXPECT_THAT(Prepare({.files = {"-"}}, read_both, {}).err,
              testing::StartsWith("Note: TrainJob llama: the annotation heddle.dev/modle is none"));
}

TEST(Prepare, PrintsEveryObjectInOrderForKubectl) {
  const auto read = [](const std::string&) -> base::Result<std::string> {
    return "kind: ConfigMap\napiVersion: v1\nmetadata: {name: settings}\n---\n" + Job("tp=8", 8).dump();
  };
  const Output yaml = Prepare({.files = {"-"}}, read, {});
  EXPECT_EQ(yaml.exit_code, Output::kOk);
  EXPECT_THAT(yaml.err, HasSubstr("Prepared 1 pod template."));
  EXPECT_THAT(yaml.out, HasSubstr("---\n"));
  const Output json = Prepare({.files = {"-"}}, read, {.format = Format::kJson});
  const Json list = Json::parse(json.out);
  ASSERT_EQ(list["items"].size(), 2u);
  EXPECT_EQ(list["items"][0]["kind"], "ConfigMap");
  std::vector<std::string> kinds;
  ASSERT_TRUE(ForEachObject(yaml.out, nullptr, [&](const Json& one) -> base::Status {
    kinds.push_back(kube::StringAt(one, {"kind"}));
    return {};
  }));
  EXPECT_EQ(kinds, (std::vector<std::string>{"ConfigMap", "Job"}));
}

TEST(Prepare, SaysWhichFileCannotBeRead) {
  const auto broken = [](const std::string&) -> base::Result<std::string> { return "{\"kind\": "; };
  const Output output = Prepare({.files = {"job.json"}}, broken, {});
  EXPECT_EQ(output.exit_code, Output::kUsage);
  EXPECT_THAT(output.err, HasSubstr("job.json"));
  const auto text_of = [](const char* text) {
    const std::string whole = text;
    return Prepare({.files = {"-"}},
                   [&whole](const std::string&) -> base::Result<std::string> { return whole; }, {});
  };
  const Output empty = text_of(" \n");
  EXPECT_EQ(empty.exit_code, Output::kUsage) << "`helm template | kubectl heddle prepare -f -` said nothing";
  EXPECT_EQ(empty.err, "Error: standard input is empty; it should hold Kubernetes objects\n");
  const Output program = text_of(
      "\x7f"
      "ELF\x02\x01");
  EXPECT_EQ(program.exit_code, Output::kUsage);
  EXPECT_THAT(program.err, HasSubstr("standard input is neither YAML nor JSON but binary"));
  EXPECT_EQ(text_of("# nothing yet\n").exit_code, Output::kOk);
  const Output none = Prepare({.files = {"/nowhere.yaml"}}, FromDisk, {});
  EXPECT_EQ(none.exit_code, Output::kUsage);
  EXPECT_THAT(none.err, HasSubstr("/nowhere.yaml cannot be read"));
}

}  // namespace
}  // namespace heddle::cli
