#pragma once

#include <string>
#include <vector>

#include "nodeagent/assembly/assemble.h"
#include "nodeagent/health/counters.h"
#include "nodeagent/leaf/leaf_counts.h"

namespace heddle::nodeagent {

// What a leaf said, as a reading of the port that is cabled to it. Pure.
LeafEnd LeafEndOf(const LeafCounts& counts);
// Why nothing, or not all that speaks of faults, is known of that end; empty: all is. A counter that stands at its
// largest number tells nothing any more.
std::string WhyLeafUnread(const LeafEnd& leaf);

// InfiniBand ports of those that are watched, by the names that leaves are asked for.
std::vector<RdmaPortName> PortsWithLeaves(const std::vector<WatchedPort>& ports);
// Puts what leaves said now beside what the ports themselves did.
void AddLeafEnds(const std::vector<LeafCounts>& leaves, CounterReadings& readings);

// For one look without history, as of --print: which leaves tell, and which do not. ApplyHealth says it else.
void SayLeafEnds(const std::vector<LeafCounts>& leaves, const std::vector<WatchedPort>& ports,
                 Observation& seen);

}  // namespace heddle::nodeagent
