// Both ends of every cable of a fabric, as the operator compares them on each reading of a switch: ports share settings.
// build/release/bin/lossless_bench --benchmark_repetitions=5
#include <benchmark/benchmark.h>

#include <vector>

#include "lossless/cable_compare.h"
#include "lossless/lint.h"
#include "lossless/switch_render.h"

namespace heddle::lossless {
namespace {

PortSettings Host() {
  PortSettings settings = SubjectOf("policy", *Resolve({})).settings;
  settings.marking.reset();
  return settings;
}

// So many cables; of hosts and of leaves there are so many kinds, which differ in their MTU.
std::vector<Cable> Cables(SettingsPool& pool, int count, int kinds) {
  PortSettings leaf = RenderSwitchPort(*Resolve({}), *FindSwitchProfile("sonic/v1"), {}).settings;
  leaf.buffer_bytes.emplace().fill(kNotSaid);
  (*leaf.buffer_bytes)[3] = 165'888;
  leaf.lossless_queues = PrioritySet{3};
  std::vector<Cable> cables;
  for (int i = 0; i < count; ++i) {
    PortSettings there = leaf, here = Host();
    there.mtu = 9216 - i % kinds;
    here.mtu = 9000 - i % kinds;
    Cable cable;
    cable.host.settings = pool.Intern(here);
    cable.leaf.settings = pool.Intern(there);
    cable.host.speed_mbps = cable.leaf.speed_mbps = 400'000;
    cable.host.link_up = true;
    cable.rail = i % 8;
    cables.push_back(cable);
  }
  return cables;
}

void Compare(benchmark::State& bench) {
  SettingsPool pool;
  const std::vector<Cable> cables = Cables(pool, int(bench.range(0)), int(bench.range(1)));
  for (auto _ : bench) benchmark::DoNotOptimize(CompareCables(pool, cables));
  bench.counters["outcomes"] = double(CompareCables(pool, cables).outcomes.size());
}
BENCHMARK(Compare)
    ->ArgNames({"cables", "kinds"})
    ->Args({1024, 1})
    ->Args({16'384, 1})
    ->Args({16'384, 16})
    ->Args({16'384, 256})
    ->Unit(benchmark::kMillisecond);

// What whoever reads a switch pays once for each port that it read.
void Intern(benchmark::State& bench) {
  SettingsPool pool;
  const PortSettings host = Host();
  for (auto _ : bench) benchmark::DoNotOptimize(pool.Intern(host));
}
BENCHMARK(Intern)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace heddle::lossless
