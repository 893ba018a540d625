#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "cli/late_agents.h"
#include "cli/status_parts.h"
#include "crds/condition.h"
#include "crds/keys.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

using crds::Json;

// What `key` means to a person.
struct NodeWords {
  std::string_view key, what, remedy;
  Gravity gravity;
  TroubleOrder order;
};
// Conditions of a NodeTopology that are False. docs/nodeagent.md has all of them.
constexpr std::array kNodeWords{
    NodeWords{"Ready", "report unusable", "install or restart the GPU driver, or see what its report says",
              Gravity::kProblem, kOfGpus},
    NodeWords{"GpusHealthy", "unhealthy GPUs", "reset, power-cycle or replace what it names",
              Gravity::kProblem, kOfGpus},
    NodeWords{"NvlinkFabricHealthy", "NVLink fabric unhealthy",
              "check nvidia-fabricmanager, IMEX and the NVLink switches of the rack", Gravity::kProblem,
              kOfGpus},
    NodeWords{"NvlinksUp", "NVLinks down", "nvidia-smi nvlink -s on the node, then reset the GPU",
              Gravity::kProblem, kOfGpus},
    NodeWords{"NvlinkHealthy", "NVLink errors",
              "nvidia-smi nvlink -e on the node; reset the GPU, reseat the tray or check its switch",
              Gravity::kWarning, kOfGpus},
    NodeWords{"PcieLinksFull", "PCIe links degraded", "reseat or replace what it names", Gravity::kWarning,
              kOfGpus},
    NodeWords{"LinksUp", "links down or slow", "kubectl heddle cables --problems", Gravity::kProblem,
              kOfRails},
    NodeWords{"RdmaMtuEqual", "unequal RDMA MTUs", "set one MTU on the interfaces or leaf ports it names",
              Gravity::kWarning, kOfRails},
    NodeWords{"LeavesKnown", "leaves not known", "LLDP on the switches; kubectl heddle cables --problems",
              Gravity::kWarning, kOfCables},
    NodeWords{"RailsMeasured", "rails not known", "give its agent the cloud's NCCL file: --from-nccl-xml",
              Gravity::kWarning, kOfCables},
    NodeWords{"Lossless", "lossless:", "kubectl get losslesspolicies; docs/lossless.md", Gravity::kWarning,
              kOfPolicies},
    NodeWords{
        "CablesLossless", "cables not lossless",
        "the switch or the host, by what it names: kubectl get fabricswitches -o wide; docs/switches.md",
        Gravity::kWarning, kOfCables},
    NodeWords{"SpecUnderstood", "agent older than its spec", "bring agents and operator to one version",
              Gravity::kWarning, kOfAgents},
    NodeWords{"DevicesAsPlanned", "pods with other devices than planned",
              "delete the pods it names to have them placed anew", Gravity::kWarning, kOfPolicies},
    NodeWords{"RdmaPodsComplete", "RDMA pods incomplete",
              "add to the pods what it names; kubectl heddle check", Gravity::kWarning, kOfPolicies},
    NodeWords{"NcclFilesWritten", "NCCL files not written", "see what its agent says; docs/devices.md",
              Gravity::kWarning, kOfAgents},
    NodeWords{"GrantsKnown", "kubelet does not say who has which GPU",
              "mount /var/lib/kubelet/pod-resources into the agent; docs/nodeagent.md", Gravity::kWarning,
              kOfAgents},
    NodeWords{"DiscoveryComplete", "something could not be read", "see what it names; docs/nodeagent.md",
              Gravity::kNote, kOfAgents},
};

// Where one reason of a condition asks for something else than the others.
struct ReasonWords {
  std::string_view type, reason, what, remedy;
  Gravity gravity;
};
constexpr std::array kReasonWords{
    ReasonWords{"Ready", "BusUnreadable", "GPUs not known",
                "let its agent read /sys/bus/pci, and look at dmesg; docs/nodeagent.md", Gravity::kProblem},
    ReasonWords{"DiscoveryComplete", "Stuck", "agents wait for a call that does not come back",
                "dmesg on the node; reset the card or power-cycle; docs/nodeagent.md", Gravity::kWarning},
    ReasonWords{"NvlinksUp", "LinkSlow", "NVLinks slower than the others",
                "nvidia-smi nvlink -s on the node, then reset the GPU", Gravity::kWarning},
    ReasonWords{"LinksUp", "NicGone", "NICs gone",
                "dmesg on the node; reset, reseat or replace the card; docs/nodeagent.md", Gravity::kProblem},
    ReasonWords{"LeavesKnown", "NoPlaceLabel", "leaves not known",
                "label the Nodes with their place, or give agents a file of labels; docs/nodeagent.md",
                Gravity::kWarning},
};

