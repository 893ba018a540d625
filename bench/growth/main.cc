// The planner's speed and memory as clusters and gangs grow, as tables:
//   build/release/bin/growth_bench [--quick]   (--kueue: only Kueue's shape; bench/kueue.py runs Kueue beside it)
// Times are CPU time of the one thread that plans, which a busy machine changes least. Seed 20261121; one node in
// ten is taken whole and one in ten by half unless a row says otherwise.
#include <fmt/format.h>
#include <malloc.h>

#include <cstdio>
#include <cstring>
#include <variant>

#include "base/check.h"
#include "base/random.h"
#include "bench/fabrics.h"
#include "bench/growth/clock.h"
#include "bench/growth/fit.h"
#include "placement/dense.h"
#include "placement/planner.h"

namespace heddle::growth {
namespace {

using bench::FabricOfNodes;
using bench::Gang;
using bench::kSeed;
using bench::KueuesFabric;
using bench::KueuesGang;
using bench::Occupied;
using placement::ClusterState;
using placement::GangRequest;
using placement::Plan;

double Seconds(bool quick) {
  return quick ? 0.2 : 1.0;
}

void Row(std::string_view what, const Times& times) {
  fmt::print("| {} | {:.3f} ms | {:.3f} ms | {:.3f} ms | {} |\n", what, times.p50 / 1000, times.p99 / 1000,
             times.max / 1000, times.runs);
  std::fflush(stdout);
}

Times PlanTimes(ClusterState& state, const GangRequest& request, bool quick, Clock clock = Clock::kThread) {
  return TimeOf(clock, Seconds(quick), 5,
                [&] { CHECK(std::holds_alternative<Plan>(PlanGang(state, request))); });
}

void Fit(std::string_view over, const std::vector<std::pair<double, double>>& points) {
  fmt::print("\nTime grows as {} to the power {:.2f}; N log N would read {:.2f} over these sizes.\n", over,
             Exponent(points), ExponentOfNLogN(points));
}

void GrowthWithNodes(bool quick) {
  fmt::print(
      "\n### A gang of 1,024 GPUs, against nodes\n\n| nodes | p50 | p99 | max | runs "
      "|\n|---|---|---|---|---|\n");
  std::vector<std::pair<double, double>> points;
  for (int nodes = 1024; nodes <= (quick ? 8192 : 65'536); nodes *= 2) {
    const auto fabric = FabricOfNodes(nodes);
    ClusterState state(fabric, Occupied(*fabric, 10));
    const Times times = PlanTimes(state, Gang(1024), quick);
    Row(fmt::format("{}", nodes), times);
    points.emplace_back(nodes, times.p50);
  }
  Fit("nodes", points);
}

void GrowthWithGang(bool quick) {
  const int nodes = quick ? 4096 : 16'384;
  const auto fabric = FabricOfNodes(nodes);
  fmt::print("\n### {} nodes, against the gang\n\n| gang | p50 | p99 | max | runs |\n|---|---|---|---|---|\n",
             nodes);
  std::vector<std::pair<double, double>> points;
  for (int world = 128; world <= nodes * 8; world *= 2) {
    const bool all = world > nodes * 4;  // what is taken leaves room for half
    ClusterState state(fabric, Occupied(*fabric, all ? 0 : 10));
    const Times times = PlanTimes(state, Gang(world), quick);
    Row(fmt::format("{} GPUs{}", world, all ? " (nothing taken)" : ""), times);
    points.emplace_back(world, times.p50);
  }
  Fit("gang", points);
  points.erase(points.begin(), points.begin() + std::ptrdiff_t(points.size() / 2));
  fmt::print("\nThe larger half of them alone:\n");
  Fit("gang", points);
}

void OtherWork(bool quick) {
  const int nodes = quick ? 4096 : 16'384;
  const auto fabric = FabricOfNodes(nodes);
  fmt::print("\n### Other work on {} nodes\n\n| work | p50 | p99 | max | runs |\n|---|---|---|---|---|\n",
             nodes);
  {
    ClusterState state(fabric, Occupied(*fabric, 40));
    const GangRequest request = Gang(nodes * 4);
    Row(fmt::format("refusal with its explanation, {} GPUs", nodes * 4),
        TimeOf(Clock::kThread, Seconds(quick), 5,
               [&] { CHECK(std::holds_alternative<placement::Refusal>(PlanGang(state, request))); }));
    GangRequest one_unit = Gang(256);
    one_unit.require = {{placement::Axis::kGang, placement::Level::kUnit}};
    Row("refusal with its explanation, 256 GPUs in one unit of 128",
        TimeOf(Clock::kThread, Seconds(quick), 5,
               [&] { CHECK(std::holds_alternative<placement::Refusal>(PlanGang(state, one_unit))); }));
  }
  ClusterState busy(fabric, Occupied(*fabric, 10));
  for (const int world : {16, 32, 64})
    Row(fmt::format("a gang of {} GPUs", world), PlanTimes(busy, Gang(world), quick));
  ClusterState state(fabric, Occupied(*fabric, 0));
  const GangRequest whole = Gang(nodes * 8);
  const auto decision = PlanGang(state, whole);
  const Plan* plan = std::get_if<Plan>(&decision);
  CHECK(plan != nullptr);
  std::int64_t micros = 0;
  Row(fmt::format("prediction of one placed job of {} GPUs", nodes * 8),
      TimeOf(Clock::kThread, Seconds(quick), 5,
             [&] { micros += Evaluate(state, whole, plan->pods).step_micros; }));
  CHECK(micros > 0);
}

// Bytes that the program holds, whatever the allocator keeps.
std::size_t Held() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

void LargeState(bool quick) {
  const int nodes = quick ? 16'384 : 100'000;
  const std::size_t nothing = Held();
  const auto fabric = FabricOfNodes(nodes);
  const std::size_t with_fabric = Held();
  auto states = Occupied(*fabric, 10);
  auto state = std::make_unique<ClusterState>(fabric, std::move(states));
  const std::size_t with_state = Held();
  fmt::print("\n### {} nodes, {} GPUs\n\n", nodes, nodes * 8);
  fmt::print("Memory: state {:.1f} MB (ClusterState and its DenseFabric), the Fabric below it {:.0f} MB.\n",
             double(with_state - with_fabric) / 1e6, double(with_fabric - nothing) / 1e6);
  fmt::print("\n| work | p50 | p99 | max | runs |\n|---|---|---|---|---|\n");
  Row("the state made again, with its DenseFabric", TimeOf(Clock::kThread, Seconds(quick), 3, [&] {
        ClusterState again(fabric, Occupied(*fabric, 10));
        CHECK(again.whole_domains() == state->whole_domains());
      }));
  for (const int world : {16, 1024, 16'384, 131'072}) {
    if (world > nodes * 4) continue;
    Row(fmt::format("a gang of {} GPUs", world), PlanTimes(*state, Gang(world), quick));
  }
  if (!quick) Row("a gang of 524,288 GPUs", PlanTimes(*state, Gang(524'288), quick));
  constexpr int kChanges = 1'000'000;
  base::Random random(kSeed);
  const placement::Resources resources{1'000, 1 << 30, {}};
  std::vector<topology::NodeId> order;
  for (int i = 0; i < kChanges; ++i) {
    const auto node = topology::NodeId(random.Below(std::uint64_t(nodes)));
    if ((state->node(node).free_gpus & 1U) != 0) order.push_back(node);
  }
  const Times times = TimeOf(Clock::kThread, Seconds(quick), 3, [&] {
    for (const auto node : order) {
      state->Take(node, 1, resources);
      state->Free(node, 1, resources);
      state->Commit();
    }
  });
  fmt::print("\nOne GPU taken or freed, on random nodes: {:.0f} ns (p50 of {} runs over {} changes).\n",
             times.p50 * 1000 / double(2 * order.size()), times.runs, 2 * order.size());
}

void KueuesBenchmark(bool quick) {
  const auto fabric = KueuesFabric();
  std::vector<placement::NodeState> nodes(fabric->nodes.size());
  for (auto& node : nodes) node = {0xfff, 96'000, std::int64_t(384) << 30, 110, {}, ""};
  ClusterState state(fabric, std::move(nodes));
  fmt::print("\n### 2,304 pods of one gang on 2,500 nodes in blocks of 16 racks of 16\n\n");
  fmt::print("| work | p50 | p99 | max | runs |\n|---|---|---|---|---|\n");
  const GangRequest request = KueuesGang();
  // Wall time, as Go's benchmarks report.
  Row("plan, with ranks ordered and substitutes, wall time", PlanTimes(state, request, quick, Clock::kWall));
  const auto decision = PlanGang(state, request);
  const auto& pods = std::get<Plan>(decision).pods;
  std::vector<char> racks(fabric->units.size(), 0), blocks(64, 0);
  int touched = 0, blocks_touched = 0;
  for (const auto& pod : pods) {
    const auto rack = std::size_t(fabric->nodes[std::size_t(pod.node)].unit);
    const auto block = std::size_t(state.dense().cell(placement::Tier::kSpine, pod.node));
    touched += std::exchange(racks[rack], 1) == 0 ? 1 : 0;
    blocks_touched += std::exchange(blocks[block], 1) == 0 ? 1 : 0;
  }
  fmt::print("\nIt touches {} racks of {} block.\n", touched, blocks_touched);
}

}  // namespace
}  // namespace heddle::growth

int main(int argc, char** argv) {
  const auto said = [&](const char* flag) { return argc > 1 && std::strcmp(argv[1], flag) == 0; };
  const bool quick = said("--quick");
  heddle::growth::KueuesBenchmark(quick);
  if (said("--kueue")) return 0;
  heddle::growth::GrowthWithNodes(quick);
  heddle::growth::GrowthWithGang(quick);
  heddle::growth::OtherWork(quick);
  heddle::growth::LargeState(quick);
}
