#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/counted.h"
#include "cli/status_parts.h"
#include "crds/fabric.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

using crds::Json;

std::string StatusOf(const Json* condition) {
  return condition == nullptr ? "" : kube::StringAt(*condition, {"status"});
}

// A trouble of a Fabric whose condition says it.
Trouble OfCondition(const Json& fabric, const Json& condition) {
  Trouble trouble{.gravity = Gravity::kWarning, .order = kOfCables, .kind = "Fabric"};
  trouble.names = {kube::Name(fabric)};
  trouble.reason = kube::StringAt(condition, {"type"}) + "/" + kube::StringAt(condition, {"reason"});
  trouble.since = ConditionSince(condition);
  trouble.message = kube::StringAt(condition, {"message"});
  return trouble;
}

// One for each cable that is wrong, and one for all those of which nobody knows.
void AddCables(const Json& fabric, const Json& cabled, std::vector<Trouble>& troubles) {
  const std::size_t before = troubles.size();
  std::size_t doubtful = 0;
  for (const Json& fault : kube::ArrayAt(fabric, {"status", "faults"})) {
    if (kube::StringAt(fault, {"certainty"}) == "Ambiguous") {
      ++doubtful;
      continue;
    }
    Trouble trouble = OfCondition(fabric, cabled);
    trouble.kind = "Port";
    trouble.what = "cabled wrongly";
    trouble.names = {fmt::format("{} {}", kube::StringAt(fault, {"node"}), kube::StringAt(fault, {"nic"}))};
    trouble.message = kube::StringAt(fault, {"sentence"});
    trouble.remedy = "kubectl heddle cables --problems";
    troubles.push_back(std::move(trouble));
  }
  if (troubles.size() != before || doubtful > 0) {
    if (doubtful == 0) return;
    Trouble trouble = OfCondition(fabric, cabled);
    trouble.gravity = Gravity::kNote;
    trouble.what = base::Counted(doubtful, "cable") + " may be wrong";
    if (troubles.size() != before) trouble.message.clear();  // it speaks of those that are wrong
    trouble.remedy = "say which leaf has which rail: spec.leafNames; kubectl heddle cables --problems";
    troubles.push_back(std::move(trouble));
    return;
  }
  // None is named, and it is not well.
  Trouble trouble = OfCondition(fabric, cabled);
  const bool unknown = kube::StringAt(cabled, {"status"}) == "Unknown";
  trouble.gravity = unknown ? Gravity::kNote : Gravity::kWarning;
  trouble.what = unknown ? "cables not known" : "cabled wrongly";
  trouble.remedy = unknown ? "LLDP on nodes and switches, or the agent's way to InfiniBand; docs/nodeagent.md"
                           : "kubectl heddle cables --problems";
  troubles.push_back(std::move(trouble));
}

// What the reasons of a policy's Ready mean.
struct PolicyWords {
  std::string_view reason, what, remedy;
  Gravity gravity;
  bool passes;  // by itself; a warning once it takes long
};
constexpr std::array kPolicyWords{
    PolicyWords{"Refused", "refused", "correct the policy, or the nodes that it names", Gravity::kProblem,
                false},
    PolicyWords{"CanaryStopped", "rollout stopped", "mend the nodes it names, or change the policy",
                Gravity::kProblem, false},
    PolicyWords{"Conflict", "conflict: two want the same", "take one of them back; it applies nowhere else",
                Gravity::kProblem, false},
    PolicyWords{"Failed", "could not be set", "see the ports it names; docs/lossless.md", Gravity::kProblem,
                false},
    PolicyWords{"NotTold", "nodes may not be told", "kubectl heddle doctor names the missing right",
                Gravity::kProblem, false},
    PolicyWords{"PluginNotRun", "its plugin cannot be run", "kubectl heddle doctor names the missing right",
                Gravity::kProblem, false},
    PolicyWords{"NotUnderstood", "not understood", "correct the field it names, or update the operator",
                Gravity::kProblem, false},
    PolicyWords{"Drifted", "drifted", "see who writes these settings; docs/lossless.md", Gravity::kWarning,
                false},
    PolicyWords{"NothingSelected", "selects nothing", "see its nodeSelector, roles and rails",
                Gravity::kWarning, false},
    PolicyWords{"Canary", "being rolled out", "wait", Gravity::kNote, true},
    PolicyWords{"Applying", "being applied", "wait", Gravity::kNote, true},
    PolicyWords{"Waiting", "waits for nodes", "wait; then the logs of the agents it names", Gravity::kNote,
                true},
};

}  // namespace

