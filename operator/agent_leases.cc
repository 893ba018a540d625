#include "operator/agent_leases.h"

#include <algorithm>

#include "crds/keys.h"

namespace heddle::operators {

bool AgentLeases::Observe(const std::vector<kube::Json>& leases, const std::vector<std::string>& nodes,
                          base::MonotonicTime now) {
  std::map<std::string, const kube::Json*> specs;
  for (const kube::Json& lease : leases) {
    const std::string name = kube::Name(lease);
    if (!name.starts_with(crds::keys::kNodeLeasePrefix)) continue;
    specs[name.substr(crds::keys::kNodeLeasePrefix.size())] = kube::Find(lease, {"spec"});
  }
  const std::lock_guard lock(mutex_);
  std::map<std::string, Sighting> fresh;
  std::set<std::string> stale;
  for (const std::string& node : nodes) {
    const auto found = specs.find(node);
    Sighting sighting{found == specs.end() || found->second == nullptr ? kube::Json() : *found->second, now};
    const auto before = sightings_.find(node);
    if (before != sightings_.end() && before->second.spec == sighting.spec)
      sighting.changed = before->second.changed;
    if (Late(sighting, now)) stale.insert(node);
    fresh.emplace(node, std::move(sighting));
  }
  sightings_ = std::move(fresh);
  const bool changed = stale != stale_;
  stale_ = std::move(stale);
  return changed;
}

std::set<std::string> AgentLeases::Stale() const {
  const std::lock_guard lock(mutex_);
  return stale_;
}

bool AgentLeases::Late(const Sighting& sighting, base::MonotonicTime now) const {
  std::chrono::nanoseconds duration = options_.default_duration;
  if (const auto seconds = kube::IntAt(sighting.spec, {"leaseDurationSeconds"})) {
    duration = std::chrono::seconds(std::clamp<std::int64_t>(*seconds, 10, 3600));
  }
  return now - sighting.changed > duration + options_.slack;
}

}  // namespace heddle::operators
