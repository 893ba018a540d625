#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cli/check.h"
#include "cli/doctor.h"
#include "cli/doctor_parts.h"
#include "cli/gpu_use.h"
#include "cli/live_cluster.h"
#include "crds/gang_gate.h"
#include "crds/keys.h"
#include "crds/node_topology.h"
#include "crds/rdma_pod.h"
#include "crds/workload_check.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;
using base::Code;
using crds::Json;

constexpr std::string_view kAdmissionGroup = "admissionregistration.k8s.io";

kube::Resource Admission(const char* plural, const char* kind) {
  return {std::string(kAdmissionGroup), "v1", plural, kind, false};
}
const kube::Resource kCrds{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                           "CustomResourceDefinition", false};
const kube::Resource kAccounts{"", "v1", "serviceaccounts", "ServiceAccount", true};
const kube::Resource kDeployments{"apps", "v1", "deployments", "Deployment", true};
const kube::Resource kDaemonSets{"apps", "v1", "daemonsets", "DaemonSet", true};
const kube::Resource kReviews{"authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview",
                              false};

Json WithoutManagedFields(Json object) {
  return kube::DropManagedFields(std::move(object));
}

// Only what CheckAgents, SilentAgents and RdmaOfNodes look at.
Json LeanTopology(const Json& object) {
  Json lean{{"metadata", {{"name", kube::Name(object)}}}, {"status", Json::object()}};
  for (const char* field : {"observedAt", "agentVersion"}) {
    if (const Json* value = kube::Find(object, {"status", field})) lean["status"][field] = *value;
  }
  // Of the conditions, which are half of the object, the one that CheckAgents reads.
  if (const Json* complete = kube::Condition(object, "DiscoveryComplete"))
    lean["status"]["conditions"] = Json::array({*complete});
  for (const Json& nic : kube::ArrayAt(object, {"status", "nics"})) {
    const bool roce = kube::StringAt(nic, {"transport"}) == "RoCE";
    if (roce && kube::StringAt(nic, {"role"}) == "compute") lean["status"]["roce"] = true;
    if (roce) lean["status"]["roceNics"].push_back(kube::StringAt(nic, {"name"}));
  }
  for (const Json& wish : kube::ArrayAt(object, {"spec", "devices"})) {
    Json one{{"resource", kube::StringAt(wish, {"resource"})}, {"ports", kube::ArrayAt(wish, {"ports"})}};
    lean["spec"]["devices"].push_back(std::move(one));
  }
  return lean;
}

Json LeanNode(const Json& object) {
  Json lean{{"metadata", {{"name", kube::Name(object)}}}};
  if (const Json* allocatable = kube::Find(object, {"status", "allocatable"}))
    lean["status"]["allocatable"] = *allocatable;
  return lean;
}

// A scheduler binds by a subresource, which leaves nobody owning spec.nodeName; whoever writes it into a pod owns it.
bool IsByHand(const Json& pod) {
  for (const Json& manager : kube::ArrayAt(pod, {"metadata", "managedFields"})) {
    if (kube::Find(manager, {"fieldsV1", "f:spec", "f:nodeName"}) != nullptr) return true;
  }
  return false;
}

// The resources that bring RDMA devices, and the nodes on which these speak RoCE. Of RdmaDevicePolicies, whoever serves
// them, the operator writes each node its resources and their ports (spec.devices); those of other plugins are told by
// their names.
class RdmaOfNodes {
 public:
  explicit RdmaOfNodes(const base::Result<Objects>& lean_topologies) {
    if (!lean_topologies) return;
    for (const Json& one : *lean_topologies) {
      const std::string node = kube::Name(one);
      if (kube::Find(one, {"status", "roce"}) != nullptr) roce_nodes_.insert(node);
      std::set<std::string> nics;
      for (const Json& nic : kube::ArrayAt(one, {"status", "roceNics"})) nics.insert(nic.get<std::string>());
      for (const Json& device : kube::ArrayAt(one, {"spec", "devices"})) {
        const std::string resource = kube::StringAt(device, {"resource"});
        resources_.insert(resource);
        bool roce = false;
        for (const Json& port : kube::ArrayAt(device, {"ports"})) {
          const std::string name = port.is_string() ? port.get<std::string>() : "";
          roce = roce || nics.contains(name.substr(0, name.rfind(':')));
        }
        told_[{node, resource}] = roce;
      }
    }
  }