std::vector<Trouble> FabricTroubles(const Objects& fabrics, bool silence) {
  std::vector<Trouble> troubles;
  for (const Json& fabric : fabrics) {
    const Json* ready = kube::Condition(fabric, "Ready");
    const Json* cabled = kube::Condition(fabric, "Cabled");
    const Json* stale = kube::Condition(fabric, "Stale");
    const Json* complete = kube::Condition(fabric, "Complete");
    const Json* uniform = kube::Condition(fabric, "Uniform");
    if (StatusOf(ready) == "False") {
      Trouble trouble = OfCondition(fabric, *ready);
      const bool empty = kube::StringAt(*ready, {"reason"}) == "NoNodes";
      trouble.gravity = empty ? Gravity::kNote : Gravity::kProblem;
      trouble.what = empty ? "has no nodes" : "spec not in force";
      trouble.remedy = empty ? "delete it if none will come" : "correct what it names";
      troubles.push_back(std::move(trouble));
    }
    if (StatusOf(cabled) == "False" || StatusOf(cabled) == "Unknown") {
      // Without nodes nobody asks for cables.
      if (StatusOf(ready) != "False") AddCables(fabric, *cabled, troubles);
    }
    if (silence && StatusOf(stale) == "True") {
      troubles.push_back(OfCondition(fabric, *stale));
      troubles.back().order = kOfAgents;
      troubles.back().what = "agents silent";
      troubles.back().remedy = "look at their heddle-nodeagent pods";
    }
    if (StatusOf(complete) == "False") {
      troubles.push_back(OfCondition(fabric, *complete));
      troubles.back().order = kOfAgents;
      troubles.back().what = "reports cannot be used";
      troubles.back().remedy = "bring agents and operator to one version";
    }
    if (StatusOf(uniform) == "False") {
      troubles.push_back(OfCondition(fabric, *uniform));
      troubles.back().order = kOfNodes;
      troubles.back().what = "parts are missing";
      troubles.back().remedy = "dmesg there (Xid 79, pciehp); power-cycle it";
    }
    // Of one that does not answer nothing is counted, either.
    const Json* reached = kube::Condition(fabric, "UfmReachable");
    const Json* counted = kube::Condition(fabric, "UfmCounted");
    const bool silent = StatusOf(reached) == "False";
    if (silent || StatusOf(counted) == "False") {
      troubles.push_back(OfCondition(fabric, silent ? *reached : *counted));
      troubles.back().order = kOfSwitches;
      troubles.back().what = silent ? "its UFM does not answer" : "its UFM counts no ports";
      troubles.back().remedy = "see spec.ufm, its Secrets and UFM itself; docs/switches.md";
    }
  }
  return troubles;
}

std::vector<Trouble> PolicyTroubles(const Objects& policies, const std::string& kind, base::WallTime now) {
  std::vector<Trouble> troubles;
  for (const Json& policy : policies) {
    const Json* ready = kube::Condition(policy, "Ready");
    if (StatusOf(ready) != "False") continue;
    Trouble trouble = OfCondition(policy, *ready);
    const std::string reason = kube::StringAt(*ready, {"reason"});
    trouble.kind = kind;
    trouble.order = kOfPolicies;
    trouble.what = "not ready: " + reason;
    trouble.remedy = "kubectl describe it";
    for (const PolicyWords& words : kPolicyWords) {
      if (words.reason != reason) continue;
      trouble.gravity = words.gravity;
      trouble.what = words.what;
      trouble.remedy = words.remedy;
      if (words.passes && trouble.since && now - *trouble.since >= kPatience)
        trouble.gravity = Gravity::kWarning;
    }
    troubles.push_back(std::move(trouble));
  }
  return troubles;
}

}  // namespace heddle::cli
