#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/counted.h"
#include "cli/advice.h"
#include "cli/doctor_parts.h"
#include "crds/keys.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

using crds::Json;

std::string Title(const DevicePod& pod) {
  return pod.ns + "/" + pod.name;
}

// Other programs that matter to gangs, by what their images and Deployments are called.
struct Neighbour {
  std::string_view word, name, what, remedy;
  Verdict verdict;
};
constexpr std::array kNeighbours{
    Neighbour{
        "cluster-autoscaler", "cluster-autoscaler",
        "does not see pods at a gate, so it adds no node for a gang that waits, and may take away nodes "
        "that are kept free for one",
        "keep node groups with GPUs at a size of your own", Verdict::kWarning},
    Neighbour{
        "karpenter", "Karpenter",
        "does not see pods at a gate, so it adds no node for a gang that waits, and may take away nodes "
        "that are kept free for one",
        "give GPU NodePools a fixed size, and disruption budgets of 0", Verdict::kWarning},
    Neighbour{
        "kueue", "Kueue",
        "its gate stands beside Heddle's: it decides who may start, Heddle where; whom it queues it "
        "alone preempts; it admits plain pod groups of gangs only with resources.excludeResourcePrefixes: "
        "[heddle.dev/fabric] in its configuration",
        "", Verdict::kOk},
};

bool Mentions(const Json& deployment, std::string_view word) {
  if (kube::Name(deployment).find(word) != std::string::npos) return true;
  for (const Json& container : kube::ArrayAt(deployment, {"spec", "template", "spec", "containers"})) {
    if (kube::StringAt(container, {"image"}).find(word) != std::string::npos) return true;
  }
  return false;
}

// As `release` looks for it.
bool IsGatingInForce(const DoctorReading& reading) {
  if (!reading.mutating_bindings) return true;  // it may be
  return std::any_of(reading.mutating_bindings->begin(), reading.mutating_bindings->end(),
                     [](const Json& one) { return kube::Name(one) == "heddle-gang"; });
}

void CheckBypass(const DoctorReading& reading, const Installation& installed, Findings& findings) {
  std::map<std::string, std::vector<std::string>> other;  // by scheduler
  std::vector<std::string> by_hand;
  std::size_t ours = 0;
  for (const DevicePod& pod : *reading.pods) {
    if (!pod.gpus || !InScope(reading, installed, pod.ns)) continue;
    if (pod.scheduler == crds::keys::kSchedulerName) {
      ++ours;
    } else if (pod.by_hand) {
      by_hand.push_back(Title(pod));
    } else {
      other[pod.scheduler.empty() ? "default-scheduler" : pod.scheduler].push_back(Title(pod));
    }
  }
  const std::size_t before = findings.size();
  for (auto& [scheduler, pods] : other) {
    std::sort(pods.begin(), pods.end());
    findings.push_back(
        {"bypass", Verdict::kWarning,
         fmt::format("{} with GPUs in Heddle's scope went to {}: {}", base::Counted(pods.size(), "pod"),
                     scheduler, FirstNames(pods)),
         scheduler != "default-scheduler" ? "take schedulerName off them, or their namespace out of the scope"
         : installed.by_hand
             ? "make them anew, prepared: kubectl heddle prepare -f job.yaml | kubectl create -f -"
             : "they were made before Heddle, or while its policy was not in force: make them anew"});
  }
  if (!by_hand.empty()) {
    std::sort(by_hand.begin(), by_hand.end());
    findings.push_back({"bypass", Verdict::kWarning,
                        fmt::format("{} with GPUs {} put on a node by hand (spec.nodeName): {}",
                                    base::Counted(by_hand.size(), "pod"),
                                    by_hand.size() == 1 ? "was" : "were", FirstNames(by_hand)),
                        "use nodeSelector, and they go past nobody"});
  }
  if (findings.size() == before) {
    findings.push_back({"bypass", Verdict::kOk,
                        fmt::format("no pod with GPUs goes past Heddle in its scope; {} through it",
                                    ours == 1 ? "1 goes" : fmt::format("{} go", ours)),
                        ""});
  }
}

