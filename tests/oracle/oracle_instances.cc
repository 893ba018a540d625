// Draws instances by seed, asks the planner, and prints one JSON line each; tests/oracle/run judges them.
//
//   oracle_instances --seed 1 --count 50 --nodes-max 16     instances, the planner's answers and their spread
//   oracle_instances --seed 1 --count 50 --brute-force      at most 8 nodes: the planner's price and the least there is
//   oracle_instances --evaluate --nodes-max 16              reads {"seed", "nodes": [node by pod]}, prices them
#include <CLI/CLI.hpp>
#include <array>
#include <bit>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/oracle/brute_force.h"
#include "tests/oracle/instance.h"

namespace heddle::oracle {
namespace {

using nlohmann::json;
using placement::Axis;
using placement::ClusterState;
using placement::GangRequest;
using placement::PodPlacement;

ClusterState StateOf(const Instance& instance) {
  return ClusterState(std::make_shared<const topology::Fabric>(instance.fabric), instance.nodes);
}

json AsJson(const Instance& instance) {
  json nodes = json::array(), pods = json::array(), require = json::array(), leaf_of_gpu = json::array();
  for (std::size_t n = 0; n < instance.nodes.size(); ++n) {
    const auto& where = instance.fabric.nodes[n];
    const auto& node = instance.nodes[n];
    json leaves = json::array();
    for (const auto& uplink : where.uplinks) leaves.push_back(uplink.leaf);
    const auto& spines = instance.fabric.leaves[std::size_t(where.uplinks.front().leaf)].spines;
    nodes.push_back({{"free", std::popcount(node.free_gpus)},
                     {"mask", node.free_gpus},
                     {"unit", where.unit},
                     {"domain", where.domain},
                     {"spine", spines.front()},
                     {"cpu", node.free_milli_cpu},
                     {"pods", node.free_pods},
                     {"usable", node.unusable.empty()},
                     {"leaves", std::move(leaves)}});
  }
  for (const auto& pod : instance.request.pods) {
    pods.push_back(
        {{"gpus", pod.gpus}, {"cpu", pod.resources.milli_cpu}, {"listed", pod.allowed.has_value()}});
  }
  for (const auto& r : instance.request.require)
    require.push_back({std::string(AxisName(r.axis)), std::string(LevelName(r.level))});
  const auto& p = instance.request.parallelism;
  json order = json::array();
  for (Axis axis : p.order) order.push_back(std::string(AxisName(axis)));
  const auto& lists = instance.request.allowed_nodes;
  return {{"nodes", std::move(nodes)},
          {"pods", std::move(pods)},
          {"require", std::move(require)},
          {"allowed", lists.empty() ? json(nullptr) : json(lists.front())},
          {"sizes",
           {{"tp", p.tp},
            {"cp", p.cp},
            {"dp", p.dp},
            {"pp", p.pp},
            {"ep", p.ep},
            {"etp", p.etp},
            {"fsdp", p.fsdp}}},
          {"order", std::move(order)}};
}

struct AxisReach {
  Axis axis;
  std::size_t units = 0, domains = 0;
};

// By axis with groups: the most units, and the most NVLink domains, that one group touches. A node without a domain
// is one.
std::vector<AxisReach> ReachOf(const Instance& instance, const std::vector<PodPlacement>& pods) {
  std::vector<topology::NodeId> node_of_rank;
  for (const PodPlacement& pod : pods)
    node_of_rank.insert(node_of_rank.end(), std::size_t(std::popcount(pod.gpus)), pod.node);
  std::vector<AxisReach> out;
  for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kEp, Axis::kDp, Axis::kPp, Axis::kFsdp}) {
    if (instance.request.parallelism.size(axis) < 2) continue;
    AxisReach reach{axis};
    for (const auto& group : Groups(instance.request.parallelism, axis)) {
      std::set<int> units, domains;
      for (std::int32_t rank : group) {
        const topology::NodeId node = node_of_rank[std::size_t(rank)];
        const auto& where = instance.fabric.nodes[std::size_t(node)];
        units.insert(where.unit);
        domains.insert(where.domain == topology::kNone ? -1 - node : where.domain);
      }
      reach.units = std::max(reach.units, units.size());
      reach.domains = std::max(reach.domains, domains.size());
    }
    out.push_back(reach);
  }
  return out;
}

json SpreadOf(const Instance& instance, const std::vector<PodPlacement>& pods) {
  json out = json::object();
  for (const AxisReach& reach : ReachOf(instance, pods))
    out[std::string(AxisName(reach.axis))] = {reach.units, reach.domains};
  return out;
}

// As `weighed` in tests/oracle/instances.py.
std::int64_t WeighedSpread(const Instance& instance, const std::vector<PodPlacement>& pods) {
  static const std::map<Axis, std::int64_t> kWeights{{Axis::kTp, 384},  {Axis::kEp, 384}, {Axis::kCp, 96},
                                                     {Axis::kFsdp, 48}, {Axis::kDp, 24},  {Axis::kPp, 1}};
  std::int64_t sum = 0;
  for (const AxisReach& reach : ReachOf(instance, pods))
    sum += kWeights.at(reach.axis) * std::int64_t(reach.units + reach.domains);
  return sum;
}

