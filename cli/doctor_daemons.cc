#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/counted.h"
#include "base/lower_case.h"
#include "base/version.h"
#include "cli/advice.h"
#include "cli/doctor_parts.h"
#include "cli/status_parts.h"
#include "crds/gpu_indexes.h"
#include "crds/keys.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

using crds::Json;
namespace keys = crds::keys;

const std::string kName = "app.kubernetes.io/name", kVersionLabel = "app.kubernetes.io/version";

const Json* Ours(const base::Result<Objects>& objects, const std::string& ns, std::string_view name) {
  if (!objects) return nullptr;
  for (const Json& one : *objects) {
    if (kube::Namespace(one) == ns && kube::Name(one) == name) return &one;
  }
  return nullptr;
}

std::string PodsOf(const DoctorReading& reading, std::string_view component) {
  return fmt::format("kubectl -n {} describe pods -l app.kubernetes.io/component={}", reading.ns, component);
}

// ": why", where anything says it.
std::string Because(const DoctorReading& reading, std::string_view component, const Json& controller) {
  std::string why = WhyNoneIsMade(reading, controller);
  if (why.empty()) why = WhyPodsAreNotReady(reading, component);
  return why.empty() ? "" : ": " + why;
}

void CheckDeployment(const DoctorReading& reading, const std::string& component, Findings& findings) {
  const std::string name = "heddle-" + component;
  const Json* deployment = Ours(reading.deployments, reading.ns, name);
  if (deployment == nullptr) {
    // components.run=false. Whether it runs elsewhere its Lease tells.
    findings.push_back(
        {component, Verdict::kOk,
         fmt::format("no Deployment {} in {}: it runs elsewhere, if its Lease is held", name, reading.ns),
         ""});
    return;
  }
  const std::int64_t wanted = kube::IntAt(*deployment, {"spec", "replicas"}).value_or(1);
  const std::int64_t ready = kube::IntAt(*deployment, {"status", "readyReplicas"}).value_or(0);
  std::string what = fmt::format("{} of {} pods of Deployment {} are ready", ready, wanted, name);
  if (ready >= wanted && wanted > 0) {
    findings.push_back({component, Verdict::kOk, what, ""});
  } else {
    if (wanted > 0) what += Because(reading, component, *deployment);
    findings.push_back({component, ready > 0 ? Verdict::kWarning : Verdict::kProblem, what,
                        wanted == 0 ? "scale it up again" : PodsOf(reading, component)});
  }
}

// `deployment` is whose Lease it is, `without` what stands still while nobody holds it.
void CheckLease(const DoctorReading& reading, std::string_view name, std::string_view deployment,
                std::string_view without, Findings& findings) {
  const std::string check = "lease";
  const std::string why = WhyNotHeld(reading, name);
  if (why.empty()) {
    const std::string holder =
        kube::StringAt(*Ours(reading.leases, reading.ns, name), {"spec", "holderIdentity"});
    findings.push_back({check, Verdict::kOk, fmt::format("{} is held by {}", name, holder), ""});
    return;
  }
  findings.push_back(
      {check, Verdict::kProblem, fmt::format("{}: {}", why, without),
       fmt::format("kubectl -n {} logs deploy/{} --all-containers --tail=50", reading.ns, deployment)});
}

bool HasGpus(const Json& node) {
  const Json* allocatable = kube::Find(node, {"status", "allocatable"});
  if (allocatable == nullptr || !allocatable->is_object()) return false;
  for (const auto& [resource, amount] : allocatable->items()) {
    if (crds::IsGpuResource(resource)) return true;
  }
  return false;
}

