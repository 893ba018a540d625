// Assembling the Fabric from all nodes, as the operator does on every change of one.
// build/release/bin/topology_bench --benchmark_repetitions=5
#include <benchmark/benchmark.h>

#include <string>

#include "topology/synthetic.h"

namespace heddle::topology {
namespace {

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

}  // namespace
}  // namespace heddle::topology
