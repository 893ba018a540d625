// Making nodes from a line, and assembling the Fabric from all nodes, as the operator does on every change of one.
// build/release/bin/topology_bench --benchmark_repetitions=5
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>

#include <fstream>
#include <optional>
#include <string>

#include "base/random.h"
#include "topology/synthetic.h"

namespace heddle::topology {
namespace {

// The kernel's peak of this process, from now on: "5" resets it (proc(5), clear_refs).
void ResetPeak() {
  malloc_trim(0);  // what an earlier benchmark freed is not of this one
  std::ofstream("/proc/self/clear_refs") << "5";
}
double PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) / 1024;  // it is in KiB
}

void AssembleFabric(benchmark::State& bench) {
  const auto synthetic = ParseSynthetic("su:" + std::to_string(bench.range(0) / 32) + " node:32");
  if (!synthetic) return bench.SkipWithError("no nodes");
  for (auto _ : bench) {
    auto nodes =
        synthetic->nodes;  // BuildFabric keeps them; the operator's copy from its cache is part of the work
    benchmark::DoNotOptimize(BuildFabric(std::move(nodes), synthetic->declaration));
  }
}
BENCHMARK(AssembleFabric)
    ->ArgName("nodes")
    ->Arg(32)
    ->Arg(512)
    ->Arg(4096)
    ->Arg(16384)
    ->Unit(benchmark::kMillisecond);

// Three tiers: pods of 20 units of 25 nodes, 8 GPUs and 8 NICs each.
std::string PodsOf(std::int64_t nodes) {
  return fmt::format("pod:{} su:20 node:25 spine:8 core:16", nodes / 500);
}

void MakeNodes(benchmark::State& bench) {
  const std::string line = PodsOf(bench.range(0));
  ResetPeak();
  std::optional<base::Result<Synthetic>> made;
  for (auto _ : bench) {
    made.emplace(ParseSynthetic(line));
    bench.PauseTiming();
    made.reset();
    bench.ResumeTiming();
  }
  bench.counters["peak_MB"] = PeakMegabytes();
  bench.SetComplexityN(bench.range(0));
}

// The nodes are handed over; to copy them and to free the fabric is not in the time.
// `fabric_MB` is what the fabric and its making take beside the nodes it was given.
void BuildLargeFabric(benchmark::State& bench, bool shuffled) {
  auto synthetic = ParseSynthetic(PodsOf(bench.range(0)));
  if (!synthetic) return bench.SkipWithError("no nodes");
  base::Random random(1);
  for (std::size_t i = synthetic->nodes.size(); shuffled && i > 1; --i) {
    std::swap(synthetic->nodes[i - 1], synthetic->nodes[random.Below(i)]);
  }
  double nodes_only = 0;
  std::optional<Fabric> fabric;
  for (auto _ : bench) {
    bench.PauseTiming();
    fabric.reset();
    auto nodes = synthetic->nodes;
    ResetPeak();
    nodes_only = PeakMegabytes();
    bench.ResumeTiming();
    fabric.emplace(BuildFabric(std::move(nodes), synthetic->declaration));
  }
  bench.counters["fabric_MB"] = PeakMegabytes() - nodes_only;
  bench.counters["peak_MB"] = PeakMegabytes();
  bench.SetComplexityN(bench.range(0));
}

void Large(benchmark::internal::Benchmark* bench) {
  bench->ArgName("nodes")->Arg(12'500)->Arg(25'000)->Arg(50'000)->Arg(100'000);
  bench->Unit(benchmark::kMillisecond)->Complexity(benchmark::oN);
}
BENCHMARK(MakeNodes)->Apply(Large);
BENCHMARK_CAPTURE(BuildLargeFabric, sorted, false)->Apply(Large);
BENCHMARK_CAPTURE(BuildLargeFabric, shuffled, true)->Apply(Large);

}  // namespace
}  // namespace heddle::topology
