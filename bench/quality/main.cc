// How good the planner's places are beside those of the peers' class of algorithm, as tables:
//   build/release/bin/quality_bench [--quick]
// docs/placement.md says what the columns are. Times to plan are of this machine; all else is the same on any.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>

#include "bench/quality/cases.h"
#include "bench/quality/tables.h"

namespace heddle::quality {
namespace {

std::string_view NameOf(peers::Ties ties) {
  return ties == peers::Ties::kByLot ? "free nodes scattered (equal nodes were chosen by lot)"
                                     : "free nodes together (equal nodes were chosen by name)";
}

void PrintLives(bool quick) {
  LifeShape shape;
  shape.ticks = quick ? 2000 : 6000;
  const int seeds = quick ? 1 : 5;
  fmt::print(
      "\n### One policy places everything\n\nAbout {} nodes in units of {}, 2:1, {} jobs come, offered load "
      "{} %, "
      "seeds 1 to {}.\n\n",
      shape.cluster.nodes, shape.cluster.unit, shape.ticks, shape.load_percent, seeds);
  fmt::print(
      "| policy | refused | nodes whole | units whole | gangs at the end | network ms, mean | by GPU | leaf "
      "crossings a "
      "GPU |\n|---|---|---|---|---|---|---|---|\n");
  for (const Policy policy : kPolicies) {
    Life sum;
    for (int seed = 1; seed <= seeds; ++seed) {
      const Life life = Live(policy, shape, std::uint64_t(seed));
      sum.refused += life.refused;
      sum.whole_domains += life.whole_domains / seeds;
      sum.whole_units += life.whole_units / seeds;
      sum.running_gangs += life.running_gangs;
      sum.network_ms += life.network_ms / seeds;
      sum.network_ms_by_gpu += life.network_ms_by_gpu / seeds;
      sum.crossings_per_gpu += life.crossings_per_gpu / seeds;
    }
    fmt::print("| {} | {} | {:.0f} | {:.1f} | {} | {:.1f} | {:.1f} | {:.2f} |\n", PolicyName(policy),
               sum.refused, sum.whole_domains, sum.whole_units, sum.running_gangs, sum.network_ms,
               sum.network_ms_by_gpu, sum.crossings_per_gpu);
    std::fflush(stdout);
  }
}

void PrintAll(bool quick) {
  const Survey survey = quick ? QuickSurvey() : FullSurvey();
  for (const peers::Ties ties : {peers::Ties::kByLot, peers::Ties::kByName}) {
    const std::vector<Case> cases = Run(survey, ties);
    fmt::print("\n### One gang, {}\n\n{} states and gangs, seeds 1 to {}.\n", NameOf(ties),
               cases.size() / kPolicies.size(), survey.seeds);
    PrintByGang(cases);
    fmt::print(
        "\nPredicted network time in ms, and in brackets the geometric mean of its ratio to Heddle's:\n");
    PrintNetworkTime(cases);
    fmt::print("\nPredicted step communication, state by state:\n");
    PrintWhereAPeerIsBetter(cases);
    std::fflush(stdout);
  }
  Survey small_pods = survey;
  small_pods.shapes = {{4000, 16, 100, 16, false}};
  small_pods.oversubscriptions = {200};
  small_pods.gangs = {128, 512};
  small_pods.gpus_per_pod = 4;
  fmt::print("\n### Pods of 4 GPUs, tp 8, free nodes scattered\n");
  PrintSplitGroups(Run(small_pods, peers::Ties::kByLot));
  Survey racks = survey;
  racks.shapes = {{4000, 18, 100, 16, true}};
  if (!quick) racks.shapes.push_back({16'000, 18, 100, 16, true});
  racks.oversubscriptions = {100, 200};
  racks.gpus_per_pod = 4;
  for (const peers::Ties ties : {peers::Ties::kByLot, peers::Ties::kByName}) {
    fmt::print("\n### NVL72 racks (a unit is a rack of up to 18 trays of 4 GPUs), pods of 4 GPUs, tp 8, {}\n",
               NameOf(ties));
    PrintSplitGroups(Run(racks, ties));
  }
  PrintLives(quick);
}

}  // namespace
}  // namespace heddle::quality

int main(int argc, char** argv) {
  heddle::quality::PrintAll(argc > 1 && std::strcmp(argv[1], "--quick") == 0);
}
