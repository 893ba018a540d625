#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <utility>

#include "placement/embedding.h"
#include "placement/explanation.h"

namespace heddle::placement {
namespace {

using topology::kNone;
using topology::NodeId;

std::string Words(const Requirement& requirement) {
  return fmt::format("{}={}", AxisName(requirement.axis), LevelName(requirement.level));
}

std::string Words(const std::vector<Requirement>& require) {
  std::string out;
  for (std::size_t i = 0; i < require.size(); ++i) {
    out += (i == 0 ? "" : i + 1 == require.size() ? " and " : ", ") + Words(require[i]);
  }
  return out;
}

std::string_view TierPhrase(Tier tier) {
  constexpr std::array<std::string_view, kTierCount> kPhrases{"node",  "NVLink domain", "scalable unit",
                                                              "spine", "site",          "fabric"};
  return kPhrases[std::size_t(tier)];
}

// What a pod may use, now and at best, over the whole fabric.
struct Supply {
  int allowed = 0, usable = 0;     // nodes
  std::int64_t free = 0, all = 0;  // GPUs on allowed nodes
  int largest_node = 0;
  NodeId largest = kNone;
};

std::vector<char> AllowedNodes(const GangRequest& request, const PodRequest& pod, std::size_t nodes) {
  std::vector<char> out(nodes, pod.allowed ? 0 : 1);
  if (!pod.allowed) return out;
  for (NodeId n : request.allowed_nodes[*pod.allowed]) {
    if (n >= 0 && std::size_t(n) < nodes) out[std::size_t(n)] = 1;
  }
  return out;
}

Supply SupplyFor(const ClusterState& state, const std::vector<char>& allowed) {
  Supply supply;
  for (std::size_t n = 0; n < allowed.size(); ++n) {
    if (!allowed[n]) continue;
    const int gpus = state.dense().gpus(NodeId(n));
    ++supply.allowed;
    supply.usable += state.node(NodeId(n)).unusable.empty() ? 1 : 0;
    supply.all += gpus;
    supply.free += state.free_gpus(NodeId(n));
    if (gpus > supply.largest_node) {
      supply.largest_node = gpus;
      supply.largest = NodeId(n);
    }
  }
  return supply;
}

// Says sizes in whole hosts where the gang takes hosts whole, else in GPUs.
class Measure {
 public:
  Measure(const ClusterState& state, const GangRequest& request) {
    for (std::size_t n = 0; n < state.fabric().nodes.size(); ++n) {
      host_ = std::max(host_, state.dense().gpus(NodeId(n)));
    }
    for (const PodRequest& pod : request.pods) whole_ = whole_ && pod.gpus > 0 && host_ % pod.gpus == 0;
    const auto& p = request.parallelism;
    whole_ = whole_ && (request.pods.front().gpus == host_ || p.tp % host_ == 0);
  }
  std::string Needed(std::int64_t gpus) const { return Beside(gpus, 0).needed; }
  // What is needed and what there is for it, both in one measure: half a host is said in GPUs.
  struct Sizes {
    std::string needed;
    std::int64_t found = 0;
  };
  Sizes Beside(std::int64_t needed, std::int64_t found) const {
    const bool hosts = Hosts(needed) && Hosts(found);
    const std::int64_t size = hosts ? needed / host_ : needed;
    return {fmt::format("{} {}{}", size, hosts ? "host" : "GPU", size == 1 ? "" : "s"),
            hosts ? found / host_ : found};
  }