// By the reason of RailNHealthy.
struct RailWords {
  std::string_view reason, what, remedy;
  Gravity gravity;
};
constexpr std::array kRailWords{
    RailWords{"LinkDown", "down", "the cable or transceiver: kubectl heddle cables --problems",
              Gravity::kProblem},
    RailWords{"Flapping", "flapping", "clean or replace cable and transceiver, then the leaf port",
              Gravity::kProblem},
    RailWords{"PauseStorm", "stopped by pause frames",
              "find the receiver behind the leaf that does not drain; docs/nodeagent.md", Gravity::kProblem},
    RailWords{"LinkErrors", "takes errors", "clean or replace cable and transceiver, then the leaf port",
              Gravity::kWarning},
    RailWords{"PathLoss", "loses packets", "compare the leaves and spines that these nodes share",
              Gravity::kWarning},
    RailWords{"SlowLink", "slower than the others", "reseat or replace cable and transceiver",
              Gravity::kWarning},
    RailWords{"BeingSet", "out of use while its lossless settings are set", "wait; docs/lossless.md",
              Gravity::kNote},
};

// Why no gang may use a node; what is not here, conditions and Leases say.
constexpr std::array kUnusableWords{
    NodeWords{"NotReady", "not ready",
              "look at the machine and its kubelet: kubectl describe node; docs/night.md", Gravity::kProblem,
              kOfNodes},
    NodeWords{"Cordoned", "cordoned", "kubectl uncordon, once it is mended", Gravity::kWarning, kOfNodes},
    NodeWords{"GpuCountMismatch", "GPU count mismatch",
              "restart the GPU vendor's device plugin, or end its time slicing; docs/conditions.md",
              Gravity::kProblem, kOfGpus},
    NodeWords{"NoTopology", "GPUs without a NodeTopology",
              "kubectl heddle doctor: the operator makes it, and the agent on the node reports",
              Gravity::kWarning, kOfAgents},
    NodeWords{"Excluded", "excluded", "to use it, take it out of spec.excludedNodes", Gravity::kNote,
              kOfNodes},
    NodeWords{"NodeGone", "its Node is gone", "nothing: its NodeTopology goes with it", Gravity::kNote,
              kOfNodes},
};

// Since when, and why, as far as the Node itself knows.
void AddWhatTheNodeSays(const Json& node, Trouble& trouble) {
  if (trouble.reason == "Cordoned") {
    for (const Json& taint : kube::ArrayAt(node, {"spec", "taints"})) {
      if (kube::StringAt(taint, {"key"}) == "node.kubernetes.io/unschedulable")
        trouble.since = base::ParseTime(kube::StringAt(taint, {"timeAdded"}));
    }
  } else if (trouble.reason == "NotReady") {
    if (const Json* ready = kube::Condition(node, "Ready")) {
      trouble.since = ConditionSince(*ready);
      trouble.message = kube::StringAt(*ready, {"message"});
    }
  }
}

std::string LookAtAgent() {
  return fmt::format("kubectl -n {} get pods -o wide, and the log of the agent there",
                     crds::keys::kNamespace);
}

// Of a node whose Ready is Unknown nobody knows the GPUs, and no gang gets it.
bool IsBad(const Json& condition) {
  const std::string status = kube::StringAt(condition, {"status"});
  return status == "False" || (status == "Unknown" && kube::StringAt(condition, {"type"}) == crds::kReady);
}

// "3" of "Rail3Healthy"; empty for anything else.
std::string RailOf(std::string_view type) {
  constexpr std::string_view kStart = "Rail", kEnd = "Healthy";
  if (!type.starts_with(kStart) || !type.ends_with(kEnd) || type.size() <= kStart.size() + kEnd.size())
    return "";
  const std::string_view number = type.substr(kStart.size(), type.size() - kStart.size() - kEnd.size());
  return number.find_first_not_of("0123456789") == std::string_view::npos ? std::string(number) : "";
}

Trouble OfRail(const std::string& rail, const std::string& reason) {
  Trouble trouble{.gravity = Gravity::kWarning, .order = kOfRails};
  trouble.what = fmt::format("rail {} {}", rail, reason);
  trouble.remedy = "kubectl describe nt";
  for (const RailWords& words : kRailWords) {
    if (words.reason != reason) continue;
    trouble.gravity = words.gravity;
    trouble.what = fmt::format("rail {} {}", rail, words.what);
    trouble.remedy = words.remedy;
  }
  return trouble;
}

