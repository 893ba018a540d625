#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/counted.h"
#include "base/version.h"
#include "cli/advice.h"
#include "cli/doctor_parts.h"
#include "cli/known_crds.h"
#include "crds/keys.h"
#include "crds/yaml.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

using crds::Json;

constexpr int kLeastMinor = 33;     // ValidatingAdmissionPolicy, and tokens that name their node
constexpr int kMutatingMinor = 36;  // MutatingAdmissionPolicy v1
// Where the chart's value mutatingPolicies is never it says so on the guard that is there with every value.
constexpr std::string_view kMarkedPolicy = "heddle-plan";
constexpr std::string_view kMutatingPolicies = "heddle.dev/mutating-policies";
// Where computeDomains.enabled is true: the policy that gives pods their claims, which mutatingPolicies may leave out,
// and the guard, which no value does.
constexpr std::string_view kClaimPolicy = "heddle-compute-domain";
constexpr std::string_view kComputeDomainGuard = "heddle-compute-domains";
const std::string kInstall =
    "helm upgrade --install heddle charts/heddle -n heddle-system --create-namespace";

const Json& SchemaOf(const Json& crd) {
  static const Json kNone;
  for (const Json& version : kube::ArrayAt(crd, {"spec", "versions"})) {
    if (kube::StringAt(version, {"name"}) != crds::keys::kVersion) continue;
    const Json* schema = kube::Find(version, {"schema", "openAPIV3Schema"});
    return schema == nullptr ? kNone : *schema;
  }
  return kNone;
}

bool IsServed(const Json& crd) {
  for (const Json& version : kube::ArrayAt(crd, {"spec", "versions"})) {
    if (kube::StringAt(version, {"name"}) == crds::keys::kVersion)
      return kube::BoolAt(version, {"served"}).value_or(false);
  }
  return false;
}

// Every path of a field, and of every word that a field may be.
void Paths(const Json& schema, const std::string& at, int depth, std::set<std::string>& paths) {
  constexpr int kDeepest = 40;  // a schema that somebody else wrote
  if (!schema.is_object() || depth > kDeepest) return;
  if (const Json* fields = kube::Find(schema, {"properties"}); fields != nullptr && fields->is_object()) {
    for (const auto& [name, field] : fields->items()) {
      const std::string path = at.empty() ? name : fmt::format("{}.{}", at, name);
      paths.insert(path);
      Paths(field, path, depth + 1, paths);
    }
  }
  if (const Json* items = kube::Find(schema, {"items"})) Paths(*items, at + "[]", depth + 1, paths);
  if (const Json* more = kube::Find(schema, {"additionalProperties"}))
    Paths(*more, at + "{}", depth + 1, paths);
  for (const Json& word : kube::ArrayAt(schema, {"enum"})) {
    if (word.is_string()) paths.insert(at + "=" + word.get<std::string>());
  }
}

// What is wrong with one of ours, as it is in the cluster; nothing where it is well.
std::optional<Finding> CheckCrd(const Json& ours, const Objects& theirs) {
  const std::string name = kube::Name(ours);
  const auto found = std::find_if(theirs.begin(), theirs.end(),
                                  [&name](const Json& one) { return kube::Name(one) == name; });
  if (found == theirs.end()) return Finding{"crds", Verdict::kProblem, name + " is not there", kInstall};
  const Json* established = kube::Condition(*found, "Established");
  if (established == nullptr || kube::StringAt(*established, {"status"}) != "True") {
    return Finding{"crds", Verdict::kProblem, name + " is not established",
                   fmt::format("kubectl describe crd {}", name)};
  }
  if (!IsServed(*found)) {
    return Finding{"crds", Verdict::kProblem, fmt::format("{} does not serve {}", name, crds::keys::kVersion),
                   kInstall};
  }
  const SchemaDifference difference = CompareSchemas(SchemaOf(ours), SchemaOf(*found));
  if (!difference.missing.empty()) {
    return Finding{"crds", Verdict::kProblem,
                   fmt::format("{} is older than {}: it knows nothing of {}, and the server drops it", name,
                               base::kVersion, FirstNames(difference.missing)),
                   "helm upgrade, with crds.install=true"};
  }
  if (difference.more.empty()) return std::nullopt;
  return Finding{
      "crds", Verdict::kWarning,
      fmt::format("{} is newer than {}: it has {}", name, base::kVersion, FirstNames(difference.more)),
      "use the kubectl-heddle of the version that is installed"};
}