void CheckRdma(const DoctorReading& reading, Findings& findings) {
  std::map<std::string, std::vector<std::string>> faulty;  // by what is wrong
  for (const DevicePod& pod : *reading.pods) {
    for (const std::string& fault : pod.rdma_faults) faulty[fault].push_back(Title(pod));
  }
  for (auto& [fault, pods] : faulty) {
    std::sort(pods.begin(), pods.end());
    const std::size_t colon = fault.find(": ");
    findings.push_back({"rdma", Verdict::kWarning,
                        fmt::format("{}: {}: {}", base::Counted(pods.size(), "pod"), FirstNames(pods),
                                    fault.substr(0, colon)),
                        colon == std::string::npos ? "kubectl heddle check" : fault.substr(colon + 2)});
  }
  if (!reading.topologies) {
    findings.push_back(
        NotRead("rdma", "list nodetopologies, which say whose NICs speak RoCE", reading.topologies.error()));
  } else if (faulty.empty()) {
    findings.push_back(
        {"rdma", Verdict::kOk, "no pod with RDMA devices lacks what it needs to use them", ""});
  }
}

}  // namespace

void CheckPods(const DoctorReading& reading, const Installation& installed, Findings& findings) {
  if (!reading.pods) {
    findings.push_back(NotRead("bypass", "list pods of all namespaces", reading.pods.error()));
    return;
  }
  if (!reading.namespaces && !installed.everywhere && !installed.observes) {
    findings.push_back(NotRead("bypass", "list namespaces", reading.namespaces.error()));
  } else if (installed.scope_known && !installed.observes) {
    CheckBypass(reading, installed, findings);
  }
  CheckRdma(reading, findings);
}

void CheckStranded(const DoctorReading& reading, const Installation& installed, Findings& findings) {
  if (!reading.pods) return;  // said with what could not be read
  // The observer holds that Lease, too, and whoever has uninstalled Heddle has neither.
  std::string away = reading.leases ? WhyNotHeld(reading, crds::keys::kSchedulerLease) : "";
  if (away.empty() && installed.observes) away = "mode=observe";
  if (away.empty()) return;
  std::vector<std::string> gated, unbound;
  for (const DevicePod& pod : *reading.pods) {
    if (pod.gated) {
      gated.push_back(Title(pod));
    } else if (pod.unbound && pod.scheduler == crds::keys::kSchedulerName) {
      unbound.push_back(Title(pod));
    }
  }
  // `release` refuses where new pods would be gated or sent to Heddle again.
  const bool gates = !installed.observes && IsGatingInForce(reading);
  const std::string first =
      gates ? "start the scheduler again (see lease); or where Heddle is to go, helm uninstall, and then "
            : "";
  const auto report = [&](std::vector<std::string>& pods, std::string_view waits) {
    if (pods.empty()) return;
    std::sort(pods.begin(), pods.end());
    findings.push_back({"stranded", Verdict::kProblem,
                        fmt::format("{} {} {} ({}): {}", base::Counted(pods.size(), "pod"),
                                    pods.size() == 1 ? "waits" : "wait", waits, away, FirstNames(pods)),
                        first + "kubectl heddle release --all"});
  };
  report(gated, "at Heddle's gate, which nobody opens");
  report(unbound, "for the scheduler heddle, which is away");
}

void CheckNeighbours(const DoctorReading& reading, Findings& findings) {
  if (!reading.deployments) return;  // said with the operator's
  for (const Neighbour& neighbour : kNeighbours) {
    std::vector<std::string> found;
    for (const Json& one : *reading.deployments) {
      if (Mentions(one, neighbour.word)) found.push_back(kube::KeyOf(one).ToString());
    }
    if (found.empty()) continue;
    findings.push_back({"neighbours", neighbour.verdict,
                        fmt::format("{} ({}): {}", neighbour.name, FirstNames(found), neighbour.what),
                        std::string(neighbour.remedy)});
  }
}

}  // namespace heddle::cli
