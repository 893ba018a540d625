#include "extender/unmodelled.h"

#include <algorithm>
#include <array>

#include "extender/compute_domain.h"

namespace heddle::extender {
namespace {

using Found = std::optional<std::string>;
using Rule = Found (*)(const kube::Json& pod);

constexpr const char* kHard = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr const char* kSoft = "preferredDuringSchedulingIgnoredDuringExecution";

Found PodAffinity(const kube::Json& pod) {
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    if (kube::ArrayAt(pod, {"spec", "affinity", kind, kHard}).empty()) continue;
    return "spec.affinity." + std::string(kind) + "." + kHard +
           " is not modelled for gangs; remove it or make it a preference: Heddle keeps the gang together "
           "itself";
  }
  return std::nullopt;
}

Found TopologySpread(const kube::Json& pod) {
  for (const kube::Json& spread : kube::ArrayAt(pod, {"spec", "topologySpreadConstraints"})) {
    if (kube::StringAt(spread, {"whenUnsatisfiable"}) == "ScheduleAnyway") continue;
    return "spec.topologySpreadConstraints with DoNotSchedule (" + kube::StringAt(spread, {"topologyKey"}) +
           ") is not modelled for gangs; remove it or use ScheduleAnyway";
  }
  return std::nullopt;
}

Found HostPort(const kube::Json& pod) {
  for (const char* kind : {"containers", "initContainers"}) {
    for (const kube::Json& container : kube::ArrayAt(pod, {"spec", kind})) {
      for (const kube::Json& port : kube::ArrayAt(container, {"ports"})) {
        const auto number = kube::IntAt(port, {"hostPort"}).value_or(0);
        if (number == 0) continue;
        return "hostPort " + std::to_string(number) + " of container " + kube::StringAt(container, {"name"}) +
               " is not modelled for gangs; remove it (with hostNetwork, leave `ports` out: nothing needs "
               "it)";
      }
    }
  }
  return std::nullopt;
}

Found ResourceClaims(const kube::Json& pod) {
  for (const kube::Json& claim : kube::ArrayAt(pod, {"spec", "resourceClaims"})) {
    if (IsComputeDomainClaim(pod, claim)) continue;
    return "spec.resourceClaims (" + kube::StringAt(claim, {"name"}) +
           ") is not modelled for gangs; ask for GPUs as an extended resource, and for the IMEX channel of a "
           "ComputeDomain by heddle.dev/compute-domain: \"true\"";
  }
  return std::nullopt;
}

Found EphemeralVolume(const kube::Json& pod) {
  for (const kube::Json& volume : kube::ArrayAt(pod, {"spec", "volumes"})) {
    if (kube::Find(volume, {"ephemeral"}) == nullptr) continue;
    return "the generic ephemeral volume " + kube::StringAt(volume, {"name"}) +
           " is provisioned per pod and may tie it to a zone, which is not modelled for gangs; use emptyDir "
           "or a "
           "bound claim without node affinity";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> UnmodelledConstraint(const kube::Json& pod) {
  constexpr std::array<Rule, 5> kRules{PodAffinity, TopologySpread, HostPort, ResourceClaims,
                                       EphemeralVolume};
  for (const Rule rule : kRules) {
    if (Found found = rule(pod)) return found;
  }
  return std::nullopt;
}

std::vector<std::string> UnweighedPreferences(const kube::Json& pod) {
  std::vector<std::string> sentences;
  for (const char* kind : {"nodeAffinity", "podAffinity", "podAntiAffinity"}) {
    if (kube::ArrayAt(pod, {"spec", "affinity", kind, kSoft}).empty()) continue;
    sentences.push_back("the preferences in spec.affinity." + std::string(kind) + " were not weighed");
  }
  const kube::Json& spread = kube::ArrayAt(pod, {"spec", "topologySpreadConstraints"});
  const bool soft = std::any_of(spread.begin(), spread.end(), [](const kube::Json& one) {
    return kube::StringAt(one, {"whenUnsatisfiable"}) == "ScheduleAnyway";
  });
  if (soft) sentences.emplace_back("spec.topologySpreadConstraints with ScheduleAnyway were not weighed");
  return sentences;
}

std::vector<std::string> ClaimNames(const kube::Json& pod) {
  std::vector<std::string> names;
  for (const kube::Json& volume : kube::ArrayAt(pod, {"spec", "volumes"})) {
    const std::string name = kube::StringAt(volume, {"persistentVolumeClaim", "claimName"});
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

}  // namespace heddle::extender
