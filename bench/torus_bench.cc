// Time to place a gang of whole nodes on a 3D torus of which others hold a seeded part, as boxes of the sizes
// that jobs have or as single nodes anywhere. build/release/bin/torus_bench
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/random.h"
#include "placement/planner.h"
#include "placement/torus_search.h"
#include "topology/synthetic.h"

namespace heddle::placement {
namespace {

constexpr std::uint64_t kSeed = 20261121;
constexpr int kSeeds = 20;  // occupations of one case, in turn

std::shared_ptr<const topology::Fabric> CubeOf(int side) {
  static std::map<int, std::shared_ptr<const topology::Fabric>> made;
  auto& fabric = made[side];
  if (fabric == nullptr) {
    const std::string sides = std::to_string(side) + "x" + std::to_string(side) + "x" + std::to_string(side);
    auto synthetic = topology::ParseSynthetic("torus:" + sides + " gpu:4 nic:4 rate:400");
    if (!synthetic) return nullptr;
    fabric = std::make_shared<const topology::Fabric>(
        topology::BuildFabric(std::move(synthetic->nodes), synthetic->declaration));
  }
  return fabric;
}

// `percent` of the nodes taken: one by one, or box by box of 1 to 8 nodes a side.
std::vector<NodeState> Occupied(const topology::Fabric& fabric, int percent, bool boxes, std::uint64_t seed) {
  base::Random random(seed);
  NodeState free;
  free.free_gpus = 0xf;
  free.free_milli_cpu = 192'000;
  free.free_memory_bytes = std::int64_t(2) << 40;
  free.free_pods = 110;
  std::vector<NodeState> nodes(fabric.nodes.size(), free);
  const int side = fabric.declaration.torus_size[0];
  const auto below = [&random](int bound) { return int(random.Below(std::uint64_t(bound))); };
  for (std::int64_t left = std::int64_t(nodes.size()) * percent / 100; left > 0;) {
    const std::array<int, 3> at{below(side), below(side), below(side)};
    const std::array<int, 3> sides =
        boxes ? std::array<int, 3>{1 << below(4), 1 << below(4), 1 << below(4)} : std::array<int, 3>{1, 1, 1};
    for (int i = 0; i < sides[0] * sides[1] * sides[2] && left > 0; ++i) {
      const int x = (at[0] + i % sides[0]) % side, y = (at[1] + i / sides[0] % sides[1]) % side;
      const int z = (at[2] + i / sides[0] / sides[1]) % side;
      NodeState& node = nodes[std::size_t((x * side + y) * side + z)];  // names count z first
      left -= node.free_gpus != 0 ? 1 : 0;
      node.free_gpus = 0;
    }
  }
  return nodes;
}

GangRequest Gang(int nodes) {
  GangRequest request;
  request.parallelism.tp = 4;
  request.parallelism.pp = nodes >= 256 ? 8 : 4;
  request.parallelism.dp = nodes / request.parallelism.pp;
  PodRequest pod;
  pod.gpus = 4;
  pod.resources.milli_cpu = 8'000;
  request.pods.assign(std::size_t(nodes), pod);
  return request;
}

void ReportPercentiles(benchmark::State& bench, std::vector<double>& micros) {
  std::sort(micros.begin(), micros.end());
  if (micros.empty()) return;
  bench.counters["p50_us"] = micros[micros.size() / 2];
  bench.counters["p99_us"] = micros[micros.size() * 99 / 100];
  bench.counters["max_us"] = micros.back();
}

// What the same gang costs on the first free nodes by name.
std::int64_t MicrosByName(const ClusterState& state, const GangRequest& request) {
  std::vector<PodPlacement> pods;
  for (topology::NodeId n = 0; pods.size() < request.pods.size(); ++n) {
    if (state.free_gpus(n) == 4) pods.push_back({n, 0xf});
  }
  return Evaluate(state, request, pods).step_micros;
}

template <class Plan>
void Measure(benchmark::State& bench, const Plan& plan) {
  const int side = int(bench.range(0)), nodes = int(bench.range(1)), percent = int(bench.range(2));
  const auto fabric = CubeOf(side);
  if (fabric == nullptr) return bench.SkipWithError("no fabric");
  std::vector<ClusterState> states;
  states.reserve(kSeeds);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    states.emplace_back(fabric, Occupied(*fabric, percent, bench.range(3) != 0, kSeed + seed));
  }
  const GangRequest request = Gang(nodes);
  std::vector<double> micros;
  double step = 0, by_name = 0;
  int whole = 0;
  std::size_t round = 0;
  for (auto _ : bench) {
    ClusterState& state = states[round++ % kSeeds];
    const auto start = std::chrono::steady_clock::now();
    const auto pods = plan(state, request);
    micros.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    if (pods.empty()) return bench.SkipWithError("no place");
    if (round > kSeeds) continue;
    step += double(Evaluate(state, request, pods).step_micros);
    by_name += double(MicrosByName(state, request));
    const auto slice = SliceOf(*fabric, pods);
    whole += slice && slice->whole() ? 1 : 0;
  }
  ReportPercentiles(bench, micros);
  const auto seen = double(std::min<std::size_t>(round, kSeeds));
  bench.counters["step_ms"] = step / seen / 1000;
  bench.counters["by_name_ms"] = by_name / seen / 1000;
  bench.counters["boxes"] = whole / seen;
}

void PlanOnTorus(benchmark::State& bench) {
  Measure(bench, [](ClusterState& state, const GangRequest& request) {
    Decision decision = PlanGang(state, request);
    const Plan* plan = std::get_if<Plan>(&decision);
    return plan != nullptr ? plan->pods : std::vector<PodPlacement>{};
  });
}
void SearchTorus(benchmark::State& bench) {
  Measure(bench, [](ClusterState& state, const GangRequest& request) {
    const GangClasses classes = ClassesOf(request, EffectiveRequirements(request));
    Pricing pricing(state, request);
    auto place = PlaceOnTorus(state, request, classes, pricing);
    return place ? std::move(place->pods) : std::vector<PodPlacement>{};
  });
}
void Cases(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"side", "nodes", "taken", "boxes"})->Unit(benchmark::kMicrosecond)->Iterations(200);
  for (const int side : {16, 32}) {
    for (const int nodes : {64, 512, 4096}) {
      if (side == 16 && nodes > 1024) continue;
      for (const int taken : {0, 30, 50, 70}) {
        for (const int boxes : {0, 1}) {
          if (taken > 0 || boxes == 1) bench->Args({side, nodes, taken, boxes});
        }
      }
    }
  }
  bench->Args({16, 1000, 30, 1})->Args({32, 4000, 30, 1})->Args({16, 4096, 0, 1});
}
BENCHMARK(SearchTorus)->Apply(Cases);
BENCHMARK(PlanOnTorus)->Apply(Cases);

}  // namespace
}  // namespace heddle::placement
