#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "crds/node_topology.h"
#include "nodeagent/assembly/assemble.h"
#include "nodeagent/devices/node_devices.h"
#include "nodeagent/grants/grants.h"
#include "nodeagent/monitor/pass_times.h"
#include "nodeagent/qos/report.h"

namespace heddle::nodeagent {

// `current` with the status that an observation comes to: the same facts keep the time at which they were
// seen first, the same condition the time of its last transition. Spec and metadata stay as they are.
// Leaves that no switch and no lldpd told are those of the labels in its spec: here and not in a probe, because
// here the object and what was seen are one moment's.
//
// Grants that could not be read stay as they are, too: a kubelet that is away starts no pods meanwhile, and who
// reads a grant leaves out those of pods that are gone. Null: nobody has asked yet, so what is said of them stays.
//
// Of `devices` the reports are status.devices, the conditions stand beside the others, and what our own ids stand for
// names what `grants` has. Null: none are offered.
//
// Of ports that are withdrawn nothing is usable, so that placement goes past them. `lossless` null, or without
// reports: what is said of them stays.
// `not_understood`: of the spec, as OwnNodeTopology has it. SpecUnderstood says so, and is left out without any.
inline constexpr std::string_view kSpecUnderstood = "SpecUnderstood";
// What the operator found of both ends of the node's cables (spec.cables); left out where it says nothing.
inline constexpr std::string_view kCablesLossless = "CablesLossless";
crds::NodeTopology Report(const crds::NodeTopology& current, const Observation& observation,
                          base::WallTime now, const GrantReadings* grants = nullptr,
                          const DeviceNews* devices = nullptr, const LosslessReadings* lossless = nullptr,
                          std::span<const std::string> not_understood = {});

// Gives `next`, another object, which is to follow `current`, DiscoveryComplete False of passes that do not end, one
// or more. All else stays: its facts are as old as they are.
void ReportStuck(const crds::NodeTopology& current, const std::vector<StuckPass>& passes, base::WallTime now,
                 crds::NodeTopology& next);

}  // namespace heddle::nodeagent
