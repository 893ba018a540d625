// What the extender does each time it asks whether a gang of so many pods that waits has a place: read what its owner and
// its pods say (Members), and plan it (Plan), here on a cluster of half as many nodes, where it finds none. Its pods
// carry what a training job's do. No sockets.
// build/release/bin/gang_bench
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/published_topology.h"
#include "extender/gang_members.h"
#include "extender/planning.h"
#include "extender/slimming.h"
#include "extender/snapshot.h"

namespace heddle::extender {
namespace {

const GangKey kGang{"team", "job-uid", 0};

kube::Json Owner(int pods) {
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", {{"namespace", kGang.ns}, {"name", "train"}, {"uid", kGang.owner_uid}}},
          {"spec", {{"completions", pods}, {"parallelism", pods}, {"completionMode", "Indexed"}}}};
}

kube::Json Pod(int rank, int pods) {
  kube::Json pod = kube::NewObject(kube::kPods, {kGang.ns, fmt::format("train-{}", rank)});
  pod["metadata"]["uid"] = fmt::format("uid-{}", rank);
  pod["metadata"]["labels"] = {{"batch.kubernetes.io/job-completion-index", std::to_string(rank)},
                               {"batch.kubernetes.io/job-name", "train"},
                               {"batch.kubernetes.io/controller-uid", kGang.owner_uid}};
  pod["metadata"]["annotations"] = {{"heddle.dev/parallelism", fmt::format("tp=8,dp={}", pods)},
                                    {"batch.kubernetes.io/job-completion-index", std::to_string(rank)}};
  pod["metadata"]["ownerReferences"] = kube::Json::array({{{"apiVersion", "batch/v1"},
                                                           {"kind", "Job"},
                                                           {"name", "train"},
                                                           {"uid", kGang.owner_uid},
                                                           {"controller", true}}});
  const kube::Json resources = {{"nvidia.com/gpu", "8"}, {"cpu", "96"}, {"memory", "1Ti"}};
  pod["spec"] = {
      {"schedulerName", "heddle"},
      {"schedulingGates", kube::Json::array({{{"name", "heddle.dev/gang"}}})},
      {"nodeSelector", {{"nvidia.com/gpu.product", "H100"}}},
      {"tolerations", kube::Json::array({{{"key", "nvidia.com/gpu"}, {"operator", "Exists"}}})},
      {"volumes",
       kube::Json::array({{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "dataset"}}}}})},
      {"containers", kube::Json::array({{{"name", "main"},
                                         {"resources", {{"limits", resources}, {"requests", resources}}}}})}};
  pod["status"] = {{"phase", "Pending"}};
  return pod;
}

ReadPods Pods(int count) {
  const auto read = PodReader();
  const Slimming kept = SlimPods(Mode::kPlace);
  ReadPods pods;
  for (int rank = 0; rank < count; ++rank) {
    pods.objects.push_back(std::make_shared<const kube::Json>(kept.transform(Pod(rank, count))));
    pods.facts.push_back(read(*pods.objects.back()));
  }
  return pods;
}

Shared<NodeFacts> Node(const topology::Node& machine) {
  NodeFacts facts;
  facts.name = machine.name;
  facts.labels = {{"kubernetes.io/hostname", machine.name}, {"nvidia.com/gpu.product", "H100"}};
  facts.taints = {{"nvidia.com/gpu", "", "NoSchedule"}};
  facts.ready = true;
  facts.milli_cpu = 192'000;
  facts.memory_bytes = 2LL << 40;
  facts.pods = 110;
  facts.gpus = int(machine.gpus.size());
  facts.gpu_resource = "nvidia.com/gpu";
  return std::make_shared<const NodeFacts>(std::move(facts));
}

Snapshot Cluster(int nodes) {
  const std::vector<topology::Node> machines = bench::Machines(nodes);
  std::vector<Shared<NodeFacts>> facts;
  std::vector<Shared<TopologyFacts>> topologies;
  std::vector<topology::Node> published;
  for (int i = 0; i < nodes; ++i) {
    const crds::NodeTopology object =
        bench::PublishedTopology(fmt::format("node-{:05}", i), machines[std::size_t(i)]);
    topologies.push_back(std::make_shared<const TopologyFacts>(FactsOf(object)));
    published.push_back(object.status.node);
    facts.push_back(Node(object.status.node));
  }
  SnapshotInputs inputs;
  inputs.nodes = std::move(facts);
  inputs.topologies = std::move(topologies);
  inputs.fabrics = std::make_shared<const FabricSet>(AssembleFabrics(std::move(published), {}, {}));
  return TakeSnapshot(inputs);
}

void Members(benchmark::State& bench) {
  const int count = int(bench.range(0));
  const kube::Json owner = Owner(count);
  const ReadPods pods = Pods(count);
  if (ReadMembers(kGang, &owner, pods).refusal) bench.SkipWithError("the gang is refused");
  for (auto round : bench) {
    (void)round;
    benchmark::DoNotOptimize(ReadMembers(kGang, &owner, pods));
  }
}

void Plan(benchmark::State& bench) {
  const int count = int(bench.range(0));
  const kube::Json owner = Owner(count);
  const GangMembers members = ReadMembers(kGang, &owner, Pods(count));
  const Snapshot snapshot = Cluster(count / 2);
  for (auto round : bench) {
    (void)round;
    const PlanAnswer answer = PlanMembers(snapshot, members, {}, Spares::kLeave);
    if (std::holds_alternative<PlannedGang>(answer)) bench.SkipWithError("it has a place");
  }
}

BENCHMARK(Members)->Arg(16)->Arg(1000)->Arg(5000)->Unit(benchmark::kMillisecond);
BENCHMARK(Plan)->Arg(16)->Arg(1000)->Arg(5000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace heddle::extender
