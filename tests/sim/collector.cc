#include "tests/sim/collector.h"

#include <algorithm>
#include <set>

#include "extender/compute_domain.h"
#include "extender/resources.h"
#include "tests/sim/job_sets.h"
#include "tests/sim/leader_sets.h"

namespace heddle::sim {

using kube::Json;

Collector::Collector(Simulation& simulation, test::FakeApiServer& server, JobController& jobs)
    : simulation_(simulation),
      server_(server),
      jobs_(jobs),
      pace_(simulation, std::chrono::seconds(2), [this] { Look(); }) {}

void Collector::Look() {
  if (stopped_) return;
  std::set<std::string> owners;
  for (const kube::Resource& resource : {kube::kJobs, JobSetKind(), LeaderSetKind()})
    server_.Visit(resource, [&](const Json& owner) { owners.insert(kube::Uid(owner)); });
  const auto orphaned = [&owners](const Json& object) {
    const Json& references = kube::ArrayAt(object, {"metadata", "ownerReferences"});
    return !references.empty() && std::none_of(references.begin(), references.end(), [&](const Json& owner) {
      return owners.contains(kube::StringAt(owner, {"uid"}));
    });
  };
  for (const PodRow& pod : PodRows(server_)) {
    if (!pod.owner.empty() && !owners.contains(pod.owner)) jobs_.DeletePod(pod.key, "its Job is gone");
  }
  for (const Json& gang : server_.All(extender::kGangs)) {
    if (!orphaned(gang)) continue;
    simulation_.Say("collect gang " + kube::Name(gang));
    server_.Remove(extender::kGangs, kube::KeyOf(gang));
  }
  for (const Json& domain : server_.All(extender::kComputeDomains)) {
    if (!orphaned(domain) || kube::DeletionTimestamp(domain)) continue;
    const kube::ObjectKey key = kube::KeyOf(domain);
    simulation_.Say("collect ComputeDomain " + key.name);
    if (kube::ArrayAt(domain, {"metadata", "finalizers"}).empty()) {
      server_.Remove(extender::kComputeDomains, key);
    } else {
      server_.Edit(extender::kComputeDomains, key, [this](Json& edited) {
        edited["metadata"]["deletionTimestamp"] = base::FormatTime(simulation_.wall());
      });
    }
  }
}

}  // namespace heddle::sim
