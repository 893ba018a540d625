// Both ends of every cable of a fabric as the operator compares them whenever a switch or a node says something new: from
// objects and answers to what is to stand in the specs of nodes and the statuses of switches. lossless_bench has the
// comparison alone, of settings that are numbered already.
// build/release/bin/verdicts_bench --benchmark_repetitions=5
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lossless/render.h"
#include "lossless/switch_render.h"
#include "operator/kept_verdicts.h"
#include "operator/switch_verdicts.h"
#include "switches/cables.h"

namespace heddle::operators {
namespace {

using lossless::PortSettings;

// Of a scalable unit: a leaf for each rail, and the hosts on each of them; a leaf's other ports go up.
constexpr int kRails = 8, kHostsOfUnit = 32, kPortsOfLeaf = 64;

struct Fabric {
  std::vector<crds::FabricSwitch> fabric_switches;
  SwitchAnswers answers;
  std::vector<CabledNode> nodes;
  Policies<crds::LosslessPolicy> policies;
  base::WallTime now = *base::ParseTime("2026-11-24T02:00:00Z");
};

std::string NodeName(int host) {
  return fmt::format("gpu-{:05}.dc1.example", host);
}
std::string LeafName(int unit, int rail) {
  return fmt::format("su{:02}-leaf-rail{}", unit, rail);
}

// Settings of both ends differ by their MTU: so many kinds of each, by host.
PortSettings WithMtu(PortSettings settings, int mtu) {
  settings.mtu = mtu;
  return settings;
}

// All NICs of a host are set alike, so that its report has one entry; LLDP says the alias, as SONiC's does.
std::shared_ptr<const crds::NodeTopology> Host(int host, const PortSettings& have) {
  crds::NodeTopology node;
  node.name = node.status.node.name = NodeName(host);
  std::vector<std::string> ports;
  for (int rail = 0; rail < kRails; ++rail) {
    topology::Nic nic;
    nic.name = fmt::format("mlx5_{}", rail);
    nic.netdev = fmt::format("rdma{}", rail);
    nic.transport = topology::Transport::kRoce;
    nic.role = topology::NicRole::kCompute;
    nic.rail = rail;
    nic.mtu = 9000;
    topology::NicPort port;
    port.state = topology::LinkState::kActive;
    port.rate_gbps = port.usable_gbps = 400;
    port.leaf_port = topology::LeafPort{LeafName(host / kHostsOfUnit, rail),
                                        fmt::format("etp{}", host % kHostsOfUnit + 1)};
    nic.ports.push_back(std::move(port));
    node.status.node.nics.push_back(std::move(nic));
    ports.push_back(fmt::format("mlx5_{}:1", rail));
  }
  crds::LosslessWish wish;
  wish.ports = ports;
  wish.policies = {"roce"};
  wish.settings = have;
  node.spec.lossless = {std::move(wish)};
  crds::LosslessReport report;
  report.ports = std::move(ports);
  report.edition.policy = "roce";
  report.state = crds::LosslessState::kCompliant;
  report.have = have;
  report.fec = lossless::Fec::kReedSolomon;
  node.status.lossless = {std::move(report)};
  return std::make_shared<const crds::NodeTopology>(std::move(node));
}

// What a leaf says of its ports, and whom it sees on those of them that hosts are on.
SwitchAnswer Leaf(int unit, int rail, int hosts, int kinds, bool wrong, const PortSettings& right) {
  switches::SonicAnswer said;
  switches::Neighbours seen;
  said.config.hostname = LeafName(unit, rail);
  for (int i = 0; i < kPortsOfLeaf; ++i) {
    const int host = unit * kHostsOfUnit + i;
    formats::SonicPort port;
    port.name = fmt::format("Ethernet{}", 8 * i);
    port.alias = fmt::format("etp{}", i + 1);
    port.settings = WithMtu(right, 9216 - host % kinds);
    if (wrong) (*port.settings.dscp_to_priority)[26] = 0;
    port.speed_mbps = 400'000;
    port.fec = "rs";
    if (i < kHostsOfUnit && host < hosts) {
      switches::Neighbour& neighbour = seen[port.name];
      neighbour.system = NodeName(host);
      neighbour.port_id = fmt::format("rdma{}", rail);
    }
    said.config.ports.push_back(std::move(port));
  }
  SwitchAnswer answer;
  answer.config = std::make_shared<const switches::SonicAnswer>(std::move(said));
  answer.neighbours = std::make_shared<const switches::Neighbours>(std::move(seen));
  answer.connecting = false;
  return answer;
}

// `wrong`: one leaf in so many puts data into a lossy class; 0 = none does.
Fabric MakeFabric(int cables, int kinds, int wrong) {
  const auto resolved = lossless::Resolve({});
  lossless::PortFacts facts;
  facts.transport = topology::Transport::kRoce;
  PortSettings have = *lossless::Render(*resolved, facts).settings;
  have.watchdog_ms = 100;
  PortSettings right =
      lossless::RenderSwitchPort(*resolved, *lossless::FindSwitchProfile("sonic/v1"), {}).settings;
  right.buffer_bytes.emplace().fill(lossless::kNotSaid);
  (*right.buffer_bytes)[3] = 165'888;
  right.lossless_queues = lossless::PrioritySet{3};
  const int hosts = cables / kRails, units = (hosts + kHostsOfUnit - 1) / kHostsOfUnit;
  Fabric fabric;
  for (int host = 0; host < hosts; ++host)
    fabric.nodes.push_back({NodeName(host), Host(host, WithMtu(have, 9000 - host % kinds))});
  for (int leaf = 0; leaf < units * kRails; ++leaf) {
    const int unit = leaf / kRails, rail = leaf % kRails;
    crds::FabricSwitch object;
    object.name = object.spec.name = LeafName(unit, rail);
    object.spec.address = object.name + ":8080";
    SwitchAnswer answer = Leaf(unit, rail, hosts, kinds, wrong > 0 && leaf % wrong == 0, right);
    answer.read_at = answer.saw_at = fabric.now - std::chrono::seconds(5);
    fabric.answers.emplace(object.name, std::move(answer));
    fabric.fabric_switches.push_back(std::move(object));
  }
  crds::LosslessPolicy policy;
  policy.name = "roce";
  fabric.policies.read = {policy};
  return fabric;
}

void CountVerdicts(const SwitchVerdicts& verdicts, benchmark::State& bench) {
  crds::CableCounts sum;
  for (const auto& [node, verdict] : verdicts.nodes) {
    sum.lossless += verdict->counts.lossless;
    sum.contradicting += verdict->counts.contradicting;
    sum.unproved += verdict->counts.unproved;
  }
  bench.counters["lossless"] = double(sum.lossless);
  bench.counters["contradicting"] = double(sum.contradicting);
  bench.counters["unproved"] = double(sum.unproved);
}

// What the first look of an operator costs: nothing of one before is kept.
void WholeLook(benchmark::State& bench) {
  const Fabric fabric = MakeFabric(int(bench.range(0)), int(bench.range(1)), int(bench.range(2)));
  const Silent silent{};
  const auto decide = [&] {
    return DecideVerdicts(fabric.fabric_switches, fabric.answers, fabric.nodes, fabric.policies, silent,
                          fabric.now);
  };
  for (auto _ : bench) benchmark::DoNotOptimize(decide());
  CountVerdicts(decide(), bench);
}
BENCHMARK(WholeLook)
    ->ArgNames({"cables", "kinds", "wrong"})
    ->Args({1024, 4, 0})
    ->Args({4096, 4, 0})
    ->Args({16'384, 4, 0})
    ->Args({16'384, 4, 8})
    ->Args({16'384, 256, 0})
    ->Unit(benchmark::kMillisecond);

// What a look costs after one that saw the same but for what `change` does, which is told the turn: every other time it
// has to bring back what was. What had to be written stands in the objects.
template <class Change>
void LookAgain(benchmark::State& bench, Change change) {
  Fabric fabric = MakeFabric(int(bench.range(0)), 4, 0);
  const Silent silent{};
  KeptVerdicts kept;
  const auto look = [&] {
    return kept.Look(fabric.fabric_switches, fabric.answers, fabric.nodes, fabric.policies, silent,
                     fabric.now);
  };
  const SwitchVerdicts first = look();
  for (crds::FabricSwitch& object : fabric.fabric_switches) object.status = first.statuses.at(object.name);
  for (CabledNode& node : fabric.nodes) {
    auto written = std::make_shared<crds::NodeTopology>(*node.topology);
    written->spec.cables = first.nodes.at(node.name)->reports;
    node.topology = std::move(written);
  }
  auto turn = change(fabric);
  benchmark::DoNotOptimize(look());
  bool back = false;
  for (auto _ : bench) {
    turn(back);
    back = !back;
    benchmark::DoNotOptimize(look());
  }
  CountVerdicts(look(), bench);
}

void LookWhereNothingChanged(benchmark::State& bench) {
  LookAgain(bench, [](Fabric&) { return [](bool) {}; });
}

// All 32 cables of hosts that end there contradict, and do not.
void LookWhereOneSwitchChanged(benchmark::State& bench) {
  LookAgain(bench, [](Fabric& fabric) {
    SwitchAnswer& answer = fabric.answers.begin()->second;
    const auto right = answer.config;
    switches::SonicAnswer said = *right;
    for (formats::SonicPort& port : said.config.ports) (*port.settings.dscp_to_priority)[26] = 0;
    const auto wrong = std::make_shared<const switches::SonicAnswer>(std::move(said));
    return [&answer, right, wrong](bool back) { answer.config = back ? right : wrong; };
  });
}

// One node in a hundred says something else than before, as `change` has it.
template <class Change>
void LookWhereNodesChanged(benchmark::State& bench, Change change) {
  LookAgain(bench, [&change](Fabric& fabric) {
    using Topology = std::shared_ptr<const crds::NodeTopology>;
    std::vector<std::pair<CabledNode*, std::pair<Topology, Topology>>> nodes;
    for (std::size_t i = 0; i < fabric.nodes.size(); i += 100) {
      CabledNode& node = fabric.nodes[i];
      auto other = std::make_shared<crds::NodeTopology>(*node.topology);
      change(*other);
      nodes.emplace_back(&node, std::pair<Topology, Topology>(node.topology, other));
    }
    return [nodes](bool back) {
      for (const auto& [node, topologies] : nodes)
        node->topology = back ? topologies.first : topologies.second;
    };
  });
}

void LookWhereOneNodeInAHundredChanged(benchmark::State& bench) {
  LookWhereNodesChanged(bench, [](crds::NodeTopology& node) { node.status.lossless[0].have->mtu = 4200; });
}

// A cable of each of them ends elsewhere: LLDP is held against LLDP anew, of all cables.
void LookWhereOneNodeInAHundredMovedACable(benchmark::State& bench) {
  LookWhereNodesChanged(bench, [](crds::NodeTopology& node) {
    node.status.node.nics[0].ports[0].leaf_port = topology::Missing::kUnknown;
  });
}

void Cables(benchmark::internal::Benchmark* bench) {
  bench->ArgName("cables")->Arg(1024)->Arg(4096)->Arg(16'384)->Unit(benchmark::kMillisecond);
}
BENCHMARK(LookWhereNothingChanged)->Apply(Cables);
BENCHMARK(LookWhereOneSwitchChanged)->Apply(Cables);
BENCHMARK(LookWhereOneNodeInAHundredChanged)->Apply(Cables);
BENCHMARK(LookWhereOneNodeInAHundredMovedACable)->Apply(Cables);

// Of a whole look what takes the cables alone: settings are numbered, ports found, both ends compared, LLDP held against LLDP.
void BothEnds(benchmark::State& bench) {
  const Fabric fabric = MakeFabric(int(bench.range(0)), int(bench.range(1)), 0);
  std::vector<const crds::NodeTopology*> nodes;
  for (const CabledNode& node : fabric.nodes) nodes.push_back(node.topology.get());
  std::vector<switches::KnownSwitch> known;
  for (const crds::FabricSwitch& object : fabric.fabric_switches) {
    const SwitchAnswer& answer = fabric.answers.at(object.name);
    switches::KnownSwitch one;
    one.name = object.spec.name;
    one.config = &answer.config->config;
    one.neighbours = answer.neighbours.get();
    known.push_back(std::move(one));
  }
  for (auto _ : bench) benchmark::DoNotOptimize(switches::CompareBothEnds(nodes, known));
  bench.SetItemsProcessed(std::int64_t(bench.iterations()) * bench.range(0));
}
BENCHMARK(BothEnds)
    ->ArgNames({"cables", "kinds"})
    ->Args({1024, 4})
    ->Args({4096, 4})
    ->Args({16'384, 4})
    ->Args({16'384, 256})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace heddle::operators
