#include <fmt/format.h>

#include <map>

#include "cli/advice.h"
#include "cli/doctor_parts.h"
#include "crds/keys.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;

NeededRight Of(std::string component, std::string verb, std::string group, std::string resource,
               std::string subresource = "") {
  return {std::move(component), std::move(verb), std::move(group), std::move(resource),
          std::move(subresource)};
}
NeededRight Lease(std::string component, std::string verb, std::string_view name) {
  NeededRight right = Of(std::move(component), std::move(verb), "coordination.k8s.io", "leases");
  right.name = name;
  right.namespaced = true;
  return right;
}
NeededRight Placing(NeededRight right) {
  right.placing = true;
  return right;
}

}  // namespace

std::string NeededRight::Title() const {
  std::string title = fmt::format("{} {}", verb, resource);
  if (!group.empty()) title += "." + group;
  if (!subresource.empty()) title += "/" + subresource;
  return title + (name.empty() ? "" : " " + name);
}

// What each program cannot do without; charts/heddle/templates/rbac.yaml grants it.
const std::vector<NeededRight>& NeededRights() {
  static const std::string group(keys::kGroup);
  static const std::vector<NeededRight> rights{
      Of("nodeagent", "watch", group, "nodetopologies"),
      Of("nodeagent", "patch", group, "nodetopologies", "status"),
      Lease("nodeagent", "update", "heddle-node-example"),
      Of("operator", "list", "", "nodes"),
      Of("operator", "patch", "", "nodes"),
      Of("operator", "create", group, "nodetopologies"),
      Of("operator", "patch", group, "nodetopologies"),
      Of("operator", "patch", group, "fabrics", "status"),
      Of("operator", "list", group, "losslesspolicies"),
      Of("operator", "list", group, "rdmadevicepolicies"),
      Of("operator", "list", group, "fabricswitches"),
      Of("operator", "patch", group, "fabricswitches", "status"),
      Of("operator", "list", group, "gangs"),
      Lease("operator", "update", keys::kOperatorLease),
      Of("extender", "list", "", "nodes"),
      Of("extender", "list", "", "pods"),
      Placing(Of("extender", "patch", "", "pods")),
      Of("extender", "list", "batch", "jobs"),
      Of("extender", "list", group, "nodetopologies"),
      Of("extender", "create", group, "gangs"),
      Of("extender", "update", group, "gangs", "status"),
      Lease("extender", "get", keys::kSchedulerLease),
      Placing(Of("scheduler", "list", "", "nodes")),
      Placing(Of("scheduler", "create", "", "pods", "binding")),
      Placing(Lease("scheduler", "update", keys::kSchedulerLease)),
  };
  return rights;
}

void CheckRights(const DoctorReading& reading, const Installation& installed, Findings& findings) {
  std::map<std::string, std::vector<std::string>> missing;  // by component
  std::size_t looked = 0;
  const base::Error* unknown = nullptr;
  for (const Right& one : reading.rights) {
    if (one.needed.placing && installed.observes) continue;
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
    findings.push_back({"rights", Verdict::kOk,
                        fmt::format("Heddle's accounts have the {} they need", Count(looked, "right")), ""});
  }
}

}  // namespace heddle::cli