const Json* Named(const base::Result<Objects>& objects, std::string_view name) {
  if (!objects) return nullptr;
  for (const Json& one : *objects) {
    if (kube::Name(one) == name) return &one;
  }
  return nullptr;
}

// The policy's binding, under whatever name.
const Json* BindingOf(const base::Result<Objects>& bindings, std::string_view policy) {
  if (!bindings) return nullptr;
  for (const Json& one : *bindings) {
    if (kube::StringAt(one, {"spec", "policyName"}) == policy) return &one;
  }
  return nullptr;
}

bool ServesMutating(const DoctorReading& reading) {
  if (!reading.admission) return false;
  const Json& resources = kube::ArrayAt(*reading.admission, {"resources"});
  return std::any_of(resources.begin(), resources.end(), [](const Json& one) {
    return kube::StringAt(one, {"name"}) == "mutatingadmissionpolicies";
  });
}

bool IsToldNeverToMutate(const DoctorReading& reading) {
  const Json* guard = Named(reading.validating, kMarkedPolicy);
  return guard != nullptr && kube::Annotation(*guard, kMutatingPolicies) == "never";
}

// Whether a container of that Deployment or DaemonSet of ours is given a flag that begins so.
bool IsStartedWith(const base::Result<Objects>& objects, const std::string& ns, std::string_view name,
                   std::string_view flag) {
  if (!objects) return false;
  const auto begins = [flag](const Json& word) {
    return word.is_string() && word.get_ref<const std::string&>().starts_with(flag);
  };
  for (const Json& one : *objects) {
    if (kube::Namespace(one) != ns || kube::Name(one) != name) continue;
    for (const Json& container : kube::ArrayAt(one, {"spec", "template", "spec", "containers"})) {
      const Json& words = kube::ArrayAt(container, {"command"});
      if (std::any_of(words.begin(), words.end(), begins)) return true;
    }
  }
  return false;
}

// By what the chart makes of each value.
std::set<Option> OptionsOf(const DoctorReading& reading, bool observes) {
  std::set<Option> options{Option::kAny, observes ? Option::kObserving : Option::kPlacing};
  if (!observes && Named(reading.validating, "heddle-suspension") != nullptr)
    options.insert(Option::kPreemption);
  if (!observes && (Named(reading.validating, kComputeDomainGuard) != nullptr ||
                    Named(reading.mutating, kClaimPolicy) != nullptr))
    options.insert(Option::kComputeDomains);
  if (IsStartedWith(reading.daemon_sets, reading.ns, "heddle-nodeagent", "--follow-plans"))
    options.insert(Option::kFollowedPlans);
  for (const char* flag : {"--rdma-shared-image=", "--sriov-image="}) {
    if (IsStartedWith(reading.deployments, reading.ns, "heddle-operator", flag))
      options.insert(Option::kOtherPlugins);
  }
  return options;
}

