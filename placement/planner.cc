#include "placement/planner.h"

#include <algorithm>
#include <bit>

#include "placement/explanation.h"
#include "placement/gang_classes.h"
#include "placement/pricing.h"
#include "placement/search.h"

namespace heddle::placement {
namespace {

using topology::kNone;
using topology::NodeId;

Decision Decide(ClusterState& state, const GangRequest& request, const std::vector<PodPlacement>& hints) {
  if (std::string why = WhyBadRequest(state.fabric(), request); !why.empty()) {
    return Refusal{RefusalReason::kBadRequest, std::move(why), {}};
  }
  std::vector<Requirement> require = EffectiveRequirements(request);
  SearchResult result = FindPlace(state, request, require, hints);
  if (!result.found) return Refuse(state, request, result);
  // Each preference that can be had beside those before it is had; none refuses.
  std::vector<Requirement> missed;
  for (const Requirement& preference : request.prefer) {
    if (std::find(require.begin(), require.end(), preference) != require.end()) continue;
    require.push_back(preference);
    if (!FirstBroken(state.dense(), request, ClassesOf(request, require), result.found->pods)) continue;
    SearchResult preferred = FindPlace(state, request, require, hints);
    if (preferred.found) {
      result = std::move(preferred);
    } else {
      missed.push_back(preference);
      require.pop_back();
    }
  }
  const GangClasses classes = ClassesOf(request, require);
  Plan plan;
  plan.substitutes = Substitutes(state, request, classes, result.found->pods);
  plan.explanation = Explain(state, request, *result.found, missed);
  plan.pods = std::move(result.found->pods);
  plan.quality = result.found->quality;
  return plan;
}

}  // namespace

Decision PlanGang(ClusterState& state, const GangRequest& request) {
  return Decide(state, request, {});
}

Quality Evaluate(const ClusterState& state, const GangRequest& request,
                 const std::vector<PodPlacement>& pods) {
  if (!WhyBadRequest(state.fabric(), request).empty() || pods.size() != request.pods.size()) return {};
  for (std::size_t p = 0; p < pods.size(); ++p) {
    const auto& [node, gpus] = pods[p];
    if (request.pods[p].gpus == 0) continue;
    if (node < 0 || std::size_t(node) >= state.fabric().nodes.size()) return {};
    if (std::popcount(gpus) != request.pods[p].gpus || int(std::bit_width(gpus)) > state.dense().gpus(node))
      return {};
  }
  return Pricing(state, request).Price(pods);
}

Decision RepairGang(ClusterState& state, const GangRequest& request, const std::vector<PodPlacement>& current,
                    const std::vector<int>& lost) {
  if (current.size() != request.pods.size()) {
    return Refusal{RefusalReason::kBadRequest, "the gang's pods and their places differ in number", {}};
  }
  std::vector<char> moves(current.size(), 0);
  for (int pod : lost) {
    if (pod < 0 || std::size_t(pod) >= current.size()) {
      return Refusal{RefusalReason::kBadRequest, "a lost pod is not of this gang", {}};
    }
    moves[std::size_t(pod)] = 1;
  }
  GangRequest around = request;
  for (std::size_t p = 0; p < current.size(); ++p) {
    around.pods[p].fixed_node.reset();
    around.pods[p].fixed_gpus.reset();
    if (moves[p] || current[p].node == kNone) continue;
    around.pods[p].fixed_node = current[p].node;
    around.pods[p].fixed_gpus = current[p].gpus;
  }
  return Decide(state, around, current);
}

std::vector<int> ScoreLonePod(const ClusterState& state, int gpus, const std::vector<NodeId>& candidates) {
  std::vector<int> scores;
  scores.reserve(candidates.size());
  for (NodeId node : candidates) {
    if (node < 0 || std::size_t(node) >= state.fabric().nodes.size() || state.free_gpus(node) < gpus) {
      scores.push_back(0);
      continue;
    }
    // A domain that is broken already comes before a whole one; in it the tightest node, then the fullest
    // domain.
    const topology::DomainId domain = state.fabric().nodes[std::size_t(node)].domain;
    const int left = state.free_gpus(node) - gpus;
    const int size = std::max(1, state.dense().gpus(node));
    const bool whole = domain != kNone && state.domain_is_whole(domain);
    int score = (whole ? 10 : 50) + 30 * (size - left) / size;
    if (domain != kNone && !whole) {
      const int all = std::max(1, state.fabric().domains[std::size_t(domain)].gpus);
      score += 20 * (all - state.free_gpus_in_domain(domain)) / all;
    }
    scores.push_back(std::clamp(score, 1, 100));
  }
  return scores;
}

}  // namespace heddle::placement