json Answer(const Instance& instance, const placement::Decision& decision) {
  if (const auto* refusal = std::get_if<placement::Refusal>(&decision)) {
    return {{"refusal", std::string(RefusalReasonName(refusal->reason))}, {"sentence", refusal->sentence}};
  }
  const auto& plan = std::get<placement::Plan>(decision);
  json pods = json::array();
  for (const PodPlacement& pod : plan.pods) pods.push_back({pod.node, pod.gpus});
  return {{"pods", std::move(pods)},
          {"micros", plan.quality.step_micros},
          {"spread", SpreadOf(instance, plan.pods)}};
}

// The least price with pods on these nodes, as the planner chooses their GPUs and as they come in order.
json PriceOn(const Instance& instance, const std::vector<int>& node_of_pod) {
  ClusterState state = StateOf(instance);
  GangRequest pinned = instance.request;
  pinned.allowed_nodes.clear();
  std::vector<std::uint32_t> free;
  for (const auto& node : instance.nodes) free.push_back(node.free_gpus);
  std::vector<PodPlacement> in_order;
  for (std::size_t p = 0; p < pinned.pods.size(); ++p) {
    const auto node = std::size_t(node_of_pod.at(p));
    pinned.pods[p].allowed = std::uint32_t(p);
    pinned.allowed_nodes.push_back({topology::NodeId(node)});
    PodPlacement place{topology::NodeId(node), 0};
    for (int g = 0; g < pinned.pods[p].gpus; ++g) {
      const std::uint32_t lowest = free[node] & -free[node];
      place.gpus |= lowest;
      free[node] &= ~lowest;
    }
    in_order.push_back(place);
  }
  json out{{"in_order", Evaluate(state, instance.request, in_order).step_micros}};
  out["micros"] = out["in_order"];
  if (const auto decision = PlanGang(state, pinned);
      const auto* plan = std::get_if<placement::Plan>(&decision)) {
    const std::int64_t micros = Evaluate(state, instance.request, plan->pods).step_micros;
    out["planned"] = micros;
    out["micros"] = std::min<std::int64_t>(micros, out["in_order"]);
  }
  return out;
}

void PrintInstances(std::uint64_t first, int count, int nodes_max) {
  for (std::uint64_t seed = first; seed < first + std::uint64_t(count); ++seed) {
    const Instance instance = MakeInstance(seed, nodes_max);
    ClusterState state = StateOf(instance);
    json line = AsJson(instance);
    line["seed"] = seed;
    line["nodes_max"] = nodes_max;
    line["answer"] = Answer(instance, PlanGang(state, instance.request));
    std::cout << line << "\n";
  }
}

void PrintBruteForce(std::uint64_t first, int count, std::int64_t budget) {
  for (std::uint64_t seed = first; seed < first + std::uint64_t(count); ++seed) {
    const Instance instance = MakeTinyInstance(seed);
    ClusterState state = StateOf(instance);
    const placement::Decision decision = PlanGang(state, instance.request);
    const auto* plan = std::get_if<placement::Plan>(&decision);
    const auto spread = [&](const std::vector<PodPlacement>& pods) { return WeighedSpread(instance, pods); };
    const Truth truth = PriceEverything(state, instance.request, budget,
                                        plan != nullptr ? plan->quality.step_micros : 0, spread);
    json line{{"seed", seed}, {"complete", truth.complete}, {"feasible", truth.feasible}};
    if (truth.feasible) line["best"] = truth.best_micros;
    line["answer"] = Answer(instance, decision);
    if (plan != nullptr) {
      line["spread"] = spread(plan->pods);
      line["as_fast"] = truth.as_fast_spread;
      line["near"] = truth.near_spread;
    }
    std::cout << line << "\n";
  }
}

int Main(int argc, char** argv) {
  CLI::App app("Instances for the exact oracle of placement");
  std::uint64_t seed = 1;
  int count = 1, nodes_max = 16;
  std::int64_t budget = 100'000;
  bool evaluate = false, brute_force = false;
  app.add_option("--seed", seed, "of the first instance; those that follow have the next ones");
  app.add_option("--count", count)->check(CLI::Range(1, 1'000'000));
  app.add_option("--nodes-max", nodes_max)->check(CLI::Range(2, 4096));
  app.add_option("--budget", budget, "assignments that brute force prices before it gives up");
  app.add_flag("--evaluate", evaluate, "price the assignments read from standard input");
  app.add_flag("--brute-force", brute_force, "instances of at most 8 nodes, all their assignments priced");
  CLI11_PARSE(app, argc, argv);
  if (brute_force) {
    PrintBruteForce(seed, count, budget);
    return 0;
  }
  if (!evaluate) {
    PrintInstances(seed, count, nodes_max);
    return 0;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const json asked = json::parse(line);
    json out = PriceOn(MakeInstance(asked.at("seed"), nodes_max), asked.at("nodes"));
    out["seed"] = asked.at("seed");
    std::cout << out << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace heddle::oracle

int main(int argc, char** argv) {
  return heddle::oracle::Main(argc, argv);
}