void CheckDaemonSet(const DoctorReading& reading, Findings& findings) {
  if (!reading.daemon_sets) {
    findings.push_back(NotRead("agents", "list daemonsets", reading.daemon_sets.error()));
    return;
  }
  const Json* set = Ours(reading.daemon_sets, reading.ns, "heddle-nodeagent");
  if (set == nullptr) {
    findings.push_back(
        {"agents", Verdict::kOk,
         fmt::format("no DaemonSet heddle-nodeagent in {}: agents run elsewhere, if their Leases are "
                     "renewed",
                     reading.ns),
         ""});
    return;
  }
  const std::int64_t wanted = kube::IntAt(*set, {"status", "desiredNumberScheduled"}).value_or(0);
  const std::int64_t ready = kube::IntAt(*set, {"status", "numberReady"}).value_or(0);
  const std::int64_t made = kube::IntAt(*set, {"status", "currentNumberScheduled"}).value_or(0);
  const std::string what = fmt::format("{} of {} agents are ready", ready, wanted);
  if (ready >= wanted && wanted > 0) {
    findings.push_back({"agents", Verdict::kOk, what, ""});
  } else if (wanted == 0) {
    findings.push_back({"agents", Verdict::kProblem, "the DaemonSet heddle-nodeagent selects no node",
                        "see agent.nodeSelector and agent.tolerations"});
  } else if (made == 0) {
    findings.push_back(
        {"agents", Verdict::kProblem, what + ", and none can be made" + Because(reading, "nodeagent", *set),
         // --overwrite: a namespace that refuses them mostly has a label that says baseline or restricted.
         fmt::format("kubectl label namespace {} --overwrite pod-security.kubernetes.io/enforce=privileged; "
                     "kubectl -n {} describe ds heddle-nodeagent",
                     reading.ns, reading.ns)});
  } else {
    findings.push_back({"agents", ready > 0 ? Verdict::kWarning : Verdict::kProblem,
                        what + Because(reading, "nodeagent", *set), PodsOf(reading, "nodeagent")});
  }
}

// In errno's words, which the agent quotes, or in its own; any other thing that it could not read is `status`'s.
bool LacksPermission(const Json& topology) {
  for (const Json& condition : kube::ArrayAt(topology, {"status", "conditions"})) {
    if (kube::StringAt(condition, {"type"}) != "DiscoveryComplete") continue;
    if (kube::StringAt(condition, {"status"}) != "False") return false;
    const std::string said = base::LowerCase(kube::StringAt(condition, {"message"}));
    return said.find("permission") != std::string::npos || said.find("not permitted") != std::string::npos;
  }
  return false;
}

void Report(std::string_view what, std::vector<std::string> names, std::size_t of, const std::string& remedy,
            Findings& findings) {
  if (names.empty()) return;
  std::sort(names.begin(), names.end());
  findings.push_back(
      {"agents", names.size() == of ? Verdict::kProblem : Verdict::kWarning,
       fmt::format("{} of {}: {}: {}", names.size(), base::Counted(of, "node"), what, FirstNames(names)),
       remedy});
}

// The version in the name of an image: "0.1.0" of "registry:5000/ai/heddle:0.1.0@sha256:…"; empty = it has none.
std::string TagOf(std::string image) {
  image = image.substr(0, image.find('@'));
  const std::size_t colon = image.rfind(':');
  return colon == std::string::npos || image.find('/', colon) != std::string::npos ? ""
                                                                                   : image.substr(colon + 1);
}

// Of this version, also where it was built anew under a tag of its own (docs/installing.md), or the chart's says what
// it was built of: 0.1.0-20261127.
bool IsOfThisVersion(std::string_view tag) {
  return tag.starts_with(base::kVersion) &&
         (tag.size() == base::kVersion.size() || tag[base::kVersion.size()] == '-');
}

// Components that are of other versions than this program: version to who has it.
std::map<std::string, std::set<std::string>> OtherVersions(const DoctorReading& reading) {
  std::map<std::string, std::set<std::string>> others;
  for (const base::Result<Objects>* objects : {&reading.deployments, &reading.daemon_sets}) {
    if (!*objects) continue;
    for (const Json& one : **objects) {
      if (kube::Namespace(one) != reading.ns || kube::Label(one, kName) != "heddle") continue;
      const std::string version = kube::Label(one, kVersionLabel).value_or("");
      if (!version.empty() && !IsOfThisVersion(version)) others[version].insert(kube::Name(one));
      for (const Json& container : kube::ArrayAt(one, {"spec", "template", "spec", "containers"})) {
        const std::string image = kube::StringAt(container, {"image"}), tag = TagOf(image);
        // The scheduler beside us has the cluster's version (CheckSchedulerVersion), and people may name images of
        // their own as they like.
        if (image.find("heddle") == std::string::npos || tag.empty() || tag == version) continue;
        if (!IsOfThisVersion(tag)) others["image " + tag].insert(kube::Name(one));
      }
    }
  }
  if (!reading.topologies) return others;
  std::map<std::string, std::size_t> agents;
  for (const Json& one : *reading.topologies) {
    const std::string version = kube::StringAt(one, {"status", "agentVersion"});
    if (!version.empty() && version != base::kVersion) ++agents[version];
  }
  for (const auto& [version, count] : agents) others[version].insert(base::Counted(count, "agent"));
  return others;
}

