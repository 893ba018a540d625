#include "tests/unit/extender/cluster.h"

#include <gtest/gtest.h>

#include <map>

#include "crds/keys.h"
#include "crds/node_topology.h"
#include "extender/owner_kinds.h"
#include "extender/resources.h"
#include "topology/synthetic.h"

namespace heddle::test {
namespace {

using kube::Json;
namespace keys = crds::keys;

Json NodeJson(const topology::Node& node) {
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", node.name}, {"labels", {{"kubernetes.io/hostname", node.name}}}}},
          {"status",
           {{"allocatable",
             {{"cpu", "128"},
              {"memory", "2048Gi"},
              {"pods", "110"},
              {"nvidia.com/gpu", std::to_string(node.gpus.size())}}},
            {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}};
}

Json TopologyJson(const topology::Node& node, base::WallTime now) {
  crds::NodeTopology topology;
  topology.name = node.name;
  topology.status.node = node;
  topology.status.observed_at = std::chrono::floor<std::chrono::seconds>(now);
  return crds::ToJson(topology);
}

Json PodSpec(const JobWords& words) {
  Json spec = {
      {"schedulerName", "heddle"},
      {"priority", words.priority},
      {"schedulingGates", Json::array({{{"name", keys::kGangGate}}})},
      {"containers",
       Json::array({{{"name", "main"},
                     {"resources", {{"limits", {{"nvidia.com/gpu", std::to_string(words.gpus)}}}}}}})}};
  spec.merge_patch(words.pod_spec);
  return spec;
}

JobWords RepairedJob() {
  return {.name = "runs", .pods = 2, .parallelism = "tp=8,dp=2"};
}

std::string JobOf(const Json& pod) {
  const auto owner = kube::ControllerOwner(pod);
  return owner ? owner->name : "";
}

}  // namespace

Cluster::Cluster(std::string_view synthetic) {
  for (const auto& resource : {extender::kNodeTopologies, extender::kFabrics, extender::kGangs})
    server.Serve(resource);
  for (const extender::OwnerKind& kind : extender::OwnerKinds()) {
    if (kind.everywhere && kind.resource != kube::kJobs) server.Serve(kind.resource);
  }
  const auto parsed = topology::ParseSynthetic(synthetic);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  if (!parsed) return;
  for (const topology::Node& node : parsed->nodes) {
    server.Put(kube::kNodes, NodeJson(node));
    server.Put(extender::kNodeTopologies, TopologyJson(node, clock.WallNow()));
  }
}

std::string Cluster::PutJob(const JobWords& words) {
  Json job = kube::NewObject(kube::kJobs, {"train", words.name});
  job["spec"] = {{"completionMode", "Indexed"}, {"completions", words.pods}, {"parallelism", words.pods}};
  return kube::Uid(server.Put(kube::kJobs, job));
}

void Cluster::PutPod(const JobWords& words, const std::string& job_uid, int index, const std::string& name) {
  Json pod =
      kube::NewObject(kube::kPods, {"train", name.empty() ? words.name + "-" + std::to_string(index) : name});
  pod["metadata"]["labels"] = {{"batch.kubernetes.io/job-completion-index", std::to_string(index)}};
  pod["metadata"]["annotations"] = words.annotations;
  if (!words.parallelism.empty()) pod["metadata"]["annotations"][keys::kParallelism] = words.parallelism;
  pod["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "batch/v1"},
                                                     {"kind", "Job"},
                                                     {"name", words.name},
                                                     {"uid", job_uid},
                                                     {"controller", true}}});
  pod["spec"] = PodSpec(words);
  pod["status"] = {{"phase", "Pending"}};
  server.Put(kube::kPods, pod);
}

std::string Cluster::Submit(const JobWords& words) {
  const std::string uid = PutJob(words);
  for (int i = 0; i < words.pods; ++i) PutPod(words, uid, i);
  return uid;
}

