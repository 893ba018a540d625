#include "tests/unit/placement/fabrics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <set>

namespace heddle::placement {

using topology::kNone;
using topology::NodeId;

topology::Fabric FabricOf::Build() const {
  topology::Fabric fabric;
  fabric.transport = topology::Transport::kInfiniBand;
  fabric.shape = shape;
  fabric.rails = leaves;
  for (int s = 0; s < spine_groups; ++s) fabric.spines.push_back({fmt::format("spine-{}", s), 2, {}});
  for (int u = 0; u < units; ++u) {
    topology::Unit unit;
    unit.name = fmt::format("su-{}", u);
    for (int l = 0; l < leaves; ++l) {
      topology::Leaf leaf;
      leaf.name = fmt::format("su{:02}-r{}", u, l);
      leaf.rail = l;
      leaf.unit = u;
      if (spine_groups > 0) leaf.spines = {u * spine_groups / units};
      leaf.down_gbps = nodes * gbps * gpus / leaves;
      leaf.up_gbps = spine_groups > 0 ? leaf.down_gbps * 100 / oversubscription_percent : 0;
      unit.leaves.push_back(int(fabric.leaves.size()));
      fabric.leaves.push_back(std::move(leaf));
    }
    for (int n = 0; n < nodes; ++n) {
      topology::FabricNode where;
      const int index = u * nodes + n;
      where.node.name = fmt::format("node-{:04}", index);
      where.node.nvlink = {4, 18, nvlink ? 3600 : 0, {}};
      where.unit = leaves > 0 ? u : kNone;
      for (int g = 0; g < gpus; ++g) {
        topology::Gpu gpu;
        gpu.index = g;
        where.node.gpus.push_back(gpu);
        topology::GpuUplink uplink;
        if (leaves > 0) {
          uplink.rail = std::int16_t(g % leaves);
          uplink.leaf = u * leaves + g % leaves;
          uplink.gbps = gbps;
          uplink.distance = topology::PciDistance::kPix;
        }
        where.uplinks.push_back(uplink);
      }
      if (nvlink) {
        const int per_rack = racks_per_unit > 0 ? nodes / racks_per_unit : 1;
        where.domain = index / per_rack;
        if (std::size_t(where.domain) == fabric.domains.size()) {
          fabric.domains.push_back(
              {per_rack > 1 ? fmt::format("rack-{}", where.domain) : where.node.name, {}, 0, per_rack > 1});
        }
        fabric.domains.back().nodes.push_back(index);
        fabric.domains.back().gpus += gpus;
      }
      unit.nodes.push_back(index);
      fabric.nodes.push_back(std::move(where));
    }
    if (leaves > 0) fabric.units.push_back(std::move(unit));
  }
  return fabric;
}

std::vector<NodeState> AllFree(const topology::Fabric& fabric) {
  std::vector<NodeState> nodes(fabric.nodes.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (std::size_t g = 0; g < fabric.nodes[n].node.gpus.size(); ++g) {
      if (fabric.nodes[n].node.gpus[g].healthy) nodes[n].free_gpus |= 1U << g;
    }
    nodes[n].free_milli_cpu = 192'000;
    nodes[n].free_memory_bytes = std::int64_t(2) << 40;
    nodes[n].free_pods = 110;
  }
  return nodes;
}

ClusterState Cluster(topology::Fabric fabric, std::vector<NodeState> nodes) {
  return ClusterState(std::make_shared<const topology::Fabric>(std::move(fabric)), std::move(nodes));
}
ClusterState FreeCluster(topology::Fabric fabric) {
  auto nodes = AllFree(fabric);
  return Cluster(std::move(fabric), std::move(nodes));
}

Parallelism Sizes(int tp, int pp, int dp, int cp) {
  Parallelism out;
  out.tp = tp;
  out.pp = pp;
  out.dp = dp;
  out.cp = cp;
  return out;
}

GangRequest Gang(const Parallelism& parallelism, int gpus_per_pod) {
  GangRequest request;
  request.parallelism = parallelism;
  EXPECT_EQ(parallelism.world() % gpus_per_pod, 0);
  PodRequest pod;
  pod.gpus = gpus_per_pod;
  request.pods.assign(std::size_t(parallelism.world() / gpus_per_pod), pod);
  return request;
}

Plan Planned(ClusterState& state, const GangRequest& request) {
  Decision decision = PlanGang(state, request);
  if (auto* plan = std::get_if<Plan>(&decision)) {
    EXPECT_THAT(Faults(state, request, *plan), testing::IsEmpty());
    return std::move(*plan);
  }
  const Refusal& refusal = std::get<Refusal>(decision);
  ADD_FAILURE() << RefusalReasonName(refusal.reason) << ": " << refusal.sentence;
  return {};
}

Refusal Refused(ClusterState& state, const GangRequest& request) {
  Decision decision = PlanGang(state, request);
  if (auto* refusal = std::get_if<Refusal>(&decision)) return std::move(*refusal);
  ADD_FAILURE() << "planned: " << std::get<Plan>(decision).explanation.front();
  return {};
}

namespace {

struct Place {
  NodeId node;
  int gpu;
};

bool GroupLies(const topology::Fabric& fabric, Level level, const std::vector<Place>& group) {
  const auto all = [&](auto value, auto unknown) {
    std::set<decltype(value(group.front()))> seen;
    for (const Place& place : group) seen.insert(value(place));
    return seen.size() == 1 && *seen.begin() != unknown;
  };
  const auto node = [](const Place& p) { return p.node; };
  const auto domain = [&](const Place& p) { return fabric.nodes[std::size_t(p.node)].domain; };
  const auto unit = [&](const Place& p) { return fabric.nodes[std::size_t(p.node)].unit; };
  const auto leaf = [&](const Place& p) {
    return fabric.nodes[std::size_t(p.node)].uplinks[std::size_t(p.gpu)].leaf;
  };
  if (group.size() < 2) return true;
  const bool inside = all(node, kNone) || all(domain, kNone);
  switch (level) {
    case Level::kNode:
      return all(node, kNone);
    case Level::kNvlink:
      return all(domain, kNone);
    case Level::kLeaf:
      return inside || all(leaf, kNone);
    case Level::kUnit:
      return inside || all(unit, kNone);
    case Level::kSite:
      return true;
    case Level::kSpine:
      break;
  }
  if (inside || all(unit, kNone)) return true;
  std::map<std::int32_t, std::set<std::int32_t>> leaves_under;
  std::set<std::int32_t> leaves;
  for (const Place& place : group) {
    if (leaf(place) == kNone) return false;
    leaves.insert(leaf(place));
    for (std::int32_t spine : fabric.leaves[std::size_t(leaf(place))].spines)
      leaves_under[spine].insert(leaf(place));
  }
  if (leaves.size() == 1) return true;
  if (fabric.shape == topology::Shape::kDragonfly) {
    std::set<int> groups;
    for (const std::int32_t id : leaves) groups.insert(fabric.leaves[std::size_t(id)].group);
    return groups.size() == 1 && *groups.begin() != kNone;
  }
  for (const auto& [spine, under] : leaves_under) {
    if (under == leaves) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> Faults(const ClusterState& state, const GangRequest& request, const Plan& plan) {
  std::vector<std::string> faults;
  const topology::Fabric& fabric = state.fabric();
  if (plan.pods.size() != request.pods.size()) return {"pods and placements differ in number"};
  std::map<NodeId, std::uint32_t> used;
  std::map<NodeId, Resources> resources;
  std::map<NodeId, int> pods;
  std::vector<Place> ranks;
  for (std::size_t p = 0; p < plan.pods.size(); ++p) {
    const auto& [node, gpus] = plan.pods[p];
    const PodRequest& wanted = request.pods[p];
    if (node < 0 || std::size_t(node) >= fabric.nodes.size()) return {fmt::format("pod {} has no node", p)};
    if (std::popcount(gpus) != wanted.gpus)
      faults.push_back(fmt::format("pod {} has the wrong number of GPUs", p));
    for (int g = 0; g < 32; ++g) {
      if ((gpus >> g & 1U) != 0) ranks.push_back({node, g});
    }
    if (wanted.fixed_node) {
      if (node != *wanted.fixed_node) faults.push_back(fmt::format("pod {} was bound elsewhere", p));
      if (wanted.fixed_gpus && gpus != *wanted.fixed_gpus)
        faults.push_back(fmt::format("pod {} lost its GPUs", p));
      continue;
    }
    if ((gpus & ~state.node(node).free_gpus) != 0)
      faults.push_back(fmt::format("pod {} takes a GPU that is not free", p));
    if (!state.node(node).unusable.empty()) faults.push_back(fmt::format("pod {} is on an unusable node", p));
    if ((used[node] & gpus) != 0) faults.push_back(fmt::format("pod {} shares a GPU", p));
    used[node] |= gpus;
    ++pods[node];
    resources[node].milli_cpu += wanted.resources.milli_cpu;
    resources[node].memory_bytes += wanted.resources.memory_bytes;
    if (wanted.allowed) {
      const auto& list = request.allowed_nodes[*wanted.allowed];
      if (std::find(list.begin(), list.end(), node) == list.end())
        faults.push_back(fmt::format("pod {} is not allowed", p));
    }
  }
  for (const auto& [node, sum] : resources) {
    if (!state.Fits(node, sum) || pods[node] > state.node(node).free_pods) {
      faults.push_back(fmt::format("node {} has not the room", node));
    }
  }
  std::vector<Requirement> require = request.require;
  bool tp = false;
  for (const Requirement& requirement : require) tp = tp || requirement.axis == Axis::kTp;
  if (!tp) require.push_back({Axis::kTp, Level::kNvlink});
  for (const Requirement& requirement : require) {
    for (const auto& group : Groups(request.parallelism, requirement.axis)) {
      std::vector<Place> places;
      for (std::int32_t rank : group) places.push_back(ranks[std::size_t(rank)]);
      if (GroupLies(fabric, requirement.level, places)) continue;
      faults.push_back(
          fmt::format("{}={} is broken", AxisName(requirement.axis), LevelName(requirement.level)));
      break;
    }
  }
  return faults;
}

}  // namespace heddle::placement