void CheckGating(const DoctorReading& reading, const Installation& installed, Findings& findings) {
  constexpr std::string_view kPolicy = "heddle-gang";
  const std::string check = "gating";
  if (installed.observes) {
    findings.push_back({check, Verdict::kOk, "mode=observe: no pod is gated or routed", ""});
    return;
  }
  if (!reading.admission) {
    findings.push_back(NotRead(check, "ask which admission policies are served", reading.admission.error()));
    return;
  }
  if (installed.left_out) {
    findings.push_back(
        {check, Verdict::kOk,
         "mutatingPolicies=never: only what `kubectl heddle prepare` prepared is gated, and other "
         "new pods with GPUs go past Heddle",
         ""});
    return;
  }
  if (!ServesMutating(reading)) {
    findings.push_back(
        {check, Verdict::kWarning,
         "this cluster serves no MutatingAdmissionPolicy v1, so Jobs are not gated by themselves",
         "prepare each: kubectl heddle prepare -f job.yaml | kubectl create -f -; or Kubernetes "
         "1.36"});
    return;
  }
  if (!reading.mutating || !reading.mutating_bindings) {
    findings.push_back(NotRead(check, "list mutatingadmissionpolicies and their bindings",
                               (reading.mutating ? reading.mutating_bindings : reading.mutating).error()));
    return;
  }
  if (Named(reading.mutating, kPolicy) == nullptr) {
    findings.push_back(
        {check, Verdict::kProblem,
         "the MutatingAdmissionPolicy heddle-gang is not there: pods with GPUs go past Heddle",
         "helm upgrade; it was left out if the cluster was older then, the chart was rendered "
         "for an older one (helm template --kube-version), or by a chart that left no word of it because "
         "mutatingPolicies is never; until it is there prepare each Job: "
         "kubectl heddle prepare -f job.yaml | kubectl create -f -"});
  } else if (BindingOf(reading.mutating_bindings, kPolicy) == nullptr) {
    findings.push_back(
        {check, Verdict::kProblem,
         "the MutatingAdmissionPolicyBinding heddle-gang is not there, so its policy is not in "
         "force: pods with GPUs go past Heddle",
         "helm upgrade, or helm rollback"});
  } else {
    findings.push_back({check, Verdict::kOk, "pods with GPUs are gated and routed by heddle-gang", ""});
  }
}

// What becomes of gangs without the policy that gives pods their claims, and what to do as long as it is so.
constexpr std::string_view kWithoutClaims =
    "no pod gets the claim of a ComputeDomain: gangs with heddle.dev/compute-domain: \"true\" wait with the "
    "reason NoComputeDomain, and computeDomains.byDefault does nothing";
constexpr std::string_view kMeanwhile =
    "until then take heddle.dev/compute-domain out of Jobs, which go over their NICs between nodes then; "
    "where nobody wants ComputeDomains, computeDomains.enabled=false";

// Whether pods get the claims of ComputeDomains. Nobody adds one to a pod later, and `kubectl heddle prepare` cannot:
// in the name of its template is, of most kinds, the UID of what makes the pod.
Finding ComputeDomainsFinding(const DoctorReading& reading) {
  const std::string check = "compute-domains";
  // What is in force counts more than what was chosen.
  if (Named(reading.mutating, kClaimPolicy) != nullptr) {
    if (!reading.mutating_bindings)
      return NotRead(check, "list mutatingadmissionpolicybindings", reading.mutating_bindings.error());
    if (BindingOf(reading.mutating_bindings, kClaimPolicy) != nullptr) {
      return {check, Verdict::kOk,
              "gangs that ask for a ComputeDomain get its claims by heddle-compute-domain", ""};
    }
    return {
        check, Verdict::kProblem,
        fmt::format("the MutatingAdmissionPolicyBinding {} is not there, so its policy is not in force: {}",
                    kClaimPolicy, kWithoutClaims),
        "helm upgrade, or helm rollback"};
  }
  if (!reading.admission)
    return NotRead(check, "ask which admission policies are served", reading.admission.error());
  const bool served = ServesMutating(reading);
  if (served && !reading.mutating)
    return NotRead(check, "list mutatingadmissionpolicies", reading.mutating.error());
  if (IsToldNeverToMutate(reading)) {
    return {check, Verdict::kWarning,
            fmt::format("computeDomains.enabled=true does nothing where mutatingPolicies=never: {}",
                        kWithoutClaims),
            fmt::format(
                "{}helm upgrade with mutatingPolicies=auto, by which new pods with GPUs are gated, too; {}",
                served ? "" : "Kubernetes 1.36, and ", kMeanwhile)};
  }
  if (!served) {
    return {check, Verdict::kWarning,
            fmt::format("this cluster serves no MutatingAdmissionPolicy v1, so {}", kWithoutClaims),
            fmt::format("Kubernetes 1.36, and helm upgrade; {}", kMeanwhile)};
  }
  return {
      check, Verdict::kProblem,
      fmt::format("the MutatingAdmissionPolicy {} is not there: {}", kClaimPolicy, kWithoutClaims),
      "helm upgrade, then make the pods anew; it was left out if the cluster was older then, or the chart "
      "was rendered for an older one (helm template --kube-version)"};
}

}  // namespace

