#include "cli/ground.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "cli/gpu_use.h"
#include "cli/object_documents.h"
#include "crds/fabric_assembly.h"
#include "crds/gang_load.h"
#include "crds/gpu_indexes.h"
#include "kube/object.h"
#include "topology/synthetic.h"

namespace heddle::cli {
namespace {

using base::Code;

using Counts = std::map<std::string, int>;  // GPUs by node

// "node-00=4", and no file's name.
bool SaysCounts(std::string_view taken) {
  return taken.find('=') != std::string_view::npos;
}

base::Result<Counts> ParseCounts(std::string_view text) {
  Counts taken;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    const std::size_t equals = word.find('=');
    int count = -1;
    const char* end = word.data();
    if (equals != std::string_view::npos)
      end = std::from_chars(word.data() + equals + 1, word.data() + word.size(), count).ptr;
    if (equals == 0 || count < 0 || end != word.data() + word.size()) {
      return base::Fail(Code::kInvalid, fmt::format("--taken \"{}\": write NODE=GPUS, as node-00=4", word));
    }
    if (!taken.emplace(word.substr(0, equals), count).second) {
      return base::Fail(Code::kInvalid,
                        fmt::format("--taken: {} stands twice: keep one of them", word.substr(0, equals)));
    }
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return taken;
}

// Null where there is none.
const topology::Node* NodeIn(const std::vector<topology::Fabric>& fabrics, const std::string& name) {
  for (const topology::Fabric& fabric : fabrics) {
    const topology::NodeId id = fabric.FindNode(name);
    if (id != topology::kNone) return &fabric.nodes[std::size_t(id)].node;
  }
  return nullptr;
}

base::Error UnknownTaken(const std::string& name, const std::vector<topology::Fabric>& fabrics) {
  return {Code::kInvalid,
          fmt::format("--taken: there is no node {}; the first is {}", name,
                      fabrics.front().nodes.empty() ? "none" : fabrics.front().nodes.front().node.name),
          std::nullopt};
}

base::Status CheckCounts(const Counts& counts, const std::vector<topology::Fabric>& fabrics) {
  for (const auto& [name, count] : counts) {
    const topology::Node* node = NodeIn(fabrics, name);
    if (node == nullptr) return base::Fail(UnknownTaken(name, fabrics));
    if (count > int(node->gpus.size())) {
      return base::Fail(Code::kInvalid,
                        fmt::format("--taken {}={}: {} has {} GPUs", name, count, name, node->gpus.size()));
    }
  }
  return {};
}

// The nodes on which pods and gangs of these files hold GPUs.
std::vector<std::string> NodesHeld(const ClusterFiles& files) {
  std::vector<std::string> held;
  for (const Json& pod : files.pods) {
    const std::string node = kube::StringAt(pod, {"spec", "nodeName"});
    if (!node.empty() && IsLive(pod) && GpusWanted(pod) > 0) held.push_back(node);
  }
  for (const crds::Gang& gang : files.gangs) {
    if (!gang.status.placement || crds::IsTrue(gang.status.conditions, crds::kEnded)) continue;
    for (const crds::PlacedPod& row : crds::ToRows(*gang.status.placement)) {
      if (row.has_slot()) held.push_back(row.node);
    }
  }
  return held;
}

// What says nothing of GPUs that are taken would leave all of them free, and a wrong answer without a word: a file of
// other objects, or, on a cluster in one line, one of a cluster whose nodes have other names.
base::Status ReadTaken(const GroundOptions& options, const ReadFile& read,
                       const std::vector<topology::Fabric>& fabrics, ClusterFiles& files) {
  ASSIGN_OR_RETURN(const std::string text, read(options.taken), "--taken");
  TRY(IsText(options.taken, text, "the pods of `kubectl get pods -A -o json`"), "--taken");
  const std::size_t holders = files.pods.size() + files.gangs.size();
  const std::size_t others = files.names.size() + files.declared.size();
  files.passed_over.clear();  // those of --topology
  TRY(ReadClusterFile(options.taken, text, files), "--taken");
  const bool has_others = !files.passed_over.empty() || files.names.size() + files.declared.size() > others;
  if (has_others && files.pods.size() + files.gangs.size() == holders) {
    return base::Fail(
        Code::kInvalid,
        fmt::format("--taken: {} holds no Pods and no Gangs; give those of `kubectl get pods -A -o "
                    "json`, or NODE=GPUS, as node-00=4",
                    InputName(options.taken)));
  }
  if (options.synthetic.empty()) return {};
  const std::vector<std::string> held = NodesHeld(files);
  const bool known = std::any_of(held.begin(), held.end(), [&fabrics](const std::string& node) {
    return NodeIn(fabrics, node) != nullptr;
  });
  if (held.empty() || known) return {};
  return base::Fail(UnknownTaken(held.front(), fabrics));
}

base::Result<std::vector<topology::Fabric>> FabricsOf(const GroundOptions& options, ClusterFiles& files) {
  if (!options.synthetic.empty()) {
    ASSIGN_OR_RETURN(topology::Synthetic made, topology::ParseSynthetic(options.synthetic), "--synthetic");
    // Only a file of Pods asks what kubelets said, which weighs as much as the fabric.
    if (!options.taken.empty() && !SaysCounts(options.taken)) {
      for (const topology::Node& node : made.nodes) {
        crds::NodeTopology object;
        object.name = node.name;
        object.status.node = node;
        files.topologies.push_back(std::move(object));
      }
    }
    // No switch joins two sites: each is a fabric of its own, and a gang lies in one.
    std::map<std::string, topology::Declaration> by_site;
    for (const topology::Node& node : made.nodes) by_site.emplace(node.site, made.declaration);
    return topology::BuildFabrics(std::move(made.nodes), by_site);
  }
  std::vector<topology::Node> nodes;
  for (const crds::NodeTopology& topology : files.topologies) {
    nodes.push_back(topology.status.node);
    nodes.back().name = topology.name;
  }
  std::vector<topology::Fabric> fabrics;
  for (auto& [name, fabric] : crds::AssembleFabrics(std::move(nodes), files.declared)) {
    // People may exclude every node of a fabric.
    if (!fabric.nodes.empty()) fabrics.push_back(std::move(fabric));
  }
  return fabrics;
}

// Gives every GPU to the first who claims it: a gang before its own pods, and these before what their kubelet
// says.
class Claims {
 public:
  // The fabrics stay where they are as long as claims are made.
  explicit Claims(const std::vector<topology::Fabric>& fabrics) {
    for (const topology::Fabric& fabric : fabrics) {
      for (const topology::FabricNode& one : fabric.nodes) nodes_[one.node.name] = &one.node;
    }
  }