 private:
  bool Hosts(std::int64_t gpus) const { return whole_ && gpus % host_ == 0; }
  int host_ = 0;
  bool whole_ = true;
};

struct Miss {
  Tier tier = Tier::kRoot;
  std::int64_t needed = 0, fit = 0;  // classes of the tier
  std::int64_t class_gpus = 0;
  std::int32_t best = kNone;  // the cell that comes nearest to one class
  std::int64_t best_gpus = 0;
};

// The finest tier whose classes do not all find a cell. Requires: !embedding.fits().
Miss FirstMiss(const ClusterState& state, const GangClasses& classes, const Embedding& embedding) {
  const DenseFabric& dense = state.dense();
  for (int t = 0; t < kTierCount; ++t) {
    const auto& sizes = classes.pods[std::size_t(t)];
    const auto sample = std::size_t(std::max_element(sizes.begin(), sizes.end()) - sizes.begin());
    Miss miss;
    miss.tier = Tier(t);
    miss.needed = std::count_if(sizes.begin(), sizes.end(), [](int size) { return size > 0; });
    miss.class_gpus = classes.gpus[std::size_t(t)][sample];
    for (std::int32_t cell = 0; cell < dense.cells(Tier(t)); ++cell) {
      miss.fit += embedding.capacity(Tier(t), cell);
      std::int64_t held = 0;
      if (t == 0) {
        held = state.free_gpus(dense.node_at(cell));
      } else {
        const auto& below = classes.pods[std::size_t(t) - 1];
        const auto part = std::size_t(std::max_element(below.begin(), below.end()) - below.begin());
        const auto [first, last] = dense.children(Tier(t), cell);
        for (std::int32_t c = first; c < last; ++c) {
          held += std::int64_t(embedding.capacity(Tier(t - 1), c)) * classes.gpus[std::size_t(t) - 1][part];
        }
      }
      if (miss.best == kNone || held > miss.best_gpus) {
        miss.best = cell;
        miss.best_gpus = held;
      }
    }
    if (miss.fit < miss.needed) return miss;
  }
  return {};
}

ClosestMiss Closest(const ClusterState& state, const Miss& miss) {
  return {std::string(TierPhrase(miss.tier)), state.dense().CellName(miss.tier, miss.best), miss.class_gpus,
          miss.best_gpus};
}

std::string Held(const ClusterState& state, Tier tier, std::int32_t cell) {
  std::int32_t first = cell, last = cell + 1;
  for (int t = int(tier); t > 0; --t) {
    first = state.dense().children(Tier(t), first).first;
    last = state.dense().children(Tier(t), last - 1).second;
  }
  std::int64_t all = 0, free = 0;
  for (std::int32_t c = first; c < last; ++c) {
    all += state.dense().gpus(state.dense().node_at(c));
    free += state.free_gpus(state.dense().node_at(c));
  }
  if (all == free) return "";
  return fmt::format("; {} of its {} GPUs are taken, broken or closed", all - free, all);
}

std::string Sentence(const ClusterState& state, const GangRequest& request, const Miss& miss, bool empty) {
  const Measure measure(state, request);
  const auto [needed, found] = measure.Beside(miss.class_gpus, miss.best_gpus);
  const std::string name = state.dense().CellName(miss.tier, miss.best);
  const std::string held = empty ? "" : Held(state, miss.tier, miss.best);
  if (miss.tier == Tier::kRoot) {
    return fmt::format("{} needed, room for {} in all{}", needed, found, held);
  }
  if (miss.tier == Tier::kNode) {
    return fmt::format("{} pods need {} GPUs on a node each; {} fit{}", miss.needed, miss.class_gpus,
                       miss.fit, empty ? "" : " now");
  }
  const std::string could = empty ? "the largest holds" : "best has";
  if (miss.needed == 1 || miss.fit == 0) {
    const std::string times = miss.needed == 1 ? "" : fmt::format(", {} times", miss.needed);
    return fmt::format("{} needed in one {}{}, {} {} ({}){}", needed, TierPhrase(miss.tier), times, could,
                       found, name, held);
  }
  return fmt::format("{} groups of {} needed, each in one {}; {} fit", miss.needed,
                     measure.Needed(miss.class_gpus), TierPhrase(miss.tier), miss.fit);
}

constexpr std::int64_t kAmplePods = 1 << 20;  // more than any node has slots

// Whether the gang would find room if CPU, memory, pod slots and extended resources were without end.
bool GpusWouldDo(const ClusterState& state, const GangRequest& request,
                 const std::vector<Requirement>& require) {
  GangRequest only_gpus = request;
  for (PodRequest& pod : only_gpus.pods) pod.resources = {};
  const GangClasses classes = ClassesOf(only_gpus, require);
  if (!classes.uniform) return false;
  std::vector<NodeState> nodes = state.nodes();
  for (NodeState& node : nodes) node.free_pods = kAmplePods;
  const ClusterState roomy(state.shared_fabric(), std::move(nodes), {}, state.shared_dense());
  Embedding embedding(roomy, only_gpus, classes);
  embedding.Measure({});
  return embedding.fits();
}

std::vector<Requirement> OnlyTp(const GangRequest& request) {
  std::vector<Requirement> out;
  for (const Requirement& requirement : EffectiveRequirements(request)) {
    if (requirement.axis == Axis::kTp) out.push_back(requirement);
  }
  return out;
}

// Whether it is proved that there is no place, even when all is free. A search that gave up proves nothing.
bool NeverFits(const ClusterState& state, const GangRequest& request,
               const std::vector<Requirement>& require) {
  std::vector<NodeState> nodes(state.fabric().nodes.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const int gpus = state.dense().gpus(NodeId(n));
    nodes[n].free_gpus = gpus >= 32 ? ~0U : (1U << gpus) - 1;
    nodes[n].free_pods = kAmplePods;
  }
  GangRequest only_gpus = request;
  for (PodRequest& pod : only_gpus.pods) {
    pod.resources = {};
    pod.fixed_node.reset();
    pod.fixed_gpus.reset();
  }
  ClusterState empty(state.shared_fabric(), std::move(nodes), {}, state.shared_dense());
  const SearchResult result = FindPlace(empty, only_gpus, require, {});
  return !result.found && !result.gave_up;
}

Refusal RefuseUniform(const ClusterState& state, const GangRequest& request, Refusal refusal) {
  const std::vector<Requirement> require = EffectiveRequirements(request);
  const GangClasses classes = ClassesOf(request, require);
  Embedding embedding(state, request, classes);
  embedding.Measure({}, /*empty=*/true);
  if (!embedding.fits()) {
    const Miss miss = FirstMiss(state, classes, embedding);
    const bool domain = miss.tier <= Tier::kDomain && miss.fit == 0;
    refusal.reason = domain ? RefusalReason::kTooLargeForDomain : RefusalReason::kTooLargeForFabric;
    refusal.sentence = Sentence(state, request, miss, true) + ", even when all is free";
    refusal.closest = Closest(state, miss);
    return refusal;
  }
  embedding.Measure({});
  if (embedding.fits()) return refusal;  // a leaf, a spine or a launcher stands in the way; said already
  const Miss miss = FirstMiss(state, classes, embedding);
  refusal.sentence = Sentence(state, request, miss, false);
  refusal.closest = Closest(state, miss);
  const GangClasses loose = ClassesOf(request, OnlyTp(request));
  Embedding without(state, request, loose);
  without.Measure({});
  refusal.reason = without.fits() ? RefusalReason::kRequirement : RefusalReason::kNotEnoughFree;
  if (GpusWouldDo(state, request, require)) {
    refusal.sentence +=
        "; enough GPUs are free, but CPU, memory, pod slots or another resource beside them is short";
  }
  return refusal;
}

Refusal RefuseSearched(ClusterState& state, const GangRequest& request, const SearchResult& result,
                       Refusal refusal) {
  const std::vector<Requirement> require = EffectiveRequirements(request);
  if (result.pod_in_conflict >= 0) {
    const auto node = *request.pods[std::size_t(result.pod_in_conflict)].fixed_node;
    refusal.reason = RefusalReason::kRequirement;
    refusal.sentence = fmt::format(
        "pod {} is bound to {}, which breaks {} together with the pods bound before it",
        result.pod_in_conflict, state.fabric().nodes[std::size_t(node)].node.name, Words(require));
    return refusal;
  }
  if (result.gave_up) {
    refusal.reason = RefusalReason::kNotFoundInBudget;
    refusal.sentence = fmt::format(
        "no place found that meets {} within the search budget; one may exist: loosen one of them",
        Words(require));
    return refusal;
  }
  if (NeverFits(state, request, require)) {
    const bool fits_loose = !NeverFits(state, request, OnlyTp(request));
    refusal.reason = RefusalReason::kTooLargeForFabric;
    refusal.sentence = fmt::format("no place in this fabric meets {}{}",
                                   Words(fits_loose ? require : OnlyTp(request)), ", even when all is free");
    return refusal;
  }
  if (require.size() > 1 && FindPlace(state, request, OnlyTp(request), {}).found) {
    refusal.reason = RefusalReason::kRequirement;
    refusal.sentence = fmt::format("enough is free, but no place meets {}", Words(require));
    return refusal;
  }
  refusal.reason = RefusalReason::kNotEnoughFree;
  refusal.sentence = fmt::format(
      "{} GPUs are free, but not so that every pod finds its GPUs, CPU and memory on one node "
      "and {} holds",
      refusal.sentence, Words(OnlyTp(request)));
  return refusal;
}

// What can be said before any counting; an empty sentence means nothing.
Refusal RefuseBySupply(const ClusterState& state, const GangRequest& request) {
  const std::size_t nodes = state.fabric().nodes.size();
  Refusal refusal;
  std::vector<char> any(nodes, 0);
  const PodRequest* before = nullptr;  // of those that were looked at: bound ones are not
  for (std::size_t p = 0; p < request.pods.size(); ++p) {
    const PodRequest& pod = request.pods[p];
    const bool known = before != nullptr && before->allowed == pod.allowed && before->gpus == pod.gpus;
    if (pod.fixed_node || known) continue;
    before = &pod;
    const std::vector<char> allowed = AllowedNodes(request, pod, nodes);
    for (std::size_t n = 0; n < nodes; ++n) any[n] = any[n] | allowed[n];
    const Supply supply = SupplyFor(state, allowed);
    if (nodes == 0) {
      refusal = {RefusalReason::kTooLargeForFabric, "the fabric has no nodes yet", {}};
    } else if (supply.allowed == 0) {
      refusal = {RefusalReason::kNoAllowedNode,
                 fmt::format("no node meets the selectors, affinity and tolerations of pod {}", p),
                 {}};
    } else if (pod.gpus > supply.largest_node) {
      refusal = {RefusalReason::kTooLargeForFabric,
                 fmt::format(
                     "pod {} asks for {} GPUs, the largest node it may use has {}{}", p, pod.gpus,
                     supply.largest_node,
                     supply.largest == kNone
                         ? ""
                         : fmt::format(" ({})", state.fabric().nodes[std::size_t(supply.largest)].node.name)),
                 {}};
    } else if (supply.usable == 0) {
      refusal = {RefusalReason::kNoAllowedNode,
                 fmt::format("none of the {} nodes that pod {} may use can be used now", supply.allowed, p),
                 {}};
    }
    if (!refusal.sentence.empty()) return refusal;
  }
  return refusal;
}

Refusal RefuseByDomain(const ClusterState& state, const GangRequest& request, const GangClasses& classes) {
  const auto& sizes = classes.gpus[std::size_t(Tier::kDomain)];
  const auto widest = std::size_t(std::max_element(sizes.begin(), sizes.end()) - sizes.begin());
  if (!classes.needs_nvlink[widest]) return {};
  int largest = 0;
  std::string name;
  for (const auto& domain : state.fabric().domains) {
    if (domain.gpus > largest) {
      largest = domain.gpus;
      name = domain.id;
    }
  }
  if (sizes[widest] <= largest) return {};
  const int tp = request.parallelism.tp;
  const std::string who = sizes[widest] == tp
                              ? fmt::format("a TP group of {} GPUs", tp)
                              : fmt::format("{} GPUs that share pods or groups", sizes[widest]);
  const std::string limit =
      largest == 0 ? "no node of this fabric has one" : fmt::format("the largest has {} ({})", largest, name);
  Refusal refusal{
      RefusalReason::kTooLargeForDomain, fmt::format("{} must lie in one NVLink domain, {}", who, limit), {}};
  if (largest > 0) refusal.closest = {std::string(TierPhrase(Tier::kDomain)), name, sizes[widest], largest};
  return refusal;
}

}  // namespace

std::vector<std::pair<std::string, int>> LeftOut(const ClusterState& state, const GangRequest& request) {
  const std::size_t nodes = state.fabric().nodes.size();
  std::vector<char> allowed(nodes, 0);
  const PodRequest* before = nullptr;
  for (const PodRequest& pod : request.pods) {
    if (before != nullptr && before->allowed == pod.allowed) continue;
    before = &pod;
    const auto own = AllowedNodes(request, pod, nodes);
    for (std::size_t n = 0; n < nodes; ++n) allowed[n] = allowed[n] | own[n];
  }
  std::map<std::string, int> count;
  for (std::size_t n = 0; n < nodes; ++n) {
    if (!allowed[n]) {
      ++count["NotAllowed"];
    } else if (!state.node(NodeId(n)).unusable.empty()) {
      ++count[state.node(NodeId(n)).unusable];
    }
  }
  std::vector<std::pair<std::string, int>> out(count.begin(), count.end());
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

Refusal Refuse(ClusterState& state, const GangRequest& request, const SearchResult& result) {
  const GangClasses classes = ClassesOf(request, EffectiveRequirements(request));
  Refusal refusal = RefuseBySupply(state, request);
  if (refusal.sentence.empty()) refusal = RefuseByDomain(state, request, classes);
  if (refusal.sentence.empty()) {
    const Supply supply = SupplyFor(state, std::vector<char>(state.fabric().nodes.size(), 1));
    const std::int64_t world = request.parallelism.world();
    const bool bound =
        std::any_of(request.pods.begin(), request.pods.end(), [](auto& pod) { return pod.fixed_node; });
    if (world > supply.all) {
      refusal = {RefusalReason::kTooLargeForFabric,
                 fmt::format("{} GPUs needed, the whole fabric has {}", world, supply.all),
                 {},
                 ClosestMiss{"fabric", "", world, supply.all}};
    } else if (world > supply.free && !bound) {
      refusal = {RefusalReason::kNotEnoughFree,
                 fmt::format("{} GPUs needed, {} of {} are free", world, supply.free, supply.all),
                 {},
                 ClosestMiss{"fabric", "", world, supply.free}};
    } else if (classes.uniform && CellsDecide(state.dense(), classes)) {
      refusal = RefuseUniform(state, request, {});
    }
    if (refusal.sentence.empty()) {
      refusal.sentence = fmt::format("{}", supply.free);
      refusal = RefuseSearched(state, request, result, std::move(refusal));
    }
  }
  refusal.left_out = LeftOut(state, request);
  return refusal;
}

}  // namespace heddle::placement
