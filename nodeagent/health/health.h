#pragma once

#include <vector>

#include "crds/node_topology.h"
#include "nodeagent/assembly/assemble.h"
#include "nodeagent/health/link_health.h"
#include "nodeagent/health/nvlink_health.h"

namespace heddle::nodeagent {

// Puts what the counters say on the last look at the machine, before it is published: state, fault, reason and
// usable bandwidth of each port, which ports are congested, and what NVLink's counters say. Roles and rails stay as
// measured: a link that flaps does not change its rail. `nvlinks`: null where NVLink was not watched. Pure.
void ApplyHealth(const std::vector<PortHealth>& ports, const NvlinkHealth* nvlinks, Observation& seen);

// After a restart, before the first Look: what stands in the published object is not forgotten, and nothing is
// made up where it stands nowhere. Pure.
void RestoreHealth(const crds::NodeTopologyStatus& published, LinkHealth& links, NvlinkHealth& nvlinks);

}  // namespace heddle::nodeagent