void Cluster::PutLonePod(const std::string& name, const std::string& node, int gpus) {
  Json pod = kube::NewObject(kube::kPods, {"other", name});
  pod["spec"] = {{"nodeName", node},
                 {"containers",
                  Json::array({{{"name", "main"},
                                {"resources", {{"limits", {{"nvidia.com/gpu", std::to_string(gpus)}}}}}}})}};
  pod["status"] = {{"phase", "Running"}};
  server.Put(kube::kPods, pod);
}

int Cluster::BindReleased() {
  int bound = 0;
  for (const Json& pod : server.All(kube::kPods)) {
    const auto node = kube::Annotation(pod, keys::kNode);
    if (!node || !kube::ArrayAt(pod, {"spec", "schedulingGates"}).empty()) continue;
    if (!kube::StringAt(pod, {"spec", "nodeName"}).empty()) continue;
    server.Edit(kube::kPods, kube::KeyOf(pod), [&](Json& edited) {
      edited["spec"]["nodeName"] = *node;
      edited["status"]["phase"] = "Running";
    });
    ++bound;
  }
  return bound;
}

Json Cluster::Pod(const std::string& name) const {
  return server.Find(kube::kPods, {"train", name}).value_or(Json());
}

std::vector<Json> Cluster::Pods(const std::string& job) const {
  std::vector<Json> pods;
  for (Json& pod : server.All(kube::kPods)) {
    if (JobOf(pod) == job) pods.push_back(std::move(pod));
  }
  return pods;
}

int Cluster::Released(const std::string& job) const {
  int released = 0;
  for (const Json& pod : Pods(job)) released += extender::ReadPod(pod).gated ? 0 : 1;
  return released;
}

std::optional<crds::Gang> Cluster::GangOf(const std::string& job) const {
  for (const Json& object : server.All(extender::kGangs)) {
    if (kube::StringAt(object, {"spec", "owner", "name"}) != job) continue;
    auto gang = crds::GangFromJson(object);
    EXPECT_TRUE(gang) << (gang ? "" : gang.error().message);
    if (gang) return *std::move(gang);
  }
  return std::nullopt;
}

std::string Cluster::Summary(const std::string& job) const {
  const auto gang = GangOf(job);
  return gang ? crds::Summarise(gang->spec, gang->status) : "";
}

std::vector<std::string> Cluster::Violations() const {
  std::vector<std::string> broken;
  std::map<std::pair<std::string, int>, std::string> taken;
  for (const Json& object : server.All(kube::kPods)) {
    const extender::PodFacts pod = extender::ReadPod(object);
    if (JobOf(object).empty() || pod.gated || !pod.live()) continue;
    if (!pod.plan) {
      broken.push_back(pod.key.name + " was let go without a plan");
      continue;
    }
    for (int gpu = 0; gpu < 32; ++gpu) {
      if ((pod.plan->gpus >> gpu & 1u) == 0) continue;
      const auto [holder, free] = taken.try_emplace({pod.plan->node, gpu}, pod.key.name);
      if (!free) {
        broken.push_back(holder->second + " and " + pod.key.name + " share GPU " + std::to_string(gpu) +
                         " of " + pod.plan->node);
      }
    }
  }
  return broken;
}

base::Result<kube::HttpResponse> MortalTransport::Do(const kube::HttpRequest& request, std::stop_token stop) {
  const auto lost = [] { return base::Fail(base::Code::kUnavailable, "the process is gone"); };
  if (dead_) return lost();
  auto response = inner_.Do(request, std::move(stop));
  const bool write = request.method != "GET" && !request.target.ends_with("/events");
  if (write && request.target.find("/events") == std::string::npos && left_.fetch_sub(1) == 1) dead_ = true;
  if (dead_) return lost();
  return response;
}

base::Result<kube::HttpResponse> MortalTransport::Stream(const kube::HttpRequest& request,
                                                         const kube::ChunkReader& on_chunk,
                                                         std::stop_token stop) {
  if (dead_) return base::Fail(base::Code::kUnavailable, "the process is gone");
  return inner_.Stream(
      request, [&](std::string_view chunk) { return !dead_ && on_chunk(chunk); }, std::move(stop));
}

