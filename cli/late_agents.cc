#include "cli/late_agents.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "cli/live_cluster.h"
#include "crds/keys.h"
#include "kube/object.h"

namespace heddle::cli {

std::map<std::string, AgentRenewal> AgentRenewals(const std::vector<kube::Json>& leases, base::WallTime now) {
  // The extender and the operator look every 30 s, and count from when they saw a renewal. Whom they still plan on is
  // not called silent here.
  constexpr std::chrono::seconds kSlack{60};
  std::map<std::string, AgentRenewal> renewals;
  for (const kube::Json& lease : leases) {
    const std::string name = kube::Name(lease);
    if (!name.starts_with(crds::keys::kNodeLeasePrefix)) continue;
    const auto renewed = base::ParseTime(kube::StringAt(lease, {"spec", "renewTime"}));
    if (!renewed) continue;
    const auto duration = kube::IntAt(lease, {"spec", "leaseDurationSeconds"}).value_or(0);
    const std::chrono::seconds holds(std::clamp<std::int64_t>(duration, 0, 86'400));
    renewals[name.substr(crds::keys::kNodeLeasePrefix.size())] = {*renewed, now > *renewed + holds + kSlack};
  }
  return renewals;
}

std::set<std::string> LateAgents(const std::vector<kube::Json>& leases, base::WallTime now) {
  std::set<std::string> late;
  for (const auto& [node, renewal] : AgentRenewals(leases, now)) {
    if (renewal.late) late.insert(node);
  }
  return late;
}

std::set<std::string> ReadLateAgents(kube::Client& client, base::Clock& clock,
                                     std::vector<std::string>& notes, const std::stop_token& stop) {
  const auto leases = ListOrWhyNot(client, kube::kLeases, {.ns = std::string(crds::keys::kNamespace)}, stop);
  if (leases) return LateAgents(*leases, clock.WallNow());
  notes.push_back("Which agents fell silent is not known, so no node is left out for it: " +
                  leases.error().message);
  return {};
}

}  // namespace heddle::cli