std::optional<int> MinorOf(std::string_view version) {
  if (version.starts_with("v")) version.remove_prefix(1);
  if (!version.starts_with("1.")) return std::nullopt;
  version.remove_prefix(2);
  int minor = 0;
  const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), minor);
  if (error != std::errc{} || end == version.data()) return std::nullopt;
  return minor;
}

SchemaDifference CompareSchemas(const Json& ours, const Json& theirs) {
  std::set<std::string> here, there;
  Paths(ours, "", 0, here);
  Paths(theirs, "", 0, there);
  SchemaDifference difference;
  std::set_difference(here.begin(), here.end(), there.begin(), there.end(),
                      std::back_inserter(difference.missing));
  std::set_difference(there.begin(), there.end(), here.begin(), here.end(),
                      std::back_inserter(difference.more));
  return difference;
}

const Objects& OurCrds() {
  static const Objects crds = [] {
    Objects read;
    for (const std::string_view text : KnownCrdTexts()) {
      if (auto crd = crds::FromYaml(std::string(text))) read.push_back(*std::move(crd));
    }
    return read;
  }();
  return crds;
}

namespace {

Installation ModeAndScopeOf(const DoctorReading& reading) {
  Installation installed;
  if (const Json* policy = Named(reading.mutating, "heddle-gang")) {
    installed.scope_known = true;
    installed.everywhere = true;
    for (const Json& one :
         kube::ArrayAt(*policy, {"spec", "matchConstraints", "namespaceSelector", "matchExpressions"})) {
      if (kube::StringAt(one, {"key"}) == crds::keys::kLabelScope) installed.everywhere = false;
    }
    return installed;
  }
  // No policy: observing, or somebody took it away. The chart says which by what it starts and by what it allows.
  bool observer = false, scheduler = false, may_patch = true;
  if (reading.deployments) {
    for (const Json& one : *reading.deployments) {
      if (kube::Namespace(one) != reading.ns) continue;
      observer = observer || kube::Name(one) == "heddle-observer";
      scheduler = scheduler || kube::Name(one) == "heddle-scheduler";
    }
  }
  for (const Right& one : reading.rights) {
    if (one.needed.component == "extender" && one.needed.Title() == "patch pods")
      may_patch = one.allowed.value_or(true);
  }
  installed.observes = observer || (!scheduler && !may_patch);
  // Nothing that is in force names the scope then, so what people labelled counts.
  const bool unserved = reading.admission && !ServesMutating(reading);
  // What may not be listed may still be in force, left over from before the value was never.
  installed.left_out = !installed.observes && IsToldNeverToMutate(reading) && (reading.mutating || unserved);
  installed.by_hand = installed.left_out || (!installed.observes && unserved);
  installed.scope_known = installed.by_hand;
  return installed;
}

}  // namespace

Installation InstallationOf(const DoctorReading& reading) {
  Installation installed = ModeAndScopeOf(reading);
  installed.options = OptionsOf(reading, installed.observes);
  return installed;
}

void CheckServer(const DoctorReading& reading, const Installation& installed, Findings& findings) {
  if (!reading.version) {
    findings.push_back(NotRead("server", "ask the API server for its version", reading.version.error()));
    return;
  }
  const std::optional<int> minor = MinorOf(*reading.version);
  Finding finding{"server", Verdict::kOk, "Kubernetes " + *reading.version, ""};
  if (!minor) {
    finding.verdict = Verdict::kUnknown;
    finding.what += " is a version that this program cannot read";
  } else if (*minor < kLeastMinor) {
    finding.verdict = Verdict::kProblem;
    finding.what += fmt::format(" is older than 1.{}, the oldest that Heddle works with", kLeastMinor);
    finding.remedy = "upgrade the cluster";
  } else if (*minor < kMutatingMinor && !installed.left_out) {
    finding.verdict = Verdict::kWarning;
    finding.what +=
        fmt::format(" is older than 1.{}, from which on pods are gated by themselves", kMutatingMinor);
    finding.remedy = "kubectl heddle prepare, or upgrade the cluster";
  }
  findings.push_back(std::move(finding));
}