// What agents of another version may say beside the words above is shown by its own name.
Trouble OfCondition(const std::string& type, const std::string& reason) {
  if (const std::string rail = RailOf(type); !rail.empty()) return OfRail(rail, reason);
  Trouble trouble{.gravity = Gravity::kWarning, .order = kOfRest};
  trouble.what = reason.empty() ? "not " + type : fmt::format("not {}: {}", type, reason);
  trouble.remedy = "kubectl describe nt";
  for (const NodeWords& words : kNodeWords) {
    if (words.key != type) continue;
    trouble.gravity = words.gravity;
    trouble.order = words.order;
    trouble.what = words.what;
    trouble.remedy = words.remedy;
  }
  for (const ReasonWords& words : kReasonWords) {
    if (words.type != type || words.reason != reason) continue;
    trouble.gravity = words.gravity;
    trouble.what = words.what;
    trouble.remedy = words.remedy;
  }
  // Here the reason is the news.
  if (type == "Lossless") trouble.what += " " + reason;
  if (type == "Lossless" && (reason == "Conflict" || reason == "Failed")) trouble.gravity = Gravity::kProblem;
  if (type == "Lossless" && reason == "Pending") trouble.gravity = Gravity::kNote;
  return trouble;
}

}  // namespace

std::optional<base::WallTime> ConditionSince(const Json& condition) {
  return base::ParseTime(kube::StringAt(condition, {"lastTransitionTime"}));
}

std::vector<Trouble> NodeTroubles(const Objects& nodes, const std::map<std::string, Unusable>& unusable) {
  std::map<std::string, const Json*> by_name;
  for (const Json& node : nodes) by_name[kube::Name(node)] = &node;
  std::vector<Trouble> troubles;
  for (const auto& one : unusable) {
    const Unusable& why = one.second;
    const auto words = std::find_if(kUnusableWords.begin(), kUnusableWords.end(),
                                    [&why](const NodeWords& of) { return of.key == why.word; });
    // An agent that has not reported is named by its NodeTopology; here is the node that has none.
    if (words == kUnusableWords.end() || (why.word == "NoTopology" && why.message.empty())) continue;
    Trouble trouble{.gravity = words->gravity, .order = words->order, .kind = "Node", .reason = why.word};
    trouble.what = words->what;
    trouble.names = {one.first};
    trouble.message = why.message;
    trouble.remedy = words->remedy;
    if (!why.fabric.empty()) trouble.remedy += " of Fabric " + why.fabric;
    const auto node = by_name.find(one.first);
    if (node != by_name.end()) AddWhatTheNodeSays(*node->second, trouble);
    troubles.push_back(std::move(trouble));
  }
  return troubles;
}

std::vector<Trouble> TopologyTroubles(const Objects& topologies) {
  std::vector<Trouble> troubles;
  for (const Json& object : topologies) {
    const std::string name = kube::Name(object);
    if (kube::StringAt(object, {"status", "observedAt"}).empty()) {
      troubles.push_back({.gravity = Gravity::kWarning, .order = kOfAgents, .kind = "Node"});
      Trouble& none = troubles.back();
      none.reason = "NoReport";
      none.what = "no agent has reported";
      none.names = {name};
      none.since = kube::CreationTimestamp(object);
      none.remedy = LookAtAgent();
      continue;
    }
    const Json& conditions = kube::ArrayAt(object, {"status", "conditions"});
    // The conditions of rails say more of the same links; a NIC that is gone has no rail that could say it.
    const bool rails = std::any_of(conditions.begin(), conditions.end(), [](const Json& one) {
      return IsBad(one) && !RailOf(kube::StringAt(one, {"type"})).empty();
    });
    for (const Json& condition : conditions) {
      const std::string type = kube::StringAt(condition, {"type"});
      const std::string reason = kube::StringAt(condition, {"reason"});
      if (!IsBad(condition) || type.empty() || (rails && type == "LinksUp" && reason != "NicGone")) continue;
      Trouble trouble = OfCondition(type, reason);
      trouble.kind = "Node";
      trouble.reason = reason.empty() ? type : fmt::format("{}/{}", type, reason);
      trouble.names = {name};
      trouble.since = ConditionSince(condition);
      trouble.message = kube::StringAt(condition, {"message"});
      troubles.push_back(std::move(trouble));
    }
  }
  return troubles;
}

std::vector<Trouble> SilentAgents(const Objects& topologies, const Objects& leases, base::WallTime now) {
  const std::map<std::string, AgentRenewal> renewals = AgentRenewals(leases, now);
  std::vector<Trouble> troubles;
  for (const Json& object : topologies) {
    if (kube::StringAt(object, {"status", "observedAt"}).empty()) continue;  // said already
    const std::string name = kube::Name(object);
    const auto renewal = renewals.find(name);
    if (renewal != renewals.end() && !renewal->second.late) continue;
    Trouble trouble{.gravity = Gravity::kWarning, .order = kOfAgents, .kind = "Node"};
    trouble.reason = "AgentSilent";
    trouble.what = "agent silent";
    trouble.names = {name};
    if (renewal != renewals.end()) trouble.since = renewal->second.at;
    trouble.remedy = LookAtAgent();
    troubles.push_back(std::move(trouble));
  }
  return troubles;
}

}  // namespace heddle::cli
