#include "bench/peers/clusters.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "base/check.h"
#include "topology/synthetic.h"

namespace heddle::peers {

using placement::GangRequest;
using placement::NodeState;
using placement::PodRequest;
using topology::NodeId;

namespace {

struct JobSize {
  int gpus;
  int per_mille;
};
constexpr std::array<JobSize, 11> kJobSizes = {{{1, 480},
                                                {2, 70},
                                                {4, 70},
                                                {8, 220},
                                                {16, 60},
                                                {32, 40},
                                                {64, 30},
                                                {128, 16},
                                                {256, 8},
                                                {512, 4},
                                                {1024, 2}}};

// Which of the nodes of a full cluster exist.
std::vector<char> KeptNodes(int units, int unit, base::Random& random) {
  std::vector<char> kept(std::size_t(units) * std::size_t(unit), 1);
  for (int u = 0; u < units; ++u) {
    if (random.Below(3) == 0) continue;
    const int lacking = 1 + int(random.Below(std::uint64_t(std::max(1, unit / 4))));
    for (int i = 0; i < lacking; ++i)
      kept[std::size_t(u) * std::size_t(unit) + random.Below(std::uint64_t(unit))] = 0;
  }
  return kept;
}

}  // namespace

std::shared_ptr<const topology::Fabric> MakeFabric(const ClusterShape& shape, std::uint64_t seed) {
  base::Random random(seed);
  // Two thirds of the units lack an eighth of their nodes on average.
  const int units = (shape.nodes * 12 / 11 + shape.unit - 1) / shape.unit;
  const std::string layout = shape.nvl72 ? "rack:{} tray:{} gpu:4 nic:4 rail:4 machine:gb200 nvl"
                                         : "su:{} node:{} gpu:8 nic:8 rail:8 machine:h100";
  auto line =
      topology::ParseSynthetic(fmt::format(fmt::runtime(layout + " spine:1 rate:400 transport:ib oversub:{}"),
                                           units, shape.unit, shape.oversubscription_percent));
  CHECK(line.has_value());
  const std::vector<char> kept = KeptNodes(units, shape.unit, random);
  std::vector<topology::Node> nodes;
  for (std::size_t n = 0; n < line->nodes.size(); ++n) {
    if (kept[n]) nodes.push_back(std::move(line->nodes[n]));
  }
  // Rail r of a group of units meets on the group's spines of rail r, as rail-optimised pods are cabled.
  for (topology::SwitchDeclaration& leaf : line->declaration.switches) {
    int unit = 0, rail = 0;
    CHECK(std::sscanf(leaf.name.c_str(), "su%d-r%d", &unit, &rail) == 2);
    leaf.uplinks.clear();
    for (int s = 0; s < 4; ++s) {
      leaf.uplinks.push_back(fmt::format("spine-{:03}-{}", unit / shape.units_per_spine_group, s));
    }
  }
  for (int group = 0; group * shape.units_per_spine_group < units; ++group) {
    for (int s = 0; s < 4; ++s) {
      line->declaration.switches.push_back(
          {fmt::format("spine-{:03}-{}", group, s), {"core-0", "core-1"}, 0});
    }
  }
  return std::make_shared<const topology::Fabric>(topology::BuildFabric(std::move(nodes), line->declaration));
}

int DrawJobSize(base::Random& random) {
  int draw = int(random.Below(1000));
  for (const JobSize& size : kJobSizes) {
    if ((draw -= size.per_mille) < 0) return size.gpus;
  }
  return kJobSizes.back().gpus;
}

double MeanJobSize() {
  double sum = 0;
  for (const JobSize& size : kJobSizes) sum += double(size.gpus) * size.per_mille / 1000;
  return sum;
}

GangRequest RequestOf(int gpus, int gpus_per_pod) {
  CHECK(gpus > 0 && std::has_single_bit(unsigned(gpus)));
  GangRequest request;
  auto& p = request.parallelism;
  p.tp = std::min(gpus, 8);
  p.pp = gpus >= 4096 ? 16 : gpus >= 1024 ? 8 : gpus >= 512 ? 4 : gpus >= 128 ? 2 : 1;
  p.dp = gpus / p.tp / p.pp;
  PodRequest pod;
  pod.gpus = std::min(gpus, gpus_per_pod);
  pod.resources.milli_cpu = 1000 * pod.gpus;
  request.pods.assign(std::size_t(gpus / pod.gpus), pod);
  return request;
}

NodeState RoomyNode(std::uint32_t free_gpus) {
  NodeState node;
  node.free_gpus = free_gpus;
  node.free_milli_cpu = 192'000;
  node.free_memory_bytes = std::int64_t(2) << 40;
  node.free_pods = 110;
  return node;
}

Churn::Churn(const topology::Fabric& fabric, Ties ties, std::uint64_t seed) : ties_(ties), random_(seed) {
  free_.assign(fabric.nodes.size(), 0);
  rank_.assign(fabric.nodes.size(), 0);
  for (std::size_t n = 0; n < free_.size(); ++n) {
    by_free_[0].insert({0, NodeId(n)});
    node_gpus_ = int(fabric.nodes[n].node.gpus.size());  // all alike
    Set(NodeId(n), (1U << node_gpus_) - 1);
    all_ += std::popcount(free_[n]);
  }
}

void Churn::Set(NodeId node, std::uint32_t free) {
  const auto n = std::size_t(node);
  by_free_[std::size_t(std::popcount(free_[n]))].erase({rank_[n], node});
  free_[n] = free;
  // A new lot whenever it changes, so that no node keeps its luck.
  if (ties_ == Ties::kByLot) rank_[n] = random_.Next();
  by_free_[std::size_t(std::popcount(free))].insert({rank_[n], node});
}

NodeId Churn::TightestNode(int gpus) {
  for (std::size_t free = std::size_t(gpus); free < by_free_.size(); ++free) {
    if (!by_free_[free].empty()) return by_free_[free].begin()->second;
  }
  return topology::kNone;
}

bool Churn::Arrive() {
  const int gpus = DrawJobSize(random_), part = std::min(gpus, node_gpus_);
  std::vector<Part> job;
  for (int left = gpus; left > 0; left -= part) {
    const NodeId node = TightestNode(part);
    if (node == topology::kNone) break;
    std::uint32_t free = free_[std::size_t(node)], taken = 0;
    for (int i = 0; i < part; ++i, free &= free - 1) taken |= free & -free;
    Set(node, free);
    job.push_back({node, taken});
  }
  if (int(job.size()) * part < gpus) {
    for (const Part& held : job) Set(held.node, free_[std::size_t(held.node)] | held.gpus);
    return false;
  }
  held_ += gpus;
  given_ += gpus;
  jobs_.push_back(std::move(job));
  return true;
}

void Churn::LeaveOne() {
  auto& job = jobs_[std::size_t(random_.Below(jobs_.size()))];
  for (const Part& part : job) {
    held_ -= std::popcount(part.gpus);
    Set(part.node, free_[std::size_t(part.node)] | part.gpus);
  }
  std::swap(job, jobs_.back());
  jobs_.pop_back();
}

void Churn::RunAt(int percent) {
  const std::int64_t target = all_ * percent / 100;
  const auto fill = [&] {
    // A job that finds no room is lost; most are small, so others follow that do.
    for (int refused = 0; held_ < target && refused < 1000;) refused += Arrive() ? 0 : 1;
  };
  fill();
  for (given_ = 0; given_ < all_;) {
    while (held_ >= target) LeaveOne();
    fill();
  }
}

std::vector<NodeState> Churn::nodes() const {
  std::vector<NodeState> out;
  out.reserve(free_.size());
  for (const std::uint32_t free : free_) out.push_back(RoomyNode(free));
  return out;
}

int Churn::held_percent() const {
  return int(held_ * 100 / all_);
}

std::vector<Visit> DrawVisits(int gpus, int percent, int ticks, std::uint64_t seed) {
  base::Random random(seed);
  const double life = double(gpus) * percent / 100 / MeanJobSize();
  std::vector<Visit> out;
  out.reserve(std::size_t(ticks));
  for (int t = 0; t < ticks; ++t) {
    const int size = DrawJobSize(random);
    out.push_back({size, t + 1 + int(-std::log(1 - random.Unit()) * life)});
  }
  return out;
}

}  // namespace heddle::peers