void CheckCrds(const DoctorReading& reading, Findings& findings) {
  if (!reading.definitions) {
    findings.push_back(NotRead("crds", "list customresourcedefinitions", reading.definitions.error()));
    return;
  }
  const std::size_t before = findings.size();
  for (const Json& ours : OurCrds()) {
    if (auto finding = CheckCrd(ours, *reading.definitions)) findings.push_back(*std::move(finding));
  }
  if (findings.size() != before) return;
  findings.push_back(
      {"crds", Verdict::kOk,
       fmt::format("{} are established, with the fields of {}",
                   base::Counted(OurCrds().size(), "CustomResourceDefinition"), base::kVersion),
       ""});
}

void CheckPolicies(const DoctorReading& reading, const Installation& installed, Findings& findings) {
  CheckGating(reading, installed, findings);
  if (installed.options.contains(Option::kComputeDomains)) findings.push_back(ComputeDomainsFinding(reading));
  const std::string check = "guards";
  if (!reading.validating || !reading.validating_bindings) {
    findings.push_back(
        NotRead(check, "list validatingadmissionpolicies and their bindings",
                (reading.validating ? reading.validating_bindings : reading.validating).error()));
    return;
  }
  // What else the values turn on is ours by its label, and is only of use with a binding.
  std::set<std::string> expected{"heddle-own-node", "heddle-plan", "heddle-ranks"};
  if (!installed.observes) expected.insert("heddle-release");
  if (installed.options.contains(Option::kComputeDomains)) expected.emplace(kComputeDomainGuard);
  for (const Json& one : *reading.validating) {
    if (kube::Label(one, "app.kubernetes.io/name") == "heddle") expected.insert(kube::Name(one));
  }
  const std::size_t before = findings.size();
  for (const std::string& name : expected) {
    const Json* binding = BindingOf(reading.validating_bindings, name);
    if (Named(reading.validating, name) == nullptr) {
      findings.push_back({check, Verdict::kProblem,
                          fmt::format("the ValidatingAdmissionPolicy {} is not there", name),
                          "helm upgrade, or helm rollback"});
    } else if (binding == nullptr) {
      findings.push_back(
          {check, Verdict::kProblem,
           fmt::format("the ValidatingAdmissionPolicy {} has no binding, so it is not in force", name),
           "helm upgrade, or helm rollback"});
    } else {
      const Json& actions = kube::ArrayAt(*binding, {"spec", "validationActions"});
      if (std::find(actions.begin(), actions.end(), Json("Deny")) != actions.end()) continue;
      findings.push_back({check, Verdict::kProblem,
                          fmt::format("the binding {} denies nothing", kube::Name(*binding)),
                          "validationActions: [Deny], as the chart has it"});
    }
  }
  if (findings.size() != before) return;
  findings.push_back(
      {check, Verdict::kOk, fmt::format("{} are in force", base::Counted(expected.size(), "guard")), ""});
}

bool InScope(const DoctorReading& reading, const Installation& installed, const std::string& ns) {
  if (ns == "kube-system" || ns == reading.ns || installed.observes || !installed.scope_known) return false;
  if (installed.everywhere) return true;
  const Json* found = Named(reading.namespaces, ns);
  return found != nullptr && kube::Label(*found, crds::keys::kLabelScope) == "enabled";
}

void CheckScope(const DoctorReading& reading, const Installation& installed, Findings& findings) {
  if (installed.observes || !installed.scope_known) return;
  if (installed.everywhere) {
    findings.push_back({"scope", Verdict::kOk, "all namespaces but kube-system and " + reading.ns, ""});
    return;
  }
  if (!reading.namespaces) {
    findings.push_back(NotRead("scope", "list namespaces", reading.namespaces.error()));
    return;
  }
  std::vector<std::string> names;
  for (const Json& one : *reading.namespaces) {
    if (InScope(reading, installed, kube::Name(one))) names.push_back(kube::Name(one));
  }
  std::sort(names.begin(), names.end());
  if (names.empty() && installed.by_hand) return;  // a Job that was prepared needs no label
  if (names.empty()) {
    findings.push_back({"scope", Verdict::kWarning, "no namespace is in Heddle's scope, so no pod is touched",
                        "kubectl label namespace NAME heddle.dev/scope=enabled"});
    return;
  }
  findings.push_back({"scope", Verdict::kOk,
                      fmt::format("{}: {}", base::Counted(names.size(), "namespace"), FirstNames(names)),
                      ""});
}

}  // namespace heddle::cli
