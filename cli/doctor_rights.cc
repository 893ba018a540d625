#include <fmt/format.h>

#include <map>

#include "base/counted.h"
#include "cli/advice.h"
#include "cli/doctor_parts.h"
#include "crds/keys.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;

constexpr std::string_view kLeases = "coordination.k8s.io";  // their group

// What one account does with kinds of one group.
struct Use {
  std::string_view component, group;
  std::vector<std::string_view> resources;  // "pods", "pods/eviction"
  std::vector<std::string_view> verbs;
  Option option = Option::kAny;
  bool namespaced = false;     // in Heddle's own namespace
  std::string_view name = {};  // of the one object
};

std::vector<NeededRight> RightsOf(const std::vector<Use>& uses) {
  std::vector<NeededRight> rights;
  for (const Use& use : uses) {
    for (const std::string_view resource : use.resources) {
      const std::size_t slash = resource.find('/');
      for (const std::string_view verb : use.verbs) {
        NeededRight right;
        right.component = use.component;
        right.verb = verb;
        right.group = use.group;
        right.resource = resource.substr(0, slash);
        if (slash != std::string_view::npos) right.subresource = resource.substr(slash + 1);
        right.name = use.name;
        right.namespaced = use.namespaced;
        right.option = use.option;
        rights.push_back(std::move(right));
      }
    }
  }
  return rights;
}

// What charts/heddle/templates/rbac.yaml grants; tests/unit/cli/doctor_test.cc holds the two against each other.
std::vector<Use> UsesOfNodeagent() {
  constexpr std::string_view kWho = "nodeagent";
  return {
      {kWho, keys::kGroup, {"nodetopologies"}, {"watch"}},
      {kWho, keys::kGroup, {"nodetopologies/status"}, {"update"}},
      {kWho, "", {"events"}, {"create", "patch"}},
      {kWho, kLeases, {"leases"}, {"get", "create", "update"}, Option::kAny, true, "heddle-node-example"},
      {kWho, "", {"pods"}, {"list"}, Option::kFollowedPlans},
  };
}

std::vector<Use> UsesOfOperator() {
  constexpr std::string_view kWho = "operator";
  return {
      {kWho, "", {"nodes"}, {"list", "patch"}},
      {kWho, keys::kGroup, {"nodetopologies"}, {"list", "create", "patch", "delete"}},
      {kWho, keys::kGroup, {"fabrics"}, {"list", "create", "delete"}},
      {kWho, keys::kGroup, {"losslesspolicies", "rdmadevicepolicies", "fabricswitches", "gangs"}, {"list"}},
      {kWho,
       keys::kGroup,
       {"fabrics/status", "losslesspolicies/status", "rdmadevicepolicies/status", "fabricswitches/status"},
       {"patch"}},
      {kWho, "", {"events"}, {"create", "patch"}},
      // The agents' heartbeats, and its own election.
      {kWho, kLeases, {"leases"}, {"list"}, Option::kAny, true},
      {kWho, kLeases, {"leases"}, {"get", "create", "update"}, Option::kAny, true, keys::kOperatorLease},
      {kWho, "", {"configmaps"}, {"list", "create", "patch", "delete"}, Option::kOtherPlugins, true},
      {kWho, "apps", {"daemonsets"}, {"list", "create", "patch", "delete"}, Option::kOtherPlugins, true},
  };
}

