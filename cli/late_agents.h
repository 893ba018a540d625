#pragma once

#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/client.h"

namespace heddle::cli {

// What Leases say of the agents, for all commands. The extender watches them change and judges by its own clock; who
// looks once goes by when they were renewed.

struct AgentRenewal {
  base::WallTime at;
  bool late = false;  // it ran out so long ago that the extender has seen it, too
};
// By node, of Leases that say when they were renewed. Pure and total.
std::map<std::string, AgentRenewal> AgentRenewals(const std::vector<kube::Json>& leases, base::WallTime now);

// The nodes that no gang may use for it ("TopologyStale"). An agent that never had a Lease is not late, it is not
// there: the extender goes on with what was published. Pure and total.
std::set<std::string> LateAgents(const std::vector<kube::Json>& leases, base::WallTime now);

// The same of a live cluster; `clock` is the API server's. Where Leases cannot be read nobody is late, and a note says
// so.
std::set<std::string> ReadLateAgents(kube::Client& client, base::Clock& clock,
                                     std::vector<std::string>& notes, const std::stop_token& stop);

}  // namespace heddle::cli