  // Of the pod's resources those by which it holds NICs that speak RoCE; none while it is on no node.
  std::vector<std::string> RoceOf(const Json& pod) const {
    std::vector<std::string> resources;
    const std::string node = kube::StringAt(pod, {"spec", "nodeName"});
    for (const char* list : {"initContainers", "containers"}) {
      for (const Json& container : kube::ArrayAt(pod, {"spec", list})) {
        const Json* limits = kube::Find(container, {"resources", "limits"});
        if (limits == nullptr || !limits->is_object()) continue;
        for (const auto& [name, amount] : limits->items()) {
          if (SpeaksRoce(node, name)) resources.push_back(name);
        }
      }
    }
    return resources;
  }

 private:
  bool SpeaksRoce(const std::string& node, const std::string& resource) const {
    if (const auto told = told_.find({node, resource}); told != told_.end()) return told->second;
    const bool rdma = resource != keys::kFabricResource &&
                      (crds::IsRdmaResource(resource) || resources_.contains(resource));
    return rdma && roce_nodes_.contains(node);
  }

  std::set<std::string> roce_nodes_;  // whose compute NICs speak it
  std::set<std::string> resources_;   // of any node's spec.devices
  std::map<std::pair<std::string, std::string>, bool>
      told_;  // by node and resource: whether its ports speak RoCE
};

// Of a pod with GPUs or with NICs that speak RoCE, and of one that waits for Heddle, what is looked at, of any other
// nothing.
Json LeanPod(const Json& object, const RdmaOfNodes& rdma) {
  if (!IsLive(object)) return {};
  const bool gpus = GpusWanted(object) > 0;
  const std::vector<std::string> roce = rdma.RoceOf(object);
  const bool gated = crds::HasGangGate(object),
             unbound = kube::StringAt(object, {"spec", "nodeName"}).empty();
  const std::string scheduler = kube::StringAt(object, {"spec", "schedulerName"});
  const bool waits_for_us = gated || (unbound && scheduler == keys::kSchedulerName);
  if (!gpus && roce.empty() && !waits_for_us) return {};
  Json lean{{"metadata", {{"namespace", kube::Namespace(object)}, {"name", kube::Name(object)}}},
            {"scheduler", scheduler},
            {"gpus", gpus},
            {"gated", gated},
            {"unbound", unbound},
            {"byHand", IsByHand(object)},
            {"faults", Json::array()}};
  if (!roce.empty()) lean["faults"] = crds::RdmaPodFaults(object, roce, true);
  return lean;
}

base::Result<std::vector<DevicePod>> ReadDevicePods(kube::Client& client, const RdmaOfNodes& rdma,
                                                    const std::stop_token& stop) {
  kube::ListOptions options;
  options.field_selector = "status.phase!=Succeeded,status.phase!=Failed";
  options.transform = [&rdma](const Json& object) { return LeanPod(object, rdma); };
  ASSIGN_OR_RETURN(const Objects lean, ListOrWhyNot(client, kube::kPods, std::move(options), stop));
  std::vector<DevicePod> pods;
  for (const Json& one : lean) {
    if (!one.is_object()) continue;
    pods.push_back({kube::Namespace(one), kube::Name(one), kube::StringAt(one, {"scheduler"}),
                    kube::BoolAt(one, {"byHand"}).value_or(false), one.at("faults"),
                    kube::BoolAt(one, {"gpus"}).value_or(true), kube::BoolAt(one, {"gated"}).value_or(false),
                    kube::BoolAt(one, {"unbound"}).value_or(false)});
  }
  return pods;
}

base::Result<bool> IsAllowed(kube::Client& client, const std::string& ns, const NeededRight& right,
                             const std::stop_token& stop) {
  Json attributes{{"verb", right.verb},
                  {"group", right.group},
                  {"resource", right.resource},
                  {"subresource", right.subresource},
                  {"name", right.name}};
  if (right.namespaced) attributes["namespace"] = ns;
  const std::string account = "system:serviceaccount:" + ns + ":heddle-" + right.component;
  const Json review{
      {"apiVersion", kReviews.ApiVersion()},
      {"kind", kReviews.kind},
      {"metadata", Json::object()},
      {"spec",
       {{"user", account},
        {"groups", {"system:serviceaccounts", "system:serviceaccounts:" + ns, "system:authenticated"}},
        {"resourceAttributes", std::move(attributes)}}}};
  ASSIGN_OR_RETURN(const Json answer, client.Create(kReviews, review, stop));
  return kube::BoolAt(answer, {"status", "allowed"}).value_or(false);
}

