#include "kube/heartbeats.h"

#include <algorithm>

namespace heddle::kube {

bool Heartbeats::Observe(const std::vector<Json>& leases,
                         const std::optional<std::vector<std::string>>& expected, base::MonotonicTime now) {
  std::map<std::string, Json> specs;
  if (expected) {
    for (const std::string& name : *expected) specs.emplace(name, Json());
  }
  for (const Json& lease : leases) {
    const std::string name = Name(lease);
    if (!name.starts_with(options_.prefix)) continue;
    const std::string who = name.substr(options_.prefix.size());
    if (expected && !specs.contains(who)) continue;
    const Json* spec = Find(lease, {"spec"});
    specs[who] = spec == nullptr ? Json() : *spec;
  }
  const std::lock_guard lock(mutex_);
  std::map<std::string, Sighting> fresh;
  std::set<std::string> late;
  for (auto& [who, spec] : specs) {
    Sighting sighting{std::move(spec), now};
    const auto before = sightings_.find(who);
    if (before != sightings_.end() && before->second.spec == sighting.spec)
      sighting.changed = before->second.changed;
    if (IsLate(sighting, now)) late.insert(who);
    fresh.emplace(who, std::move(sighting));
  }
  sightings_ = std::move(fresh);
  const bool changed = late != late_;
  late_ = std::move(late);
  return changed;
}

std::set<std::string> Heartbeats::Late() const {
  const std::lock_guard lock(mutex_);
  return late_;
}

bool Heartbeats::IsLate(const Sighting& sighting, base::MonotonicTime now) const {
  std::chrono::nanoseconds duration = options_.default_duration;
  if (const auto seconds = IntAt(sighting.spec, {"leaseDurationSeconds"})) {
    duration = std::chrono::seconds(std::clamp<std::int64_t>(*seconds, 10, 3600));
  }
  return now - sighting.changed > duration + options_.slack;
}

}  // namespace heddle::kube
