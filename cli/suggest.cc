#include "cli/suggest.h"

#include <algorithm>
#include <cmath>

#include "cli/fabrics.h"
#include "placement/fabric_choice.h"

namespace heddle::cli {
namespace {

using placement::Axis;
using placement::Level;

// The most GPUs that one TP group may have: an NVLink domain's, unless --require puts tp elsewhere.
int MostTp(const topology::Fabric& fabric, const placement::GangRequest& request) {
  int domain = 1, node = 1;
  for (const topology::NvlinkDomain& one : fabric.domains) domain = std::max(domain, one.gpus);
  for (const topology::FabricNode& one : fabric.nodes) node = std::max(node, int(one.node.gpus.size()));
  for (const placement::Requirement& require : request.require) {
    if (require.axis != Axis::kTp || require.level == Level::kNvlink) continue;
    return require.level == Level::kNode ? node : int(request.parallelism.world());
  }
  return domain;
}

// The slowest and the smallest GPU set the pace: every rank does the same.
void ReadGpus(const topology::Fabric& fabric, SuggestAnswer& answer) {
  bool first = true;
  for (const topology::FabricNode& node : fabric.nodes) {
    for (const topology::Gpu& gpu : node.node.gpus) {
      int& smallest = answer.limits.gpu_memory_gib;
      if (gpu.memory_gib > 0 && (smallest == 0 || gpu.memory_gib < smallest)) smallest = gpu.memory_gib;
      if (!first && gpu.model == answer.gpu_model) continue;
      const double tflops = placement::AchievedTflops(gpu.model);
      if (first || tflops < answer.limits.tflops) {
        answer.limits.tflops = tflops;
        answer.gpu_model = gpu.model;
      }
      first = false;
    }
  }
}

SuggestAnswer AskOn(const Ground& ground, const placement::GangRequest& request, std::int64_t global_batch,
                    bool asked_given) {
  SuggestAnswer answer;
  answer.fabric = Title(*ground.fabric);
  answer.nodes = int(ground.fabric->nodes.size());
  answer.model = request.model;
  answer.asked_given = asked_given;
  ReadGpus(*ground.fabric, answer);
  if (request.model.tflops > 0) answer.limits.tflops = request.model.tflops;
  if (answer.limits.tflops <= 0) answer.limits.tflops = kAssumedTflops;
  answer.limits.world = request.parallelism.world();
  answer.limits.global_batch = global_batch;
  answer.limits.largest_domain = MostTp(*ground.fabric, request);
  placement::Layouts layouts = placement::EnumerateLayouts(request.parallelism, request.model, answer.limits);
  answer.counts = layouts.counts;
  placement::ClusterState state = ground.State();
  // The planner then knows what computation communication can hide behind.
  placement::GangRequest timed = request;
  timed.model.tflops = int(std::lround(answer.limits.tflops));
  answer.found = placement::FindFastest(state, timed, layouts, kMostSuggestions);
  if (asked_given) {
    std::erase_if(layouts.legal, [&](const placement::Layout& layout) {
      return !(layout.parallelism == request.parallelism);
    });
    auto found = placement::FindFastest(state, timed, layouts, 1);
    if (!found.fastest.empty()) answer.given = std::move(found.fastest.front());
  }
  return answer;
}

placement::FabricAnswer Compared(const SuggestAnswer& answer, const Ground& ground) {
  placement::FabricAnswer compared{std::nullopt, ground.fabric->gpu_count()};
  if (!answer.found.fastest.empty()) compared.step_micros = answer.found.fastest.front().step_micros;
  return compared;
}

}  // namespace

SuggestAnswer AskSuggest(const std::vector<Ground>& grounds, const placement::GangRequest& request,
                         std::int64_t global_batch, bool asked_given) {
  std::optional<SuggestAnswer> best;
  placement::FabricAnswer known;
  for (const Ground& ground : grounds) {
    SuggestAnswer answer = AskOn(ground, request, global_batch, asked_given);
    const placement::FabricAnswer compared = Compared(answer, ground);
    if (best && !placement::IsBetter(compared, known)) continue;
    best = std::move(answer);
    known = compared;
  }
  for (placement::Suggestion& suggestion : best->found.fastest) suggestion.plan.pods.clear();
  return *std::move(best);
}

}  // namespace heddle::cli
