#include "placement/gang_classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "placement/rank_ports.h"

namespace heddle::placement {
namespace {

using topology::kNone;

std::int32_t Root(std::vector<std::int32_t>& parent, std::int32_t item) {
  while (parent[std::size_t(item)] != item) {
    parent[std::size_t(item)] = parent[std::size_t(parent[std::size_t(item)])];
    item = parent[std::size_t(item)];
  }
  return item;
}

void Join(std::vector<std::int32_t>& parent, std::int32_t a, std::int32_t b) {
  a = Root(parent, a);
  b = Root(parent, b);
  parent[std::size_t(std::max(a, b))] = std::min(a, b);
}

// Calls visit(first rank, other rank) for every rank of every group but the first.
template <class Visit>
void ForEachPair(const Parallelism& parallelism, Axis axis, const Visit& visit) {
  const auto [stride, size] = StrideOf(parallelism, axis);
  const std::int64_t world = parallelism.world(), block = stride * size;
  for (std::int64_t outer = 0; outer < world; outer += block) {
    for (std::int64_t i = 1; i < size; ++i) {
      for (std::int64_t inner = 0; inner < stride; ++inner) visit(outer + inner, outer + inner + i * stride);
    }
  }
}

// False = its groups lie inside pods, and there is nothing to join.
bool JoinRequired(const GangRequest& request, const GangClasses& classes, const Requirement& requirement,
                  std::vector<std::int32_t>& parent) {
  if (requirement.axis == Axis::kGang) {
    for (std::size_t p = 1; p < request.pods.size(); ++p) Join(parent, 0, std::int32_t(p));
    return true;
  }
  const auto [stride, size] = StrideOf(request.parallelism, requirement.axis);
  const std::int64_t span = stride * size;
  int known = 0;  // GPUs of a pod that hold whole groups: most pods have as many
  const auto holds_groups = [&known, whole = span](const PodRequest& pod) {
    if (pod.gpus != known && pod.gpus % whole != 0) return false;
    known = pod.gpus;
    return true;
  };
  if (span == 1 || std::all_of(request.pods.begin(), request.pods.end(), holds_groups)) return false;
  ForEachPair(request.parallelism, requirement.axis, [&](std::int64_t a, std::int64_t b) {
    const std::int32_t pod_a = classes.pod_of_rank[std::size_t(a)],
                       pod_b = classes.pod_of_rank[std::size_t(b)];
    if (pod_a != pod_b) Join(parent, pod_a, pod_b);
  });
  return true;
}

void NumberClasses(const GangRequest& request, std::vector<std::int32_t>& parent, std::size_t tier,
                   GangClasses& out) {
  const std::size_t pods = request.pods.size();
  std::vector<std::int32_t> number(pods, kNone);
  out.of_pod[tier].resize(pods);
  for (std::size_t p = 0; p < pods; ++p) {
    std::int32_t& id = number[std::size_t(Root(parent, std::int32_t(p)))];
    if (id == kNone) {
      id = std::int32_t(out.gpus[tier].size());
      out.gpus[tier].push_back(0);
      out.pods[tier].push_back(0);
    }
    out.of_pod[tier][p] = id;
    out.gpus[tier][std::size_t(id)] += request.pods[p].gpus;
    out.pods[tier][std::size_t(id)] += request.pods[p].gpus > 0 ? 1 : 0;
  }
}

// Every pod a class of its own.
void NumberPods(const GangRequest& request, GangClasses& out) {
  const std::size_t pods = request.pods.size();
  out.of_pod[0].resize(pods);
  out.gpus[0].resize(pods);
  out.pods[0].resize(pods);
  for (std::size_t p = 0; p < pods; ++p) {
    out.of_pod[0][p] = std::int32_t(p);
    out.gpus[0][p] = request.pods[p].gpus;
    out.pods[0][p] = request.pods[p].gpus > 0 ? 1 : 0;
  }
}

bool AlikeAndFree(const std::vector<PodRequest>& pods) {
  const PodRequest* sample = nullptr;
  for (const PodRequest& pod : pods) {
    if (pod.fixed_node) return false;
    if (pod.gpus == 0) continue;
    if (sample == nullptr) sample = &pod;
    if (!(pod == *sample)) return false;
  }
  return sample != nullptr;
}

// Classes of launchers aside.
bool OfOneSize(const std::vector<int>& sizes) {
  int usual = 0;
  for (const int size : sizes) {
    if (size == 0) continue;
    if (usual == 0) usual = size;
    if (size != usual) return false;
  }
  return true;
}

struct GroupPlace {
  bool node = true, domain = true, leaf = true, unit = true, site = true;
};

GroupPlace PlaceOf(const DenseFabric& dense, const std::vector<GpuPort>& ranks, std::int64_t first,
                   std::int64_t stride, int size) {
  const auto& nodes = dense.fabric().nodes;
  const GpuPort& head = ranks[std::size_t(first)];
  const auto& home = nodes[std::size_t(head.node)];
  GroupPlace place{true, head.domain != kNone, head.leaf != kNone, home.unit != kNone, true};
  for (std::int64_t r = first; r < first + stride * size; r += stride) {
    const GpuPort& port = ranks[std::size_t(r)];
    place.leaf = place.leaf && port.leaf == head.leaf;
    if (port.node == head.node) continue;
    place.node = false;
    place.domain = place.domain && port.domain == head.domain;
    place.unit = place.unit && nodes[std::size_t(port.node)].unit == home.unit;
    place.site = place.site && nodes[std::size_t(port.node)].node.site == home.node.site;
  }
  return place;
}

bool Lies(const DenseFabric& dense, const std::vector<GpuPort>& ranks, Level level, std::int64_t first,
          std::int64_t stride, int size) {
  const GroupPlace place = PlaceOf(dense, ranks, first, stride, size);
  switch (level) {
    case Level::kNvlink:
      return place.domain;
    case Level::kNode:
      return place.node;
    case Level::kLeaf:
      return place.node || place.domain || place.leaf;
    case Level::kUnit:
      return place.node || place.domain || place.unit;
    case Level::kSpine: {
      if (place.node || place.domain || place.unit) return true;
      std::vector<topology::LeafId> leaves;
      for (std::int64_t r = first; r < first + stride * size; r += stride) {
        const topology::LeafId leaf = ranks[std::size_t(r)].leaf;
        if (leaves.empty() || leaves.back() != leaf) leaves.push_back(leaf);
      }
      return dense.OneSpineOver(leaves);
    }
    case Level::kSite:
      return place.site;
  }
  return false;
}

std::string WhyBadPod(const topology::Fabric& fabric, const GangRequest& request, std::size_t index) {
  const PodRequest& pod = request.pods[index];
  if (pod.gpus < 0) return fmt::format("pod {} asks for {} GPUs: must not be negative", index, pod.gpus);
  if (pod.allowed && *pod.allowed >= request.allowed_nodes.size()) {
    return fmt::format("pod {} names a list of nodes that is not there", index);
  }
  if (pod.fixed_gpus && !pod.fixed_node) return fmt::format("pod {} has fixed GPUs and no fixed node", index);
  if (!pod.fixed_node) return "";
  if (*pod.fixed_node < 0 || std::size_t(*pod.fixed_node) >= fabric.nodes.size()) {
    return fmt::format("pod {} is bound to a node that the fabric does not know", index);
  }
  const auto& node = fabric.nodes[std::size_t(*pod.fixed_node)].node;
  if (pod.fixed_gpus && (std::popcount(*pod.fixed_gpus) != pod.gpus ||
                         int(std::bit_width(*pod.fixed_gpus)) > int(node.gpus.size()))) {
    return fmt::format("pod {} is bound to GPUs of {} that do not match the {} it asks for", index, node.name,
                       pod.gpus);
  }
  return "";
}

}  // namespace

Tier TierOf(Level level) {
  switch (level) {
    case Level::kNvlink:
      return Tier::kDomain;
    case Level::kNode:
      return Tier::kNode;
    case Level::kLeaf:
    case Level::kUnit:
      return Tier::kUnit;
    case Level::kSpine:
      return Tier::kSpine;
    case Level::kSite:
      return Tier::kSite;
  }
  return Tier::kRoot;
}

std::string_view LevelPhrase(Level level) {
  switch (level) {
    case Level::kNvlink:
      return "one NVLink domain";
    case Level::kNode:
      return "one node";
    case Level::kLeaf:
      return "one leaf";
    case Level::kUnit:
      return "one scalable unit";
    case Level::kSpine:
      return "one spine";
    case Level::kSite:
      return "one site";
  }
  return "";
}

std::vector<Requirement> EffectiveRequirements(const GangRequest& request) {
  std::vector<Requirement> require = request.require;
  const bool tp_named =
      std::any_of(require.begin(), require.end(), [](auto& r) { return r.axis == Axis::kTp; });
  if (!tp_named) require.insert(require.begin(), {Axis::kTp, Level::kNvlink});
  return require;
}

GangClasses ClassesOf(const GangRequest& request, const std::vector<Requirement>& require) {
  GangClasses out;
  out.require = require;
  out.first_rank.reserve(request.pods.size() + 1);
  std::int32_t ranks = 0;
  for (const PodRequest& pod : request.pods) {
    out.first_rank.push_back(ranks);
    ranks += pod.gpus;
    out.gpu_pods += pod.gpus > 0 ? 1 : 0;
  }
  out.first_rank.push_back(ranks);
  out.pod_of_rank.resize(std::size_t(ranks));
  for (std::size_t p = 0; p < request.pods.size(); ++p) {
    std::fill_n(out.pod_of_rank.begin() + out.first_rank[p], request.pods[p].gpus, std::int32_t(p));
  }
  std::vector<std::int32_t> parent(request.pods.size());
  std::iota(parent.begin(), parent.end(), 0);
  out.uniform = AlikeAndFree(request.pods);
  NumberPods(request, out);
  for (std::size_t tier = 0; tier < kTierCount; ++tier) {
    bool joined = false;
    for (const Requirement& requirement : require) {
      if (TierOf(requirement.level) == Tier(tier))
        joined = JoinRequired(request, out, requirement, parent) || joined;
    }
    if (Tier(tier) == Tier::kRoot) {
      out.of_pod[tier].assign(request.pods.size(), 0);
      out.gpus[tier] = {int(out.pod_of_rank.size())};
      out.pods[tier] = {out.gpu_pods};
      break;
    }
    if (joined) {
      out.gpus[tier].clear();
      out.pods[tier].clear();
      NumberClasses(request, parent, tier, out);
      out.uniform = out.uniform && OfOneSize(out.pods[tier]);
    } else if (tier > 0) {
      out.of_pod[tier] = out.of_pod[tier - 1];
      out.gpus[tier] = out.gpus[tier - 1];
      out.pods[tier] = out.pods[tier - 1];
    }
  }
  out.needs_nvlink.assign(out.gpus[std::size_t(Tier::kDomain)].size(), false);
  for (const Requirement& requirement : require) {
    out.judged_by_gpu =
        out.judged_by_gpu || requirement.level == Level::kLeaf || requirement.level == Level::kSpine;
    if (requirement.level != Level::kNvlink || request.parallelism.size(requirement.axis) < 2) continue;
    for (std::size_t p = 0; p < request.pods.size(); ++p) {
      if (request.pods[p].gpus > 0)
        out.needs_nvlink[std::size_t(out.of_pod[std::size_t(Tier::kDomain)][p])] = true;
    }
  }
  return out;
}

std::optional<Requirement> FirstBroken(const DenseFabric& dense, const GangRequest& request,
                                       const GangClasses& classes, const std::vector<PodPlacement>& pods) {
  std::vector<GpuPort> ranks;
  ranks.reserve(classes.pod_of_rank.size());
  ReadPorts(dense, pods, ranks);
  for (const Requirement& requirement : classes.require) {
    const auto [stride, size] = StrideOf(request.parallelism, requirement.axis);
    const std::int64_t world = std::int64_t(ranks.size()), block = stride * size;
    if (size < 2) continue;
    for (std::int64_t outer = 0; outer < world; outer += block) {
      for (std::int64_t inner = 0; inner < stride; ++inner) {
        if (!Lies(dense, ranks, requirement.level, outer + inner, stride, size)) return requirement;
      }
    }
  }
  return std::nullopt;
}

bool KeepsClasses(const DenseFabric& dense, const GangClasses& classes, const std::vector<PodPlacement>& pods,
                  std::vector<std::int32_t>& cells) {
  for (int t = 0; t < int(Tier::kRoot); ++t) {
    const auto& of_pod = classes.of_pod[std::size_t(t)];
    const std::size_t count = classes.gpus[std::size_t(t)].size();
    if (count == pods.size()) continue;
    cells.assign(count, kNone);
    for (std::size_t p = 0; p < pods.size(); ++p) {
      if (pods[p].node == kNone) continue;
      std::int32_t& known = cells[std::size_t(of_pod[p])];
      const std::int32_t cell = dense.cell(Tier(t), pods[p].node);
      if (known != kNone && known != cell) return false;
      known = cell;
    }
  }
  return true;
}

std::string WhyBadRequest(const topology::Fabric& fabric, const GangRequest& request) {
  if (std::string why = WhyNotLaidOut(request.parallelism); !why.empty()) return why;
  if (std::string why = WhyNoModel(request.model); !why.empty()) return why;
  if (request.model.experts % request.parallelism.ep != 0) {
    return fmt::format("ep={} does not divide the {} experts of the model", request.parallelism.ep,
                       request.model.experts);
  }
  if (request.spares < 0) return fmt::format("spares={}: must not be negative", request.spares);
  if (request.pods.empty()) return "the gang has no pods";
  std::int64_t gpus = 0;
  for (std::size_t p = 0; p < request.pods.size(); ++p) {
    if (std::string why = WhyBadPod(fabric, request, p); !why.empty()) return why;
    gpus += request.pods[p].gpus;
  }
  const Parallelism& p = request.parallelism;
  if (gpus != p.world()) {
    return fmt::format("tp={} x cp={} x dp={} x pp={} makes {} ranks, the gang's {} pods ask for {} GPUs",
                       p.tp, p.cp, p.dp, p.pp, p.world(), request.pods.size(), gpus);
  }
  return "";
}

}  // namespace heddle::placement
