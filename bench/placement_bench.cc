// Planning time for a gang out of a fabric twice its size, of which other jobs hold a seeded tenth of the
// nodes. build/release/bin/placement_bench --benchmark_repetitions=5
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <variant>
#include <vector>

#include "base/random.h"
#include "bench/fabrics.h"
#include "placement/planner.h"
#include "placement/preemption.h"
#include "placement/pricing.h"

namespace heddle::placement {
namespace {

using bench::FabricOfNodes;
using bench::Gang;
using bench::kSeed;
using bench::Occupied;

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
    ->Args({1024, 131072, 8})
    ->Args({16384, 32768, 8})
    ->Args({16384, 32768, 4})
    ->Args({16384, 131072, 8})
    ->Args({131072, 131072, 8})
    ->Unit(benchmark::kMicrosecond);

void RefuseOne(benchmark::State& bench) {
  const int world = int(bench.range(0));
  const auto fabric = FabricOfNodes(2 * world / 8);
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
  for (auto _ : bench) {
    ClusterState state(fabric, Occupied(*fabric, 10));
    benchmark::DoNotOptimize(state.whole_domains());
  }
}
BENCHMARK(MakeState)->ArgName("nodes")->Arg(32)->Arg(256)->Arg(4096)->Unit(benchmark::kMicrosecond);

void TakeAndFree(benchmark::State& bench) {
  const auto fabric = FabricOfNodes(4096);
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
