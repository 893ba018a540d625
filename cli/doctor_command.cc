#include "cli/check.h"
#include "cli/doctor.h"
#include "cli/gpu_use.h"
#include "cli/live_cluster.h"
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

// Only what CheckAgents, SilentAgents and the ground for pods look at.
Json LeanTopology(const Json& object) {
  Json lean{{"metadata", {{"name", kube::Name(object)}}}, {"status", Json::object()}};
  for (const char* field : {"observedAt", "agentVersion"}) {
    if (const Json* value = kube::Find(object, {"status", field})) lean["status"][field] = *value;
  }
  for (const Json& nic : kube::ArrayAt(object, {"status", "nics"})) {
    if (kube::StringAt(nic, {"role"}) == "compute" && kube::StringAt(nic, {"transport"}) == "RoCE")
      lean["status"]["roce"] = true;
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

std::vector<std::string> RdmaResourcesOf(const Json& pod) {
  std::vector<std::string> resources;
  for (const Json& container : kube::ArrayAt(pod, {"spec", "containers"})) {
    const Json* limits = kube::Find(container, {"resources", "limits"});
    if (limits == nullptr || !limits->is_object()) continue;
    for (const auto& [name, amount] : limits->items()) {
      if (crds::IsRdmaResource(name)) resources.push_back(name);
    }
  }
  return resources;
}

// Of a pod with GPUs what is looked at, of any other nothing.
Json LeanPod(const Json& object, bool roce) {
  if (!IsLive(object) || GpusWanted(object) == 0) return {};
  Json lean{{"metadata", {{"namespace", kube::Namespace(object)}, {"name", kube::Name(object)}}},
            {"scheduler", kube::StringAt(object, {"spec", "schedulerName"})},
            {"byHand", IsByHand(object)},
            {"faults", Json::array()}};
  if (const auto resources = RdmaResourcesOf(object); !resources.empty())
    lean["faults"] = crds::RdmaPodFaults(object, resources, roce);
  return lean;
}

base::Result<std::vector<GpuPod>> ReadGpuPods(kube::Client& client, bool roce, const std::stop_token& stop) {
  kube::ListOptions options;
  options.field_selector = "status.phase!=Succeeded,status.phase!=Failed";
  options.transform = [roce](const Json& object) { return LeanPod(object, roce); };
  ASSIGN_OR_RETURN(const Objects lean, ListOrWhyNot(client, kube::kPods, std::move(options), stop));
  std::vector<GpuPod> pods;
  for (const Json& one : lean) {
    if (!one.is_object()) continue;
    pods.push_back({kube::Namespace(one), kube::Name(one), kube::StringAt(one, {"scheduler"}),
                    kube::BoolAt(one, {"byHand"}).value_or(false), one.at("faults")});
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

std::vector<Right> ReadRights(kube::Client& client, const std::string& ns, const std::stop_token& stop) {
  std::vector<Right> rights;
  for (const NeededRight& needed : NeededRights()) {
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
  bool roce = false;
  if (reading.topologies) {
    for (const Json& one : *reading.topologies) roce = roce || kube::Find(one, {"status", "roce"}) != nullptr;
  }
  reading.pods = ReadGpuPods(client, roce, stop);
  reading.rights = ReadRights(client, reading.ns, stop);
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