// The tag is the cluster's version when the chart was installed, and nothing changes it when the cluster is upgraded.
void CheckSchedulerVersion(const DoctorReading& reading, Findings& findings) {
  const Json* deployment = Ours(reading.deployments, reading.ns, "heddle-scheduler");
  const std::optional<int> server = reading.version ? MinorOf(*reading.version) : std::nullopt;
  if (deployment == nullptr || !server) return;
  for (const Json& container : kube::ArrayAt(*deployment, {"spec", "template", "spec", "containers"})) {
    const std::string image = kube::StringAt(container, {"image"}), tag = TagOf(image);
    if (kube::StringAt(container, {"name"}) != "scheduler" &&
        image.find("kube-scheduler") == std::string::npos)
      continue;
    const std::optional<int> minor = MinorOf(tag);
    if (!minor || *minor == *server) continue;
    findings.push_back({"versions", Verdict::kWarning,
                        fmt::format("kube-scheduler in heddle-scheduler is {}, and the API server {}", tag,
                                    *reading.version),
                        fmt::format("helm upgrade heddle charts/heddle -n {} --reset-then-reuse-values "
                                    "--wait gives it the cluster's "
                                    "version, unless scheduler.image.tag names another",
                                    reading.ns)});
  }
}

}  // namespace

std::string WhyNotHeld(const DoctorReading& reading, std::string_view lease_name) {
  constexpr std::chrono::seconds kSlack{10};
  const Json* lease = Ours(reading.leases, reading.ns, lease_name);
  if (lease == nullptr) return fmt::format("nobody has ever held {}", lease_name);
  const std::string holder = kube::StringAt(*lease, {"spec", "holderIdentity"});
  const auto renewed = base::ParseTime(kube::StringAt(*lease, {"spec", "renewTime"}));
  const auto duration = kube::IntAt(*lease, {"spec", "leaseDurationSeconds"}).value_or(0);
  const std::chrono::seconds holds(std::clamp<std::int64_t>(duration, 0, 86'400));
  if (holder.empty()) return fmt::format("nobody holds {}", lease_name);
  if (renewed && reading.now <= *renewed + holds + kSlack) return {};
  return fmt::format("{} was renewed {} ago by {}, and is over", lease_name, AgeText(renewed, reading.now),
                     holder);
}

void CheckInstalls(const DoctorReading& reading, Findings& findings) {
  const std::string check = "installs";
  if (!reading.accounts) {
    findings.push_back(NotRead(check, "list serviceaccounts of all namespaces", reading.accounts.error()));
    return;
  }
  std::set<std::string> namespaces;
  for (const Json& one : *reading.accounts) {
    if (kube::Label(one, kName) == "heddle") namespaces.insert(kube::Namespace(one));
  }
  const std::vector<std::string> names(namespaces.begin(), namespaces.end());
  if (names.empty()) {
    findings.push_back({check, Verdict::kProblem, "Heddle's chart is not installed in any namespace",
                        "helm install heddle charts/heddle -n heddle-system --create-namespace"});
  } else if (names.size() > 1) {
    findings.push_back(
        {check, Verdict::kProblem,
         fmt::format("Heddle is installed in {} namespaces: {}; they share policies, roles and "
                     "objects of the cluster, and undo each other's",
                     names.size(), FirstNames(names)),
         "helm uninstall the one that is not in heddle-system"});
  } else if (names.front() != keys::kNamespace) {
    findings.push_back({check, Verdict::kProblem,
                        fmt::format("Heddle is installed in {}, and its agents keep their Leases in {}",
                                    names.front(), keys::kNamespace),
                        "install it in heddle-system"});
  } else {
    findings.push_back({check, Verdict::kOk, "one, in " + names.front(), ""});
  }
}

void CheckDeployments(const DoctorReading& reading, const Installation& installed, Findings& findings) {
  if (!reading.deployments) {
    findings.push_back(NotRead("operator", "list deployments", reading.deployments.error()));
    return;
  }
  CheckDeployment(reading, "operator", findings);
  CheckDeployment(reading, installed.observes ? "observer" : "scheduler", findings);
}

void CheckLeases(const DoctorReading& reading, const Installation& installed, Findings& findings) {
  if (!reading.leases) {
    findings.push_back(NotRead("lease", "list leases in " + reading.ns, reading.leases.error()));
    return;
  }
  // The extender leads while the scheduler beside it does: one Lease for both.
  if (installed.observes) {
    CheckLease(reading, keys::kSchedulerLease, "heddle-observer", "no gang is looked at", findings);
  } else {
    CheckLease(reading, keys::kSchedulerLease, "heddle-scheduler", "no gang is planned, and gated pods wait",
               findings);
  }
  CheckLease(reading, keys::kOperatorLease, "heddle-operator",
             "Fabrics, node labels and policies stay as they are", findings);
}

void CheckAgents(const DoctorReading& reading, Findings& findings) {
  CheckDaemonSet(reading, findings);
  if (!reading.topologies) {
    findings.push_back(NotRead("agents", "list nodetopologies", reading.topologies.error()));
    return;
  }
  std::set<std::string> described;
  std::vector<std::string> mute, silent, without, barred;
  std::size_t reporting = 0, with_gpus = 0;
  for (const Json& one : *reading.topologies) {
    described.insert(kube::Name(one));
    if (kube::StringAt(one, {"status", "observedAt"}).empty()) {
      mute.push_back(kube::Name(one));
    } else {
      ++reporting;
      if (LacksPermission(one)) barred.push_back(kube::Name(one));
    }
  }
  if (reading.leases) {
    for (const Trouble& one : SilentAgents(*reading.topologies, *reading.leases, reading.now))
      silent.push_back(one.names.front());
  }
  if (reading.nodes) {
    for (const Json& node : *reading.nodes) {
      if (!HasGpus(node)) continue;
      ++with_gpus;
      if (!described.contains(kube::Name(node))) without.push_back(kube::Name(node));
    }
  } else {
    findings.push_back(NotRead("agents", "list nodes", reading.nodes.error()));
  }
  const std::string pods = fmt::format("kubectl -n {} get pods -o wide, and the agents' logs", reading.ns);
  if (!barred.empty()) {
    // Never a problem of its own: agent.access may leave it so on purpose.
    std::sort(barred.begin(), barred.end());
    findings.push_back({"agents", Verdict::kWarning,
                        fmt::format("{} of {}: the agent was not permitted to read some of its machine: {}",
                                    barred.size(), base::Counted(reporting, "node"), FirstNames(barred)),
                        "kubectl describe nt " + barred.front() +
                            " names it under DiscoveryComplete; give it by agent.access of the chart "
                            "(docs/nodeagent.md, Rights)"});
  }
  const std::size_t before = findings.size();
  Report("GPUs and no NodeTopology", without, with_gpus, "the operator makes it: see its log", findings);
  Report("no agent has reported", mute, described.size(), pods, findings);
  Report("the agent has fallen silent", silent, reporting, pods, findings);
  if (findings.size() != before) return;
  if (described.empty()) {
    findings.push_back({"agents", Verdict::kWarning, "no node with GPUs is known",
                        "are GPU device plugins there? `kubectl describe nodes` shows nvidia.com/gpu"});
  } else {
    findings.push_back(
        {"agents", Verdict::kOk, fmt::format("all {} report", base::Counted(reporting, "agent")), ""});
  }
}

void CheckVersions(const DoctorReading& reading, Findings& findings) {
  const std::size_t before = findings.size();
  const auto others = OtherVersions(reading);
  for (const auto& [version, who] : others) {
    findings.push_back({"versions", Verdict::kWarning,
                        fmt::format("{}: {}; this program is {}", version,
                                    FirstNames({who.begin(), who.end()}), base::kVersion),
                        "helm upgrade, or use the program of that version"});
  }
  CheckSchedulerVersion(reading, findings);
  if (findings.size() == before)
    findings.push_back(
        {"versions", Verdict::kOk, fmt::format("all that say theirs are {}", base::kVersion), ""});
}

}  // namespace heddle::cli
