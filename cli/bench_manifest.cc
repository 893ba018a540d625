#include "cli/bench_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/quality_view.h"
#include "crds/keys.h"
#include "crds/node_devices.h"
#include "crds/parallelism.h"

namespace heddle::cli {

const std::string_view kBenchImage =
    "an image that has mpirun (Open MPI), sshd with host keys, and nccl-tests built with MPI=1 in its PATH, "
    "with the "
    "NCCL that your jobs use";

namespace {

namespace keys = crds::keys;

// "<name>-launcher" and "<name>-worker-1023" are names of pods.
constexpr std::size_t kLongestName = 40;

std::string NameOf(const BenchRanks& ranks, placement::Collective collective) {
  std::string name = fmt::format("nccl-{}-{}", CollectiveName(collective), ranks.name);
  for (char& c : name) {
    if ((c < 'a' || c > 'z') && (c < '0' || c > '9')) c = '-';
  }
  name.resize(std::min(name.size(), kLongestName));
  while (name.back() == '-') name.pop_back();
  return name;
}

std::string ConstraintsText(const std::vector<placement::Requirement>& constraints) {
  std::string text;
  for (const auto& [axis, level] : constraints)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", AxisName(axis), LevelName(level));
  return text;
}

std::string LayoutText(const placement::Parallelism& parallelism) {
  std::string text = ParallelismText(parallelism);
  if (parallelism.order != placement::Parallelism{}.order)
    text += ",order=" + crds::FormatOrder(parallelism.order);
  return text;
}

std::string ModelText(const placement::ModelHints& model) {
  std::string text;
  const auto say = [&](std::string_view word, auto value) {
    if (value > 0) text += fmt::format("{}{}={}", text.empty() ? "" : ",", word, value);
  };
  say("params", model.params);
  say("layers", model.layers);
  say("hidden", model.hidden);
  say("seq", model.seq);
  say("microbatch", model.microbatch);
  say("microbatches", model.microbatches);
  say("tflops", model.tflops);
  say("active", model.active);
  say("experts", model.experts);
  say("topk", model.topk);
  say("heads", model.heads);
  say("kvheads", model.kvheads);
  return text;
}

Json Annotations(const BenchOptions& options, const BenchRanks& ranks) {
  Json annotations;
  const auto say = [&](std::string_view key, std::string text) {
    if (!text.empty()) annotations[std::string(key)] = std::move(text);
  };
  say(keys::kParallelism, LayoutText(ranks.parallelism));
  say(keys::kModel, ModelText(ranks.model));
  say(keys::kRequire, ConstraintsText(ranks.require));
  say(keys::kPrefer, ConstraintsText(ranks.prefer));
  say("k8s.v1.cni.cncf.io/networks", options.network);
  return annotations;
}

Json Worker(const BenchOptions& options, const BenchRanks& ranks) {
  Json limits;
  limits[ranks.gpu_resource] = ranks.gpus_per_pod;
  for (const std::string& resource : options.rdma_resources) limits[resource] = 1;
  Json container{{"name", "worker"},
                 {"image", options.image},
                 {"command", Json::array({"/usr/sbin/sshd", "-De"})},
                 {"resources", {{"limits", std::move(limits)}}},
                 {"securityContext", {{"capabilities", {{"add", Json::array({"IPC_LOCK"})}}}}},
                 {"volumeMounts", Json::array({Json{{"name", "shm"}, {"mountPath", "/dev/shm"}}})}};
  Json spec{{"containers", Json::array({std::move(container)})},
            {"volumes", Json::array({Json{{"name", "shm"}, {"emptyDir", {{"medium", "Memory"}}}}})}};
  if (!ranks.pinned.empty()) {
    Json expression{{"key", "kubernetes.io/hostname"}, {"operator", "In"}, {"values", ranks.pinned}};
    spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] =
        Json::array({Json{{"matchExpressions", Json::array({std::move(expression)})}}});
  }
  return {{"replicas", ranks.pods},
          {"template",
           {{"metadata", {{"annotations", Annotations(options, ranks)}}}, {"spec", std::move(spec)}}}};
}

Json Launcher(const BenchOptions& options, const BenchRanks& ranks, placement::Collective collective) {
  // sshd starts ranks without the container's variables, so mpirun hands on where heddle.dev/fabric puts NCCL's
  // configuration; NCCL goes on without a file that is not there. What it says of its ways (sockets, RDMA, GPUDirect)
  // is read with the results.
  Json command = Json::array({"mpirun",
                              "--allow-run-as-root",
                              "-np",
                              std::to_string(ranks.over.ranks()),
                              "-bind-to",
                              "none",
                              "-x",
                              "NCCL_DEBUG=INFO",
                              "-x",
                              "NCCL_DEBUG_SUBSYS=INIT,NET",
                              "-x",
                              fmt::format("NCCL_CONF_FILE={}/{}", crds::kNcclFolder, crds::kNcclConf),
                              ProgramOf(collective),
                              "-b",
                              "1M",
                              "-e",
                              "8G",
                              "-f",
                              "2",
                              "-g",
                              "1"});
  Json container{{"name", "mpirun"}, {"image", options.image}, {"command", std::move(command)}};
  return {{"replicas", 1}, {"template", {{"spec", {{"containers", Json::array({std::move(container)})}}}}}};
}

}  // namespace

std::string ProgramOf(placement::Collective collective) {
  return std::string(CollectiveName(collective)) + "_perf";
}

Json BenchManifest(const BenchOptions& options, const BenchRanks& ranks, placement::Collective collective) {
  Json metadata;
  metadata["name"] = NameOf(ranks, collective);
  if (!ranks.ns.empty()) metadata["namespace"] = ranks.ns;
  return {{"apiVersion", "kubeflow.org/v2beta1"},
          {"kind", "MPIJob"},
          {"metadata", std::move(metadata)},
          {"spec",
           {{"slotsPerWorker", ranks.gpus_per_pod},
            // Workers may wait at Heddle's gate for long: mpirun is started when they are all there.
            {"launcherCreationPolicy", "WaitForWorkersReady"},
            {"runPolicy", {{"cleanPodPolicy", "Running"}, {"backoffLimit", 3}}},
            {"mpiReplicaSpecs",
             {{"Launcher", Launcher(options, ranks, collective)}, {"Worker", Worker(options, ranks)}}}}}};
}

}  // namespace heddle::cli