  void OfGangs(const std::vector<crds::Gang>& gangs) {
    for (std::size_t g = 0; g < gangs.size(); ++g) {
      const crds::Gang& gang = gangs[g];
      if (!gang.status.placement || crds::IsTrue(gang.status.conditions, crds::kEnded)) continue;
      Holder holder{"gang " + gang.ns + "/" + gang.spec.owner.name, {}, int(g)};
      for (const crds::PlacedPod& row : crds::ToRows(*gang.status.placement)) {
        if (const topology::Node* node = Find(row.node)) {
          Claim(holder, row.node, crds::PositionsOf(*node, row.gpus == 0 ? ~0U : row.gpus));
        }
      }
      Keep(std::move(holder));
    }
  }

  void OfPods(const ClusterFiles& files) {
    const auto use = FindGpuUse(files.pods, files.topologies);
    std::vector<const Json*> short_of_gpus;
    for (const Json& pod : files.pods) {
      const auto gpus = use.find(PodId(pod));
      if (gpus == use.end()) {
        if (IsLive(pod) && GpusWanted(pod) > 0) short_of_gpus.push_back(&pod);
        continue;
      }
      Holder holder{"pod " + kube::KeyOf(pod).ToString(), {}};
      Claim(holder, kube::StringAt(pod, {"spec", "nodeName"}), gpus->second.positions);
      Keep(std::move(holder));
    }
    for (const Json* pod : short_of_gpus) OfCrowdedPod(*pod);
  }

  void OfKubelets(const std::vector<crds::NodeTopology>& topologies) {
    for (const crds::NodeTopology& topology : topologies) {
      for (const crds::Grant& grant : topology.status.grants) {
        Holder holder{"pod " + grant.pod_namespace + "/" + grant.pod_name, {}};
        for (const auto& gpu : grant.gpus) {
          if (gpu.index < 0 || gpu.index > 31) continue;
          Claim(holder, topology.name, crds::PositionsOf(topology.status.node, 1U << gpu.index));
        }
        Keep(std::move(holder));
      }
    }
  }

  // The lowest sound GPUs that are left; what is broken nobody else gets either.
  base::Status OfCounts(const Counts& counts) {
    for (const auto& [name, count] : counts) {
      const topology::Node* node = Find(name);
      if (node == nullptr) continue;
      const int all = std::min(int(node->gpus.size()), 32), held = std::popcount(taken_[name]);
      if (count > all - held) {
        return base::Fail(Code::kInvalid,
                          fmt::format("--taken {}={}: the files say that {} of its {} GPUs are "
                                      "taken already",
                                      name, count, held, all));
      }
      std::uint32_t gpus = 0;
      for (int p = 0; p < all && std::popcount(gpus) < count; ++p) {
        if (node->gpus[std::size_t(p)].healthy && (taken_[name] >> p & 1U) == 0) gpus |= 1U << p;
      }
      Holder holder{"others on " + name, {}};
      Claim(holder, name, gpus);
      Keep(std::move(holder));
    }
    return {};
  }

  std::uint32_t TakenOn(const std::string& node) const {
    const auto found = taken_.find(node);
    return found == taken_.end() ? 0 : found->second;
  }
  std::vector<Holder> TakeHolders() { return std::move(holders_); }