RunningExtender::RunningExtender(Cluster& cluster, kube::HttpTransport& transport, extender::Mode mode,
                                 bool preemption, int spares, int releases_at_once)
    : cluster_(cluster),
      client_(transport, cluster.clock, {.field_manager = "heddle-extender"}),
      controller_(client_, cluster.clock, base::Random(7), metrics_,
                  {.mode = mode,
                   .preemption = preemption,
                   .spares = spares,
                   .releases_at_once = releases_at_once,
                   .log =
                       [](std::string_view line) {
                         if (getenv("HEDDLE_TEST_LOG") != nullptr)
                           std::fprintf(stderr, "%.*s\n", int(line.size()), line.data());
                       }}),
      thread_([this](std::stop_token stop) { controller_.Run(stop); }) {
  controller_.SetLeading(true);
}

RunningExtender::~RunningExtender() {
  thread_.request_stop();
  thread_.join();
}

bool RunningExtender::Until(const std::function<bool()>& condition, std::chrono::seconds limit) {
  const auto end = cluster_.clock.Now() + limit;
  while (!condition()) {
    if (cluster_.clock.Now() >= end) return false;
    // Real time for what runs at once, then virtual time for what waits.
    if (cluster_.server.WaitUntil(condition, std::chrono::milliseconds(5))) return true;
    cluster_.clock.Advance(std::chrono::milliseconds(100));
  }
  return true;
}

void RunningExtender::Pass(std::chrono::seconds time) {
  const auto end = cluster_.clock.Now() + time;
  while (cluster_.clock.Now() < end) {
    cluster_.clock.Advance(std::chrono::milliseconds(500));
    (void)cluster_.server.WaitUntil([] { return false; }, std::chrono::milliseconds(2));
  }
}

void WaitUntilKnown(Cluster& cluster, RunningExtender& extender, const std::string& pod) {
  const std::string uid = kube::Uid(cluster.Pod(pod));
  for (int i = 0; i < 5000 && !extender.controller().KnowsGangPod(uid); ++i)
    (void)cluster.server.WaitUntil([] { return false; }, std::chrono::milliseconds(2));
}

int PlansRefused(RunningExtender& extender) {
  const std::string text = extender.controller().MetricsText();
  const std::string name = "heddle_extender_plans_total{outcome=\"refused\"} ";
  const std::size_t at = text.find(name);
  return at == std::string::npos ? 0 : std::stoi(text.substr(at + name.size()));
}

RepairAmidst::RepairAmidst(Cluster& cluster, RunningExtender& extender)
    : cluster_(cluster), extender_(extender), job_uid_(cluster.Submit(RepairedJob())) {
  EXPECT_TRUE(extender.Until([&] {
    cluster.BindReleased();
    return cluster.Summary("runs").starts_with("Running");
  })) << cluster.Summary("runs");
  const std::string node = kube::StringAt(cluster.Pod("runs-1"), {"spec", "nodeName"});
  if (node.empty()) return;  // it does not run, as was said
  cluster.server.Edit(kube::kNodes, {"", node}, [](Json& object) { object["spec"]["unschedulable"] = true; });
  EXPECT_TRUE(extender.Until([&] { return extender.controller().current()->Unusable(node) == "Cordoned"; }));
}

void RepairAmidst::Begin() {
  cluster_.server.Remove(kube::kPods, {"train", "runs-1"});
  cluster_.PutPod(RepairedJob(), job_uid_, 1);
  WaitUntilKnown(cluster_, extender_, "runs-1");
}

void RepairAmidst::ExpectPlannedBeforeTheLast(const std::function<bool(const ApiRequest&)>& other) const {
  const std::string gang = cluster_.GangOf("runs")->name;
  std::size_t at = 0, repaired = 0, last = 0;  // from 1
  for (const ApiRequest& request : cluster_.server.requests()) {
    ++at;
    if (other(request)) last = at;
    const bool new_plan = request.Line().starts_with("PUT gangs/status") && request.key.name == gang &&
                          request.body.find("\"epoch\":2") != std::string::npos;
    if (new_plan && repaired == 0) repaired = at;
  }
  EXPECT_GT(repaired, 0u);
  EXPECT_LT(repaired, last) << "it did not wait for the rest";
}

}  // namespace heddle::test
