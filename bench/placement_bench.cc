// Planning time for a gang out of a fabric twice its size, of which other jobs hold a seeded tenth of the
// nodes. build/release/bin/placement_bench --benchmark_repetitions=5
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/random.h"
#include "placement/planner.h"
#include "placement/preemption.h"
#include "placement/pricing.h"
#include "topology/synthetic.h"

namespace heddle::placement {
namespace {

constexpr std::uint64_t kSeed = 20261121;

std::shared_ptr<const topology::Fabric> FabricOfNodes(int nodes) {
  const int units = (nodes + 15) / 16;
  const std::string line = "su:" + std::to_string(units) +
                           " node:16 gpu:8 nic:8 rail:8 spine:8 rate:400 transport:ib machine:h100";
  auto synthetic = topology::ParseSynthetic(line);
  if (!synthetic) return nullptr;
  return std::make_shared<const topology::Fabric>(
      topology::BuildFabric(std::move(synthetic->nodes), synthetic->declaration));
}

// One node in ten is taken whole and one in ten by half: fragments, as a busy cluster has them.
std::vector<NodeState> Occupied(const topology::Fabric& fabric, int percent) {
  base::Random random(kSeed);
  std::vector<NodeState> nodes(fabric.nodes.size());
  for (NodeState& node : nodes) {
    const auto draw = int(random.Below(100));
    node.free_gpus = draw < percent ? 0 : draw < 2 * percent ? 0x0f : 0xff;
    node.free_milli_cpu = 192'000;
    node.free_memory_bytes = std::int64_t(2) << 40;
    node.free_pods = 110;
  }
  return nodes;
}

GangRequest Gang(int world, int gpus_per_pod) {
  GangRequest request;
  request.parallelism.tp = 8;
  request.parallelism.pp = world >= 1024 ? 8 : 2;
  request.parallelism.dp = world / 8 / request.parallelism.pp;
  PodRequest pod;
  pod.gpus = gpus_per_pod;
  pod.resources.milli_cpu = 8'000;
  request.pods.assign(std::size_t(world / gpus_per_pod), pod);
  return request;
}

// Time of each of many plannings, for the tail that a mean hides.
void ReportPercentiles(benchmark::State& bench, std::vector<double>& micros) {
  std::sort(micros.begin(), micros.end());
  if (micros.empty()) return;
  bench.counters["p50_us"] = micros[micros.size() / 2];
  bench.counters["p99_us"] = micros[micros.size() * 99 / 100];
  bench.counters["max_us"] = micros.back();
}

void PlanOne(benchmark::State& bench) {
  const int world = int(bench.range(0)), all = int(bench.range(1));
  const auto fabric = FabricOfNodes(all / 8);
  if (fabric == nullptr) return bench.SkipWithError("no fabric");
  ClusterState state(fabric, Occupied(*fabric, world == all ? 0 : 10));
  const GangRequest request = Gang(world, int(bench.range(2)));
  std::int64_t crossings = 0;
  std::vector<double> micros;
  for (auto _ : bench) {
    const auto start = std::chrono::steady_clock::now();
    Decision decision = PlanGang(state, request);
    micros.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    const Plan* plan = std::get_if<Plan>(&decision);
    if (plan == nullptr) return bench.SkipWithError(std::get<Refusal>(decision).sentence.c_str());
    crossings = plan->quality.crossings();
    benchmark::DoNotOptimize(decision);
  }
  ReportPercentiles(bench, micros);
  bench.counters["dp_leaf_crossings"] = double(crossings);
}
BENCHMARK(PlanOne)
    ->ArgNames({"gpus", "of", "gpus_per_pod"})
    ->Args({128, 256, 8})
    ->Args({128, 256, 4})
    ->Args({1024, 2048, 8})
    ->Args({4096, 8192, 8})
    ->Args({16384, 32768, 8})
    ->Args({16384, 32768, 4})
    ->Args({16384, 131072, 8})
    ->Args({131072, 131072, 8})
    ->Unit(benchmark::kMicrosecond);

void RefuseOne(benchmark::State& bench) {
  const int world = int(bench.range(0));
  const auto fabric = FabricOfNodes(2 * world / 8);
  if (fabric == nullptr) return bench.SkipWithError("no fabric");
  ClusterState state(fabric, Occupied(*fabric, 40));
  const GangRequest request = Gang(world, 8);
  for (auto _ : bench) {
    Decision decision = PlanGang(state, request);
    if (std::holds_alternative<Plan>(decision)) return bench.SkipWithError("it fits");
    benchmark::DoNotOptimize(decision);
  }
}
BENCHMARK(RefuseOne)->ArgName("gpus")->Arg(128)->Arg(1024)->Arg(16384)->Unit(benchmark::kMicrosecond);

// Who has to end for a gang of a whole unit: every node is held by somebody, a third by gangs of several
// nodes.
void ChooseVictimsOnAFullCluster(benchmark::State& bench) {
  const int nodes = int(bench.range(0));
  const auto fabric = FabricOfNodes(nodes);
  if (fabric == nullptr) return bench.SkipWithError("no fabric");
  base::Random random(kSeed);
  std::vector<Victim> victims;
  std::vector<NodeState> states = Occupied(*fabric, 0);
  for (int node = 0; node < nodes;) {
    Victim victim;
    for (int left = random.Below(3) == 0 ? 1 + int(random.Below(12)) : 1; left > 0 && node < nodes;
         --left, ++node) {
      victim.holds.push_back({topology::NodeId(node), 0xff, {}});
      states[std::size_t(node)].free_gpus = 0;
    }
    victim.cost = double(victim.holds.size()) * double(1 + random.Below(24));
    victims.push_back(std::move(victim));
  }
  ClusterState state(fabric, std::move(states));
  GangRequest request = Gang(128, 8);
  request.require = {{Axis::kGang, Level::kUnit}};
  VictimChoice choice;
  for (auto _ : bench) choice = ChooseVictims(state, request, victims);
  if (!choice.possible) return bench.SkipWithError("no choice");
  bench.counters["candidates"] = double(victims.size());
  bench.counters["victims"] = double(choice.victims.size());
  bench.counters["trials"] = choice.trials;
}
BENCHMARK(ChooseVictimsOnAFullCluster)->ArgName("nodes")->Arg(256)->Arg(2000)->Unit(benchmark::kMicrosecond);

void MakeState(benchmark::State& bench) {
  const auto fabric = FabricOfNodes(int(bench.range(0)));
  if (fabric == nullptr) return bench.SkipWithError("no fabric");
  for (auto _ : bench) {
    ClusterState state(fabric, Occupied(*fabric, 10));
    benchmark::DoNotOptimize(state.whole_domains());
  }
}
BENCHMARK(MakeState)->ArgName("nodes")->Arg(32)->Arg(256)->Arg(4096)->Unit(benchmark::kMicrosecond);

void TakeAndFree(benchmark::State& bench) {
  const auto fabric = FabricOfNodes(4096);
  if (fabric == nullptr) return bench.SkipWithError("no fabric");
  ClusterState state(fabric, Occupied(*fabric, 0));
  base::Random random(kSeed);
  const Resources resources{8'000, 1 << 30, {}};
  for (auto _ : bench) {
    const auto node = topology::NodeId(random.Below(4096));
    const auto mark = state.Mark();
    state.Take(node, 0x01, resources);
    state.Rollback(mark);
  }
}
BENCHMARK(TakeAndFree);

void EvaluateOne(benchmark::State& bench) {
  const int world = int(bench.range(0));
  const auto fabric = FabricOfNodes(2 * world / 8);
  if (fabric == nullptr) return bench.SkipWithError("no fabric");
  ClusterState state(fabric, Occupied(*fabric, 10));
  const GangRequest request = Gang(world, 8);
  const Decision decision = PlanGang(state, request);
  const Plan* plan = std::get_if<Plan>(&decision);
  if (plan == nullptr) return bench.SkipWithError("refused");
  for (auto _ : bench) benchmark::DoNotOptimize(Evaluate(state, request, plan->pods));
}
BENCHMARK(EvaluateOne)->ArgName("gpus")->Arg(128)->Arg(1024)->Arg(16384)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace heddle::placement
