#include "tests/oracle/instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "base/random.h"

namespace heddle::oracle {
namespace {

using base::Random;
using placement::Axis;
using placement::GangRequest;
using placement::Level;
using placement::NodeState;
using placement::Parallelism;
using placement::PodRequest;
using topology::Fabric;
using topology::kNone;

bool Chance(Random& random, int percent) {
  return int(random.Below(100)) < percent;
}

int Between(Random& random, int low, int high) {
  return low + int(random.Below(std::uint64_t(high - low + 1)));
}

template <std::size_t N>
int OneOf(Random& random, const std::array<int, N>& values) {
  return values[random.Below(N)];
}

struct Plant {
  std::vector<int> nodes_of_unit;
  int gpus = 8;
  int leaves = 8;         // per unit; GPU g sits on leaf g mod leaves
  int nodes_of_rack = 1;  // NVLink domain; the last of a unit may be smaller
  int spines = 1;
  int oversubscription_percent = 100;
  bool nvlink = true;
};

Plant DrawPlant(Random& random, int max_nodes) {
  Plant plant;
  const int nodes = Between(random, std::max(2, max_nodes / 3), max_nodes);
  const int units = std::min(nodes, Between(random, 1, 8));
  plant.nodes_of_unit.assign(std::size_t(units), nodes / units);
  for (int i = 0; i < nodes % units; ++i) ++plant.nodes_of_unit[std::size_t(i)];
  // Uneven units: nodes wander from one to another.
  for (int i = Chance(random, 60) ? units : 0; i > 0; --i) {
    int& from = plant.nodes_of_unit[random.Below(std::uint64_t(units))];
    int& to = plant.nodes_of_unit[random.Below(std::uint64_t(units))];
    if (from < 2) continue;
    --from;
    ++to;
  }
  plant.gpus = Chance(random, 30) ? 4 : 8;
  plant.leaves = OneOf<4>(random, {plant.gpus, plant.gpus, plant.gpus / 2, 1});
  if (Chance(random, 25)) plant.nodes_of_rack = OneOf<3>(random, {2, 3, 4});
  plant.spines = std::min(units, OneOf<3>(random, {1, 1, 2}));
  plant.oversubscription_percent = OneOf<4>(random, {100, 100, 200, 400});
  plant.nvlink = !Chance(random, 3);
  return plant;
}

void AddNode(Random& random, const Plant& plant, int unit, bool new_rack, Fabric& fabric) {
  topology::FabricNode where;
  const auto id = topology::NodeId(fabric.nodes.size());
  where.node.name = fmt::format("node-{:04}", id);
  where.node.nvlink = {4, 18, plant.nvlink ? 3600 : 0, {}};
  where.unit = unit;
  for (int g = 0; g < plant.gpus; ++g) {
    topology::Gpu gpu;
    gpu.index = g;
    where.node.gpus.push_back(gpu);
    topology::GpuUplink uplink;
    uplink.rail = std::int16_t(g % plant.leaves);
    uplink.leaf = unit * plant.leaves + g % plant.leaves;
    uplink.gbps = Chance(random, 1) ? 200 : 400;
    uplink.distance = topology::PciDistance::kPix;
    where.uplinks.push_back(uplink);
  }
  if (plant.nvlink) {
    if (new_rack) fabric.domains.push_back({fmt::format("rack-{:04}", fabric.domains.size()), {}, 0, false});
    auto& domain = fabric.domains.back();
    where.domain = topology::DomainId(fabric.domains.size()) - 1;
    domain.nodes.push_back(id);
    domain.gpus += plant.gpus;
    domain.spans_nodes = domain.nodes.size() > 1;
  }
  fabric.units[std::size_t(unit)].nodes.push_back(id);
  fabric.nodes.push_back(std::move(where));
}

Fabric Build(Random& random, const Plant& plant) {
  Fabric fabric;
  fabric.transport = topology::Transport::kInfiniBand;
  fabric.shape = topology::Shape::kRailOptimised;
  fabric.rails = plant.leaves;
  const int units = int(plant.nodes_of_unit.size());
  for (int s = 0; s < plant.spines; ++s) fabric.spines.push_back({fmt::format("spine-{}", s), 2, {}});
  for (int u = 0; u < units; ++u) {
    const int nodes = plant.nodes_of_unit[std::size_t(u)];
    auto& unit = fabric.units.emplace_back();
    unit.name = fmt::format("su-{}", u);
    for (int l = 0; l < plant.leaves; ++l) {
      topology::Leaf leaf;
      leaf.name = fmt::format("su{:02}-r{}", u, l);
      leaf.rail = l;
      leaf.unit = u;
      leaf.spines = {u * plant.spines / units};
      leaf.down_gbps = nodes * 400 * plant.gpus / plant.leaves;
      leaf.up_gbps = leaf.down_gbps * 100 / plant.oversubscription_percent;
      unit.leaves.push_back(int(fabric.leaves.size()));
      fabric.leaves.push_back(std::move(leaf));
    }
    for (int n = 0; n < nodes; ++n) AddNode(random, plant, u, n % plant.nodes_of_rack == 0, fabric);
  }
  return fabric;
}

std::vector<NodeState> DrawFree(Random& random, const Plant& plant, const Fabric& fabric) {
  const int broken_percent = OneOf<4>(random, {0, 20, 50, 85});
  const bool by_halves = Chance(random, 50);
  const std::uint32_t all = (1U << plant.gpus) - 1, half = (1U << (plant.gpus / 2)) - 1;
  std::vector<NodeState> nodes(fabric.nodes.size());
  for (NodeState& node : nodes) {
    node.free_gpus = all;
    node.free_milli_cpu = 192'000;
    node.free_memory_bytes = std::int64_t(2) << 40;
    node.free_pods = 110;
    if (Chance(random, broken_percent)) {
      const std::array<std::uint32_t, 3> halves{0, half, all & ~half};
      node.free_gpus = by_halves ? halves[random.Below(3)] : std::uint32_t(random.Below(all + 1));
    }
    if (Chance(random, 4)) node.unusable = Chance(random, 50) ? "Cordoned" : "TopologyStale";
    if (Chance(random, 8)) node.free_milli_cpu = Between(random, 0, plant.gpus) * 1000;
    if (Chance(random, 5)) node.free_pods = Between(random, 0, 2);
  }
  return nodes;
}

Parallelism DrawSizes(Random& random, const Plant& plant, int pod, int wanted_ranks) {
  Parallelism p;
  p.tp = OneOf<6>(random, {1, 2, pod, pod, plant.gpus, plant.gpus * plant.nodes_of_rack});
  while (p.tp > wanted_ranks) p.tp /= 2;
  const auto draw = [&](int& size, std::array<int, 6> choices) {
    size = OneOf(random, choices);
    if (p.world() > wanted_ranks) size = 1;
  };
  draw(p.pp, {1, 1, 2, 3, 4, 4});
  draw(p.cp, {1, 1, 1, 1, 2, 2});
  p.dp = std::max(1, int(wanted_ranks / p.world()));
  if (Chance(random, 50)) p.dp = int(std::bit_floor(unsigned(p.dp)));
  if (p.dp % 2 == 0 && Chance(random, 20)) p.fsdp = Chance(random, 50) ? p.dp : 2;
  if (Chance(random, 20)) p.order = {Axis::kTp, Axis::kCp, Axis::kPp, Axis::kDp};
  if (Chance(random, 20)) p.ep = OneOf<3>(random, {2, 4, 8});
  if (p.ep > 1 && Chance(random, 50)) p.etp = 1;
  if (!placement::WhyNotLaidOut(p).empty()) p.ep = 1, p.etp = 0;
  return p;
}

void DrawPods(Random& random, const Plant& plant, int usual, int most_pods, GangRequest& request) {
  const auto world = int(request.parallelism.world());
  while (usual < plant.gpus && world > usual * most_pods) usual *= 2;
  const bool uneven = Chance(random, 8);
  const int cpu = OneOf<4>(random, {0, 0, 500, 1000});
  for (int left = world; left > 0;) {
    PodRequest pod;
    pod.gpus = std::min(left, uneven && Chance(random, 30) ? Between(random, 1, plant.gpus) : usual);
    pod.resources.milli_cpu = std::int64_t(pod.gpus) * cpu;
    left -= pod.gpus;
    request.pods.push_back(pod);
  }
  if (Chance(random, 4)) {
    PodRequest launcher;
    launcher.resources.milli_cpu = 1000;
    request.pods.insert(request.pods.begin(), launcher);
  }
}

void AllowSome(Random& random, std::size_t nodes, GangRequest& request) {
  auto& list = request.allowed_nodes.emplace_back();
  for (std::size_t n = 0; n < nodes; ++n) {
    if (Chance(random, 75)) list.push_back(topology::NodeId(n));
  }
  const int percent = Chance(random, 70) ? 100 : 60;
  for (PodRequest& pod : request.pods) {
    if (Chance(random, percent)) pod.allowed = 0;
  }
}

// Pods of a usual size, and as many ranks as a share of what is free in pieces of that size.
void Ask(Random& random, const Plant& plant, const std::array<int, 6>& percents, int most_pods,
         Instance& out) {
  int usual = OneOf<6>(random, {plant.gpus, plant.gpus, plant.gpus / 2, plant.gpus / 2, 2, 1});
  const auto free_in_pieces = [&] {
    int free = 0;
    for (const NodeState& node : out.nodes) {
      if (node.unusable.empty()) free += std::popcount(node.free_gpus) / usual * usual;
    }
    return free;
  };
  while (usual > 1 && free_in_pieces() < 2 * usual) usual /= 2;
  const int wanted = std::clamp(free_in_pieces() * OneOf(random, percents) / 100, 2, 256);
  out.request.parallelism = DrawSizes(random, plant, usual, wanted);
  DrawPods(random, plant, usual, most_pods, out.request);
  if (Chance(random, 10)) AllowSome(random, out.nodes.size(), out.request);
}

}  // namespace

Instance MakeInstance(std::uint64_t seed, int max_nodes) {
  Random random(seed);
  const Plant plant = DrawPlant(random, max_nodes);
  Instance out;
  out.fabric = Build(random, plant);
  out.nodes = DrawFree(random, plant, out.fabric);
  Ask(random, plant, {25, 40, 60, 80, 100, 110}, 64, out);
  for (int i = Chance(random, 30) ? Between(random, 1, 2) : 0; i > 0; --i) {
    const std::array<Level, 4> nested{Level::kNvlink, Level::kNode, Level::kUnit, Level::kSpine};
    out.request.require.push_back({Axis(random.Below(placement::kAxisCount)), nested[random.Below(4)]});
  }
  return out;
}

Instance MakeTinyInstance(std::uint64_t seed) {
  Random random(seed);
  Plant plant = DrawPlant(random, Between(random, 2, 8));
  if (Chance(random, 60)) {
    plant.gpus = 4;
    plant.leaves = std::min(plant.leaves, 4);
  }
  Instance out;
  out.fabric = Build(random, plant);
  out.nodes = DrawFree(random, plant, out.fabric);
  Ask(random, plant, {40, 50, 60, 70, 80, 100}, 7, out);
  if (Chance(random, 25)) {
    out.request.require.push_back({Axis(random.Below(placement::kAxisCount)), Level(random.Below(5))});
  }
  return out;
}

}  // namespace heddle::oracle