std::vector<Use> UsesOfExtender() {
  constexpr std::string_view kWho = "extender";
  return {
      {kWho, "", {"nodes", "pods"}, {"list"}},
      {kWho, "", {"pods"}, {"patch"}, Option::kPlacing},
      {kWho, "", {"persistentvolumeclaims", "persistentvolumes"}, {"get"}, Option::kPlacing},
      // Whatever makes the pods of a gang. A kind that is not served may be asked about, too.
      {kWho, "batch", {"jobs"}, {"list"}},
      {kWho, "apps", {"statefulsets"}, {"list"}},
      {kWho, "jobset.x-k8s.io", {"jobsets"}, {"list"}},
      {kWho, "kubeflow.org", {"pytorchjobs", "mpijobs"}, {"list"}},
      {kWho, "leaderworkerset.x-k8s.io", {"leaderworkersets"}, {"list"}},
      {kWho, "ray.io", {"rayclusters"}, {"list"}},
      {kWho, "scheduling.k8s.io", {"podgroups"}, {"list"}},
      {kWho, "batch", {"jobs"}, {"patch"}, Option::kPreemption},
      {kWho, "jobset.x-k8s.io", {"jobsets"}, {"patch"}, Option::kPreemption},
      {kWho, "kubeflow.org", {"pytorchjobs", "mpijobs"}, {"patch"}, Option::kPreemption},
      {kWho, "ray.io", {"rayclusters"}, {"patch"}, Option::kPreemption},
      {kWho, "ray.io", {"rayjobs"}, {"list", "patch"}, Option::kPreemption},
      {kWho, "trainer.kubeflow.org", {"trainjobs"}, {"list", "patch"}, Option::kPreemption},
      {kWho, "", {"pods/eviction"}, {"create"}, Option::kPreemption},
      {kWho, "", {"configmaps"}, {"get", "create", "update"}, Option::kPlacing},
      {kWho, "resource.nvidia.com", {"computedomains"}, {"get", "create"}, Option::kComputeDomains},
      {kWho, "resource.k8s.io", {"resourceclaims"}, {"list"}, Option::kComputeDomains},
      {kWho, keys::kGroup, {"nodetopologies", "fabrics"}, {"list"}},
      {kWho, keys::kGroup, {"gangs"}, {"list", "create", "delete"}},
      {kWho, keys::kGroup, {"gangs/status"}, {"update"}},
      {kWho, "", {"events"}, {"list", "create", "patch"}},
      // The agents' heartbeats, and whether the scheduler beside it leads.
      {kWho, kLeases, {"leases"}, {"list"}, Option::kAny, true},
      {kWho, kLeases, {"leases"}, {"get"}, Option::kAny, true, keys::kSchedulerLease},
      {kWho, kLeases, {"leases"}, {"create", "update"}, Option::kObserving, true, keys::kSchedulerLease},
  };
}

// Most of it is Kubernetes' own role system:kube-scheduler, of which two verbs tell whether it is bound.
std::vector<Use> UsesOfScheduler() {
  constexpr std::string_view kWho = "scheduler";
  return {
      {kWho, "", {"nodes"}, {"list"}, Option::kPlacing},
      {kWho, "", {"pods/binding"}, {"create"}, Option::kPlacing},
      {kWho, kLeases, {"leases"}, {"get", "create", "update"}, Option::kPlacing, true, keys::kSchedulerLease},
  };
}

}  // namespace

std::string NeededRight::Title() const {
  std::string title = fmt::format("{} {}", verb, resource);
  if (!group.empty()) title += "." + group;
  if (!subresource.empty()) title += "/" + subresource;
  return title + (name.empty() ? "" : " " + name);
}

const std::vector<NeededRight>& NeededRights() {
  static const std::vector<NeededRight> rights = [] {
    std::vector<NeededRight> all;
    for (const auto& uses : {UsesOfNodeagent(), UsesOfOperator(), UsesOfExtender(), UsesOfScheduler()}) {
      for (NeededRight& one : RightsOf(uses)) all.push_back(std::move(one));
    }
    return all;
  }();
  return rights;
}

bool IsNeeded(const NeededRight& right, const Installation& installed) {
  return installed.options.contains(right.option);
}

void CheckRights(const DoctorReading& reading, const Installation& installed, Findings& findings) {
  std::map<std::string, std::vector<std::string>> missing;  // by component
  std::size_t looked = 0;
  const base::Error* unknown = nullptr;
  for (const Right& one : reading.rights) {
    if (!IsNeeded(one.needed, installed)) continue;
    if (!one.allowed) {
      unknown = &one.allowed.error();
      continue;
    }
    ++looked;
    if (!*one.allowed) missing[one.needed.component].push_back(one.needed.Title());
  }
  for (const auto& [component, rights] : missing) {
    findings.push_back(
        {"rights", Verdict::kProblem,
         fmt::format("the account heddle-{} may not {}", component, FirstNames(rights)),
         fmt::format("helm upgrade, or see who changed ClusterRole, Role or bindings of heddle-{}",
                     component)});
  }
  if (unknown != nullptr) {
    findings.push_back(
        NotRead("rights", "ask what Heddle's accounts may do (create subjectaccessreviews)", *unknown));
  } else if (missing.empty()) {
    findings.push_back(
        {"rights", Verdict::kOk,
         fmt::format("Heddle's accounts have the {} they need", base::Counted(looked, "right")), ""});
  }
}

}  // namespace heddle::cli
