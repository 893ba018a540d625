#include "tests/sim/pod_row.h"

#include <cstdlib>

#include "extender/compute_domain.h"
#include "extender/gang_key.h"

namespace heddle::sim {

using kube::Json;

PodRow ReadPodRow(const Json& pod) {
  PodRow row{.key = kube::KeyOf(pod), .uid = kube::Uid(pod)};
  for (const Json& owner : kube::ArrayAt(pod, {"metadata", "ownerReferences"})) {
    if (kube::BoolAt(owner, {"controller"}).value_or(false)) row.owner = kube::StringAt(owner, {"uid"});
  }
  row.node = kube::StringAt(pod, {"spec", "nodeName"});
  row.priority = int(kube::IntAt(pod, {"spec", "priority"}).value_or(0));
  row.phase = kube::StringAt(pod, {"status", "phase"});
  row.terminating = kube::Find(pod, {"metadata", "deletionTimestamp"}) != nullptr;
  row.channel = !extender::ClaimedComputeDomain(pod).empty();
  row.gated = !kube::ArrayAt(pod, {"spec", "schedulingGates"}).empty();
  if (const auto index = kube::StringAt(pod, {"metadata", "labels", extender::kCompletionIndex});
      !index.empty()) {
    row.index = std::atoi(index.c_str());
  } else if (const auto worker = kube::Label(pod, extender::lws::kWorkerIndex)) {
    row.index = std::atoi(worker->c_str());
    row.group = std::atoi(kube::Label(pod, extender::lws::kGroupIndex).value_or("").c_str());
  }
  for (const Json& container : kube::ArrayAt(pod, {"spec", "containers"})) {
    row.gpus += std::atoi(kube::StringAt(container, {"resources", "limits", "nvidia.com/gpu"}).c_str());
  }
  return row;
}

std::vector<PodRow> PodRows(const test::FakeApiServer& server) {
  std::vector<PodRow> rows;
  server.Visit(kube::kPods, [&rows](const Json& pod) { rows.push_back(ReadPodRow(pod)); });
  return rows;
}

}  // namespace heddle::sim
