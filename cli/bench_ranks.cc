#include "cli/bench_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <utility>
#include <variant>

#include "cli/advice.h"
#include "cli/explain_target.h"
#include "crds/condition.h"
#include "crds/gang_load.h"
#include "crds/parallelism.h"
#include "placement/planner.h"

namespace heddle::cli {
namespace {

using base::Code;
using base::Fail;

bool HasEnded(const crds::Gang& gang) {
  return crds::IsTrue(gang.status.conditions, crds::kEnded);
}

// Of several attempts the last that was placed.
base::Result<const crds::Gang*> FindGang(const BenchOptions& options, const std::vector<crds::Gang>& gangs) {
  ASSIGN_OR_RETURN(const ExplainTarget target, ParseExplainTarget(options.target));
  const crds::Gang* found = nullptr;
  bool waits = false;
  std::set<std::string> others;
  for (const crds::Gang& gang : gangs) {
    if (!options.ns.empty() && gang.ns != options.ns) continue;
    if (!IsGangOf(gang, target)) {
      others.insert("gang/" + gang.name);
    } else if (!gang.status.placement) {
      waits = true;
    } else if (found != nullptr && found->ns != gang.ns) {
      return Fail(Code::kInvalid, fmt::format("{} is there in {} and in {}: say which by -n", options.target,
                                              found->ns, gang.ns));
    } else if (found == nullptr || found->spec.attempt < gang.spec.attempt) {
      found = &gang;
    }
  }
  if (found != nullptr) return found;
  if (waits) {
    return Fail(Code::kNotFound, fmt::format("{} has no places yet; `kubectl heddle explain {}` says why",
                                             options.target, options.target));
  }
  return Fail(Code::kNotFound,
              fmt::format("there is no gang of {}{}: {}", options.target,
                          options.ns.empty() ? "" : " in namespace " + options.ns,
                          others.empty() ? "there are none at all; name nodes instead, by --nodes"
                                         : "there are " + FirstNames(std::vector<std::string>(
                                                              others.begin(), others.end()))));
}

// The cluster as the run would find it: what others send stays, what this gang sends does not.
placement::ClusterState StateWithout(const Ground& ground, const std::vector<crds::Gang>& gangs,
                                     const crds::Gang& left_out) {
  placement::ClusterState state(ground.fabric, ground.nodes);
  std::vector<placement::LeafLoad> loads;
  for (const crds::Gang& gang : gangs) {
    if (&gang == &left_out || HasEnded(gang)) continue;
    const auto load = crds::LoadOf(state, gang);
    loads.insert(loads.end(), load.begin(), load.end());
  }
  state.SetLoads(loads);
  return state;
}

base::Status CheckRanks(std::string_view subject, std::int64_t ranks) {
  if (ranks >= 2) return {};
  return Fail(Code::kInvalid, fmt::format("{} is one GPU, which sends nothing to nobody", subject));
}

base::Result<BenchRanks> OfGang(const BenchOptions& options, const Grounds& grounds) {
  ASSIGN_OR_RETURN(const crds::Gang* gang, FindGang(options, grounds.gangs));
  const std::string subject = fmt::format("gang {}/{}", gang->ns, crds::GangTitle(gang->spec));
  TRY(CheckRanks(subject, gang->spec.gpus()));
  for (const Ground& ground : grounds.fabrics) {
    // Of those ranks that have a slot: the others were done before the gang was placed.
    const auto placed = crds::PlacedOn(*ground.fabric, *gang);
    if (!placed) continue;
    TRY(CheckRanks(subject, placed->request.parallelism.world()));
    std::vector<std::string> nodes;
    for (const placement::PodPlacement& pod : placed->pods)
      nodes.push_back(ground.fabric->nodes[std::size_t(pod.node)].node.name);
    return BenchRanks{.subject = subject,
                      .fabric = Title(*ground.fabric),
                      .roce = ground.fabric->transport == topology::Transport::kRoce,
                      .name = gang->spec.owner.name,
                      .ns = gang->ns,
                      .pods = int(placed->pods.size()),
                      .gpus_per_pod = gang->spec.gpus_per_pod,
                      .gpu_resource = gang->spec.gpu_resource,
                      .nodes = std::move(nodes),
                      .pinned = {},
                      .parallelism = placed->request.parallelism,
                      .model = gang->spec.model,
                      .require = gang->spec.require,
                      .prefer = gang->spec.prefer,
                      .held = !HasEnded(*gang),
                      .over = {StateWithout(ground, grounds.gangs, *gang), placed->pods}};
  }
  return Fail(
      Code::kNotFound,
      fmt::format("{}: no fabric has all of its nodes with the GPUs that it was given; see `kubectl heddle "
                  "status`",
                  subject));
}

struct NamedNodes {
  const Ground* ground = nullptr;
  std::vector<topology::NodeId> ids;  // sorted
  int gpus = 0;                       // of each
};

// By what was looked at: a cluster that is made up has no agents.
base::Error NoNode(const BenchOptions& options, const Grounds& grounds, const std::string& name) {
  if (AsksCluster(options)) {
    return {
        Code::kNotFound,
        fmt::format("--nodes: no agent has reported a node {}; `kubectl heddle topology` lists those that "
                    "there are",
                    name),
        std::nullopt};
  }
  std::vector<std::string> there;
  for (const Ground& ground : grounds.fabrics) {
    for (const auto& node : ground.fabric->nodes) there.push_back(node.node.name);
  }
  const char* given = options.ground.synthetic.empty() ? "--topology" : "--synthetic";
  return {Code::kNotFound,
          fmt::format("--nodes: {} has no node {}; it has {}", given, name, FirstNames(there)), std::nullopt};
}

base::Result<NamedNodes> FindNodes(const BenchOptions& options, const Grounds& grounds) {
  const std::vector<std::string>& names = options.nodes;
  NamedNodes found;
  std::string first;
  for (const std::string& name : names) {
    const auto ground = std::find_if(grounds.fabrics.begin(), grounds.fabrics.end(), [&](const Ground& one) {
      return one.fabric->FindNode(name) != topology::kNone;
    });
    if (ground == grounds.fabrics.end()) {
      return Fail(NoNode(options, grounds, name));
    }
    const topology::NodeId id = ground->fabric->FindNode(name);
    const int gpus = int(ground->fabric->nodes[std::size_t(id)].node.gpus.size());
    if (found.ground == nullptr) {
      found = {&*ground, {}, gpus};
      first = name;
    }
    if (found.ground != &*ground) {
      return Fail(Code::kInvalid,
                  fmt::format("--nodes: {} and {} are on two fabrics, which nothing joins", first, name));
    }
    if (gpus != found.gpus || gpus > crds::kMaxGpusPerPod || gpus == 0) {
      return Fail(Code::kInvalid, fmt::format("--nodes: {} has {} GPUs and {} has {}: name nodes of one size",
                                              first, found.gpus, name, gpus));
    }
    if (std::find(found.ids.begin(), found.ids.end(), id) != found.ids.end())
      return Fail(Code::kInvalid, fmt::format("--nodes: {} stands twice", name));
    found.ids.push_back(id);
  }
  std::sort(found.ids.begin(), found.ids.end());
  return found;
}

// In the order that Heddle would give them: whoever has GPUs there now is gone by then.
base::Result<BenchRanks> OfNodes(const BenchOptions& options, const Grounds& grounds) {
  ASSIGN_OR_RETURN(const NamedNodes named, FindNodes(options, grounds));
  const Ground& ground = *named.ground;
  const std::string subject =
      named.ids.size() == 1 ? "node " + options.nodes.front() : fmt::format("{} nodes", named.ids.size());
  TRY(CheckRanks(subject, std::int64_t(named.ids.size()) * named.gpus));
  std::vector<placement::NodeState> emptied = ground.nodes;
  for (const topology::NodeId id : named.ids) {
    const topology::Node& node = ground.fabric->nodes[std::size_t(id)].node;
    for (std::size_t p = 0; p < node.gpus.size(); ++p)
      if (node.gpus[p].healthy) emptied[std::size_t(id)].free_gpus |= 1U << p;
  }
  placement::ClusterState state(ground.fabric, std::move(emptied), ground.loads);
  placement::GangRequest request;
  request.parallelism.dp = int(named.ids.size()) * named.gpus;
  request.allowed_nodes.push_back(named.ids);
  request.pods.assign(named.ids.size(), {.gpus = named.gpus, .allowed = 0});
  const placement::Decision decision = placement::PlanGang(state, request);
  if (const auto* refusal = std::get_if<placement::Refusal>(&decision)) {
    return Fail(Code::kInvalid,
                fmt::format("--nodes: not all GPUs of these nodes can be used: {}", refusal->sentence));
  }
  const auto& plan = std::get<placement::Plan>(decision);
  std::vector<std::string> nodes;
  for (const placement::PodPlacement& pod : plan.pods)
    nodes.push_back(ground.fabric->nodes[std::size_t(pod.node)].node.name);
  return BenchRanks{.subject = subject,
                    .fabric = Title(*ground.fabric),
                    .roce = ground.fabric->transport == topology::Transport::kRoce,
                    .name = "nodes",
                    .ns = options.ns,
                    .pods = int(named.ids.size()),
                    .gpus_per_pod = named.gpus,
                    .gpu_resource = options.gpu_resource.empty() ? "nvidia.com/gpu" : options.gpu_resource,
                    .nodes = nodes,
                    .pinned = nodes,
                    .parallelism = request.parallelism,
                    .model = {},
                    .require = {},
                    .prefer = {},
                    .held = false,
                    .over = {state, plan.pods}};
}

}  // namespace

base::Result<BenchRanks> RanksOf(const BenchOptions& options, const Grounds& grounds) {
  return options.nodes.empty() ? OfGang(options, grounds) : OfNodes(options, grounds);
}

}  // namespace heddle::cli
