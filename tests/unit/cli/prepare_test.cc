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
  const Output none = Prepare({.files = {"/nowhere.yaml"}}, FromDisk, {});
  EXPECT_EQ(none.exit_code, Output::kUsage);
  EXPECT_THAT(none.err, HasSubstr("/nowhere.yaml cannot be read"));
}

}  // namespace
}  // namespace heddle::cli
