#include "placement/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "placement/constants.h"
#include "placement/explanation.h"
#include "placement/gang_classes.h"
#include "placement/pricing.h"
#include "placement/search.h"
#include "placement/spares.h"

namespace heddle::placement {
namespace {

using topology::kNone;
using topology::NodeId;

// Whether a pod of several GPUs gets one whose NVLinks carry less than they should, wherever it lies on the node.
bool MeetsSlowNvlink(const ClusterState& state, NodeId id, int gpus) {
  const topology::Node& node = state.fabric().nodes[std::size_t(id)].node;
  const topology::NvLink& nvlink = node.nvlink;
  if (gpus < 2 || nvlink.exceptions.empty()) return false;
  const int all = nvlink.gbps_per_gpu > 0 ? nvlink.gbps_per_gpu : kUnknownNvlinkGbps;
  int sound = 0;
  for (std::uint32_t open = state.open_gpus(id); open != 0; open &= open - 1) {
    const auto gpu = std::size_t(std::countr_zero(open));
    if (gpu < node.gpus.size() && nvlink.usable_gbps(node.gpus[gpu].index, all) >= all) ++sound;
  }
  return sound < gpus;
}

struct Search {
  std::vector<Requirement> require;  // with the preferences that can be had
  std::vector<Requirement> missed;
  SearchResult result;
};

// Each preference that can be had beside those before it is had; none refuses.
Search FindPreferred(ClusterState& state, const GangRequest& request,
                     const std::vector<PodPlacement>& hints) {
  Search search{EffectiveRequirements(request), {}, {}};
  search.result = FindPlace(state, request, search.require, hints);
  if (!search.result.found) return search;
  std::vector<Requirement>& require = search.require;
  std::vector<Requirement> prefer = request.prefer;
  // Who allows tp to leave its NVLink domain does not wish it to, unless that is faster.
  const Requirement kept{Axis::kTp, Level::kNvlink};
  const bool unsaid = std::find(prefer.begin(), prefer.end(), kept) == prefer.end();
  if (unsaid && request.parallelism.tp > 1) prefer.insert(prefer.begin(), kept);
  for (const Requirement& preference : prefer) {
    if (std::find(require.begin(), require.end(), preference) != require.end()) continue;
    require.push_back(preference);
    if (!FirstBroken(state.dense(), request, ClassesOf(request, require), search.result.found->pods))
      continue;
    SearchResult preferred = FindPlace(state, request, require, hints);
    const bool implied = unsaid && preference == kept;
    const std::int64_t as_fast = AsFast(search.result.found->quality.step_micros);
    const bool slower = preferred.found && preferred.found->quality.step_micros > as_fast;
    if (preferred.found && !(implied && slower)) {
      search.result = std::move(preferred);
    } else {
      if (!implied) search.missed.push_back(preference);
      require.pop_back();
    }
  }
  return search;
}

Decision Decide(ClusterState& state, const GangRequest& request, const std::vector<PodPlacement>& hints) {
  if (std::string why = WhyBadRequest(state.fabric(), request); !why.empty()) {
    return Refusal{RefusalReason::kBadRequest, std::move(why), {}};
  }
  const int spares = SparesLeftBy(request);
  Search search;
  {
    const SparesHeld held(state, spares);
    search = FindPreferred(state, request, hints);
    if (!search.result.found) {
      Refusal refusal = Refuse(state, request, search.result);
      if (spares > 0 && state.dense().domains_span_nodes()) {
        refusal.sentence += fmt::format("; {} of each NVLink domain over several nodes {} kept as spares",
                                        spares == 1 ? "1 free node" : fmt::format("{} free nodes", spares),
                                        spares == 1 ? "is" : "are");
      }
      return refusal;
    }
  }
  Found& found = *search.result.found;
  // Spares are substitutes too, and a domain that only spares were held in is whole.
  if (spares > 0) found.quality = Pricing(state, request).Price(found.pods);
  // A preference that the first answer met already is not in the classes of its search.
  const GangClasses classes = search.result.classes.require == search.require
                                  ? std::move(search.result.classes)
                                  : ClassesOf(request, search.require);
  Plan plan;
  plan.substitutes = FindSubstitutes(state, request, classes, found.pods);
  plan.explanation = Explain(state, request, found, search.missed);
  const auto in_rack = [&](const PodPlacement& pod) {
    const auto domain = pod.node == kNone ? kNone : state.dense().domain(pod.node);
    return domain != kNone && state.fabric().domains[std::size_t(domain)].nodes.size() > 1;
  };
  if (spares > 0 && std::any_of(found.pods.begin(), found.pods.end(), in_rack)) {
    plan.explanation.push_back(
        fmt::format("spare nodes that stay free in every NVLink domain used: {}", spares));
  }
  plan.quality = found.quality;
  plan.pods = std::move(found.pods);
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
    if (std::popcount(gpus) != request.pods[p].gpus) return {};
    if (gpus == 0) continue;
    if (node < 0 || std::size_t(node) >= state.fabric().nodes.size()) return {};
    if (int(std::bit_width(gpus)) > state.dense().gpus(node)) return {};
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

std::vector<int> ScoreLonePod(const ClusterState& state, int gpus, const std::vector<NodeId>& candidates,
                              int spares) {
  std::vector<char> spare(state.fabric().nodes.size(), 0);
  for (const topology::NvlinkDomain& domain : state.fabric().domains) {
    for (const NodeId node : SparesOf(state, domain, spares)) spare[std::size_t(node)] = 1;
  }
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
    if (MeetsSlowNvlink(state, node, gpus)) score /= 2;
    // Below 5, which a scheduler's eleven steps round to none.
    if (spare[std::size_t(node)] != 0) score /= 25;
    scores.push_back(std::clamp(score, 1, 100));
  }
  return scores;
}

}  // namespace heddle::placement
