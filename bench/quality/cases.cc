#include "bench/quality/cases.h"

#include "bench/growth/clock.h"

namespace heddle::quality {

using placement::ClusterState;
using placement::GangRequest;

namespace {

// One fabric a shape, its units unequal in the same way for all seeds: seeds draw the jobs.
constexpr std::uint64_t kFabricSeed = 20261121;

void PlaceByAll(ClusterState& state, const GangRequest& request, Case& like, std::vector<Case>& out) {
  base::Random random(like.seed * 1000 + std::uint64_t(like.gang));
  for (const Policy policy : kPolicies) {
    like.policy = policy;
    const double start = growth::Micros(growth::Clock::kThread);
    const peers::Assignment pods = Place(policy, state, request, random);
    like.micros = growth::Micros(growth::Clock::kThread) - start;
    like.placed = pods.has_value();
    like.measures = pods ? Measure(state, request, *pods) : Measures{};
    out.push_back(like);
  }
}

}  // namespace

Survey FullSurvey() {
  Survey survey;
  for (const int nodes : {4000, 8000, 16'000}) {
    for (const int unit : {16, 32}) survey.shapes.push_back({nodes, unit, 100, 16, false});
  }
  return survey;
}

Survey QuickSurvey() {
  Survey survey;
  survey.shapes = {{4000, 16, 100, 16, false}, {8000, 32, 100, 16, false}};
  survey.seeds = 3;
  return survey;
}

std::vector<Case> Run(const Survey& survey, peers::Ties ties) {
  std::vector<Case> out;
  for (peers::ClusterShape shape : survey.shapes) {
    // The same nodes under every oversubscription, so that a seed's jobs are the same on all.
    std::vector<std::shared_ptr<const topology::Fabric>> fabrics;
    for (const int percent : survey.oversubscriptions) {
      shape.oversubscription_percent = percent;
      fabrics.push_back(peers::MakeFabric(shape, kFabricSeed));
    }
    for (int seed = 1; seed <= survey.seeds; ++seed) {
      peers::Churn churn(*fabrics.front(), ties, std::uint64_t(seed));
      for (const int fill : survey.fills) {
        churn.RunAt(fill);
        for (std::size_t f = 0; f < fabrics.size(); ++f) {
          shape.oversubscription_percent = survey.oversubscriptions[f];
          ClusterState state(fabrics[f], churn.nodes());
          for (const int gang : survey.gangs) {
            Case like{ties, shape, fill, gang, std::uint64_t(seed), {}, false, {}, 0};
            PlaceByAll(state, peers::RequestOf(gang, survey.gpus_per_pod), like, out);
          }
        }
      }
    }
  }
  return out;
}

}  // namespace heddle::quality