std::vector<Right> ReadRights(kube::Client& client, const std::string& ns, const Installation& installed,
                              const std::stop_token& stop) {
  std::vector<Right> rights;
  for (const NeededRight& needed : NeededRights()) {
    if (!IsNeeded(needed, installed)) continue;
    rights.push_back({needed, IsAllowed(client, ns, needed, stop)});
    if (!rights.back().allowed) return rights;  // it will not be another time
  }
  return rights;
}

base::Result<Json> ReadJson(kube::Client& client, const std::string& target, const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const std::string text, client.GetRaw(target, stop));
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded())
    return base::Fail(Code::kInternal, target + " is answered with something that is no JSON");
  return json;
}

// Where Heddle is: heddle-system, or the one other namespace that has its accounts.
std::string NamespaceOf(const base::Result<Objects>& accounts) {
  std::string found;
  if (!accounts) return std::string(keys::kNamespace);
  for (const Json& one : *accounts) {
    if (kube::Namespace(one) == keys::kNamespace) return std::string(keys::kNamespace);
    found = kube::Namespace(one);
  }
  return found.empty() ? std::string(keys::kNamespace) : found;
}

}  // namespace

Output RunDoctor(kube::Client& client, base::Clock& clock, const OutputOptions& look,
                 const std::stop_token& stop) {
  const auto list = [&client, &stop](const kube::Resource& resource, kube::ListOptions of) {
    return ListOrWhyNot(client, resource, std::move(of), stop);
  };
  DoctorReading reading;
  const auto version = ReadJson(client, "/version", stop);
  if (!version && version.error().code != Code::kForbidden) return Failure(version.error());
  if (version) {
    reading.version = kube::StringAt(*version, {"gitVersion"});
  } else {
    reading.version = base::Fail(version.error());
  }
  reading.admission = ReadJson(client, "/apis/admissionregistration.k8s.io/v1", stop);
  reading.accounts = list(kAccounts, {.label_selector = "app.kubernetes.io/name=heddle"});
  reading.ns = NamespaceOf(reading.accounts);
  reading.definitions = list(kCrds, {.transform = WithoutManagedFields});
  reading.mutating = list(Admission("mutatingadmissionpolicies", "MutatingAdmissionPolicy"), {});
  reading.mutating_bindings =
      list(Admission("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"), {});
  reading.validating = list(Admission("validatingadmissionpolicies", "ValidatingAdmissionPolicy"), {});
  reading.validating_bindings =
      list(Admission("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"), {});
  reading.namespaces = list(kube::kNamespaces, {.transform = WithoutManagedFields});
  reading.nodes = list(kube::kNodes, {.transform = LeanNode});
  reading.deployments = list(kDeployments, {.transform = WithoutManagedFields});
  reading.daemon_sets = list(kDaemonSets, {.transform = WithoutManagedFields});
  reading.own_pods = list(kube::kPods, {.ns = reading.ns,
                                        .label_selector = "app.kubernetes.io/name=heddle",
                                        .transform = WithoutManagedFields});
  reading.failed_creates =
      list(kube::kEvents,
           {.ns = reading.ns, .field_selector = "reason=FailedCreate", .transform = WithoutManagedFields});
  reading.leases = list(kube::kLeases, {.ns = reading.ns, .transform = WithoutManagedFields});
  reading.topologies = list(HeddleResource(keys::kNodeTopology, false), {.transform = LeanTopology});
  reading.pods = ReadDevicePods(client, RdmaOfNodes(reading.topologies), stop);
  reading.rights = ReadRights(client, reading.ns, InstallationOf(reading), stop);
  reading.now = clock.WallNow();
  const Findings findings = Diagnose(reading);
  Output output;
  output.out = look.format == Format::kText ? DoctorText(findings, look.style)
                                            : Printed(DoctorJson(findings), look.format);
  for (const Finding& one : findings) {
    if (one.verdict == Verdict::kProblem) output.exit_code = Output::kRefused;
  }
  return output;
}

}  // namespace heddle::cli