 private:
  // One that finds too few sound GPUs on its node holds them all the same: one broke under it. The lowest that are
  // left, sound or not, as the extender counts it.
  void OfCrowdedPod(const Json& pod) {
    const std::string name = kube::StringAt(pod, {"spec", "nodeName"});
    const topology::Node* node = Find(name);
    if (node == nullptr) return;
    const std::uint32_t taken = TakenOn(name);
    const int wanted = GpusWanted(pod);
    std::uint32_t gpus = 0;
    for (std::size_t p = 0; p < node->gpus.size() && p < 32 && std::popcount(gpus) < wanted; ++p) {
      if ((taken >> p & 1U) == 0) gpus |= 1U << p;
    }
    Holder holder{"pod " + kube::KeyOf(pod).ToString(), {}};
    Claim(holder, name, gpus);
    Keep(std::move(holder));
  }
  const topology::Node* Find(const std::string& name) const {
    const auto found = nodes_.find(name);
    return found == nodes_.end() ? nullptr : found->second;
  }
  void Claim(Holder& holder, const std::string& node, std::uint32_t positions) {
    std::uint32_t& taken = taken_[node];
    if ((positions & ~taken) != 0) holder.gpus[node] |= positions & ~taken;
    taken |= positions;
  }
  void Keep(Holder holder) {
    if (!holder.gpus.empty()) holders_.push_back(std::move(holder));
  }

  std::map<std::string_view, const topology::Node*> nodes_;
  std::map<std::string, std::uint32_t> taken_;
  std::vector<Holder> holders_;
};

std::vector<placement::NodeState> StatesOf(const topology::Fabric& fabric, const Claims& claims) {
  std::vector<placement::NodeState> states(fabric.nodes.size());
  for (std::size_t n = 0; n < states.size(); ++n) {
    const topology::Node& node = fabric.nodes[n].node;
    const std::uint32_t taken = claims.TakenOn(node.name);
    states[n].free_milli_cpu = states[n].free_memory_bytes = std::int64_t{1} << 50;
    states[n].free_pods = 1000;
    for (std::size_t p = 0; p < node.gpus.size() && p < 32; ++p) {
      if (node.gpus[p].healthy && (taken >> p & 1U) == 0) states[n].free_gpus |= 1U << p;
    }
  }
  return states;
}

base::Result<Grounds> Assemble(ClusterFiles files, std::vector<topology::Fabric> fabrics,
                               const Counts& counts) {
  Claims claims(fabrics);
  claims.OfGangs(files.gangs);
  claims.OfPods(files);
  claims.OfKubelets(files.topologies);
  TRY(claims.OfCounts(counts));
  std::vector<const crds::Gang*> running;
  for (const crds::Gang& gang : files.gangs) {
    if (!crds::IsTrue(gang.status.conditions, crds::kEnded)) running.push_back(&gang);
  }
  Grounds grounds;
  for (topology::Fabric& fabric : fabrics) {
    std::vector<placement::NodeState> states = StatesOf(fabric, claims);
    Ground ground{std::make_shared<const topology::Fabric>(std::move(fabric)), std::move(states), {}};
    const placement::ClusterState state = ground.State();
    for (const crds::Gang* gang : running) {
      const auto load = crds::LoadOf(state, *gang);
      ground.loads.insert(ground.loads.end(), load.begin(), load.end());
    }
    grounds.fabrics.push_back(std::move(ground));
  }
  grounds.holders = claims.TakeHolders();
  grounds.gangs = std::move(files.gangs);
  return grounds;
}

}  // namespace

placement::ClusterState Ground::State() const {
  return placement::ClusterState(fabric, nodes, loads);
}

base::Result<Grounds> ReadGround(const GroundOptions& options, const ReadFile& read) {
  if (options.synthetic.empty() == options.topology.empty()) {
    return base::Fail(Code::kInvalid, "give either --synthetic LINE or --topology FILE");
  }
  Counts counts;  // before anything large is made
  const bool counted = SaysCounts(options.taken);
  if (counted) {
    ASSIGN_OR_RETURN(counts, ParseCounts(options.taken));
  }
  ClusterFiles files;
  if (options.synthetic.empty()) {
    ASSIGN_OR_RETURN(files, ReadClusterFiles(options.topology, read));
  }
  ASSIGN_OR_RETURN(std::vector<topology::Fabric> fabrics, FabricsOf(options, files));
  if (fabrics.empty()) {
    return base::Fail(Code::kInvalid,
                      "--topology: every node is excluded by its Fabric, so there is nothing to plan on");
  }
  if (!counted && !options.taken.empty()) {
    TRY(ReadTaken(options, read, fabrics, files));
  }
  TRY(CheckCounts(counts, fabrics));
  return Assemble(std::move(files), std::move(fabrics), counts);
}

base::Result<Grounds> GroundsOf(ClusterFiles files) {
  ASSIGN_OR_RETURN(std::vector<topology::Fabric> fabrics, FabricsOf({}, files));
  return Assemble(std::move(files), std::move(fabrics), {});
}

}  // namespace heddle::cli
