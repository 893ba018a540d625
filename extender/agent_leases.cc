#include "extender/agent_leases.h"

#include "crds/keys.h"

namespace heddle::extender {
namespace {

// Between two looks a renewal may be missed, so a Lease gets its duration and one more look.
constexpr std::chrono::seconds kSlack{30};

}  // namespace

std::set<std::string> AgentLeases::Observe(const std::vector<kube::Json>& leases, base::MonotonicTime now) {
  std::map<std::string, Sighting> seen;
  std::set<std::string> stale;
  for (const kube::Json& lease : leases) {
    std::string node = kube::Name(lease);
    if (!node.starts_with(crds::keys::kNodeLeasePrefix)) continue;
    node.erase(0, crds::keys::kNodeLeasePrefix.size());
    const std::string renewed = kube::StringAt(lease, {"spec", "renewTime"});
    const auto known = sightings_.find(node);
    const bool moved = known == sightings_.end() || known->second.renewed != renewed;
    const Sighting sighting{renewed, moved ? now : known->second.changed};
    const std::chrono::seconds duration(kube::IntAt(lease, {"spec", "leaseDurationSeconds"}).value_or(40));
    if (now - sighting.changed > duration + kSlack) stale.insert(node);
    seen.emplace(std::move(node), sighting);
  }
  sightings_ = std::move(seen);
  return stale;
}

}  // namespace heddle::extender
