// Suspects among the links of a fabric, as the operator ranks them on each reading of a switch.
// build/release/bin/suspects_bench --benchmark_repetitions=5
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <vector>

#include "base/random.h"
#include "topology/suspects.h"

namespace heddle::topology {
namespace {

constexpr int kRails = 8, kHostsOfUnit = 32, kLinksOfGang = 1024;

struct Case {
  std::vector<WatchedLink> links;
  std::vector<GangOnLinks> gangs;
};

// Hosts of eight rails in units of 32, so many of 1,000 links with something against them, every gang on 128 hosts.
Case MakeCase(int links, int gangs, int bad_permille) {
  base::Random random(7);
  Case made;
  for (int i = 0; i < links; ++i) {
    const int host = i / kRails, rail = i % kRails;
    WatchedLink link{fmt::format("gpu-{:05}", host),
                     fmt::format("mlx5_{}:1", rail),
                     fmt::format("su{}-r{}", host / kHostsOfUnit, rail),
                     fmt::format("Ethernet{}", host % kHostsOfUnit * 4),
                     false,
                     {}};
    if (int(random.Below(1000)) < bad_permille) {
      link.sightings.push_back(
          {static_cast<Symptom>(random.Below(5)), random.Below(2) == 0, "41 flaps in 10 min"});
    }
    made.links.push_back(std::move(link));
  }
  for (int i = 0; i < gangs; ++i) {
    GangOnLinks gang{fmt::format("team/{}", i), {}};
    const std::uint64_t first = random.Below(std::uint64_t(links - kLinksOfGang)) / kRails * kRails;
    for (int l = 0; l < kLinksOfGang; ++l) gang.links.push_back(first + std::size_t(l));
    made.gangs.push_back(std::move(gang));
  }
  return made;
}

void Rank(benchmark::State& bench) {
  const Case made = MakeCase(int(bench.range(0)), int(bench.range(1)), int(bench.range(2)));
  for (auto _ : bench) benchmark::DoNotOptimize(RankSuspects(made.links, made.gangs));
  bench.counters["suspects"] = double(RankSuspects(made.links, made.gangs, made.links.size()).size());
}
BENCHMARK(Rank)
    ->ArgNames({"links", "gangs", "bad_permille"})
    ->Args({16'384, 2000, 0})
    ->Args({16'384, 2000, 10})
    ->Args({16'384, 2000, 1000})
    ->Args({16'384, 0, 10})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace heddle::topology
