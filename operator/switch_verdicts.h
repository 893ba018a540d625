#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "crds/fabric_switch.h"
#include "crds/lossless_policy.h"
#include "crds/node_topology.h"
#include "operator/policies.h"
#include "switches/fabric_ports.h"
#include "switches/neighbours.h"
#include "switches/port_counters.h"
#include "switches/sonic_answers.h"
#include "switches/switch_links.h"

namespace heddle::operators {

// Why a switch is not known, for its condition Reachable.
struct SwitchTrouble {
  std::string reason;   // "Unreachable", "CertificateRefused", …; see docs/switches.md
  std::string message;  // a sentence with what to do
  friend bool operator==(const SwitchTrouble&, const SwitchTrouble&) = default;
};

// What is known of a switch's counters.
struct SwitchCounting {
  std::optional<SwitchTrouble> trouble;      // of the last try; nothing = all that was asked for came
  std::optional<base::WallTime> counted_at;  // when anything was last counted; nothing = never
  int ports = 0;                             // of the last sample
  switches::FlapsBy flaps = switches::FlapsBy::kUnknown;  // as the last sample that knew told it
  int noted = 0;  // ports of which something counts as nothing, as after a boot
  std::vector<std::string>
      notes;  // of the first of them: "Ethernet0: in_errors went back from 120 to 4: ..."
  friend bool operator==(const SwitchCounting&, const SwitchCounting&) = default;
};

// What is known of a switch by asking it.
struct SwitchAnswer {
  std::optional<SwitchTrouble> trouble;   // of the last try; nothing = it answered
  std::optional<base::WallTime> read_at;  // when it last answered; nothing = never
  // As it answered then; null = never, or none to be had. Of OpenConfig all of its ports are bare.
  std::shared_ptr<const switches::SonicAnswer> config;
  std::shared_ptr<const switches::Neighbours> neighbours;  // likewise whom it sees; null = nobody knows
  std::optional<base::WallTime> saw_at;                    // when it last said whom it sees, if only nobody
  std::string version;                                     // of its operating system; empty = not known
  std::string chassis_id;  // as its own LLDP says it; empty = it has said none
  bool connecting = true;  // nothing has come of any try yet
  SwitchCounting counting;
  std::string address;  // at which it was asked; empty = whatever its FabricSwitch has
  // WallAhead at read_at and saw_at; nothing = nobody set the clock since.
  std::optional<std::chrono::nanoseconds> read_ahead, saw_ahead;
  friend bool operator==(const SwitchAnswer&, const SwitchAnswer&) = default;
};
using SwitchAnswers = std::map<std::string, SwitchAnswer>;  // by the name of the FabricSwitch

// What one node says that its cables are judged by.
struct CabledNode {
  std::string name;
  // Its NICs, what policies wish of its ports, what its agent reports, and spec.cables as it stands.
  std::shared_ptr<const crds::NodeTopology> topology;
};

// The cables that end on a switch, for what is rendered of its ports.
struct HostCables {
  int cables = 0;                                      // of hosts
  std::map<std::string, std::set<std::string>> ports;  // by the one policy that selects the host's end
  // Of which LLDP says what cannot be, so that nobody knows whose cable it is (switches/claims.h): why, as a sentence.
  std::map<std::string, std::string> doubted;  // by port
  switches::FabricPorts fabric;                // without those of `ports` and `doubted`
  friend bool operator==(const HostCables&, const HostCables&) = default;
};

// What is said of one node, by its cables.
struct NodeVerdict {
  std::vector<crds::CableReport> reports;          // what is to stand in its spec
  crds::CableCounts counts;                        // of the cables that are counted, by their policies
  std::string worst;                               // of the first that contradicts: a sentence with both ends
  std::map<int, lossless::LosslessVerdict> rails;  // of its worst cable on each
  friend bool operator==(const NodeVerdict&, const NodeVerdict&) = default;
};

// What is to stand in the specs of nodes and in the statuses of switches.
struct SwitchVerdicts {
  // By node; every node is in it, and none is null. One that was judged as before is the same object.
  std::map<std::string, std::shared_ptr<const NodeVerdict>> nodes;
  std::map<std::string, crds::FabricSwitchStatus> statuses;  // by FabricSwitch
  // By FabricSwitch: why nothing is made of what it said. One that is silent as yet (Silent) is not among them.
  std::map<std::string, SwitchTrouble> doubts;
  // By FabricSwitch in mode Render. One on which no cable ends, of a host or of a switch, is not among them.
  std::map<std::string, HostCables> host_cables;
  std::vector<switches::SwitchLink> between;  // of switches that are asked
  std::optional<base::WallTime> turns;        // when the next of them is stale, if its switch answers no more
};

// Whether both have the same counts and the same worst cables of every node, and the same cables between switches.
bool SayTheSameOfCables(const SwitchVerdicts& a, const SwitchVerdicts& b);

// Who says nothing now.
struct Silent {
  std::set<std::string>
      nodes;  // whose agent does not renew its Lease: what it said of its end proves nothing
  // FabricSwitches that nobody has heard yet, and only because we began a moment ago: what was written of them and
  // their cables stays.
  std::set<std::string> switches;
  // Switches whose FabricSwitch cannot be read, by the name that cables have for them: nobody asks them.
  std::set<std::string> unread;
};

// Settings that were read longer ago than this many polls prove nothing any more, nor does whom a switch saw then.
inline constexpr int kPollsUntilStale = 3;
// How far the wall clock is before the monotonic one. By the difference of two of these somebody set it meanwhile.
std::chrono::nanoseconds WallAhead(base::Clock& clock);
// A time of when the wall clock was `then` ahead, as it would stand in one that is `now` ahead: that a machine's clock
// is set makes nothing old, and nothing new.
base::WallTime AsOf(base::WallTime time, const std::optional<std::chrono::nanoseconds>& then,
                    std::chrono::nanoseconds now);
// Until when what a switch said at that time is a proof.
base::WallTime StaleAt(const crds::FabricSwitch& object, base::WallTime said);

// Compares both ends of every cable between these nodes and switches. A cable counts as a person wants it
// (LosslessPolicy, countedCables), where exactly one policy selects its port. One that ends on no FabricSwitch is told
// only where nothing else than a proof counts. What a switch said is used until it is stale; then, and while two
// switches have one name, or it calls itself otherwise, nothing of it is proved: never a false "lossless". Whom it saw
// still contradicts then, where it answers all else.
// Pure: `now` is the time of conditions that turn, and what staleness is measured against. For who looks again and
// again there is KeptVerdicts.
SwitchVerdicts DecideVerdicts(const std::vector<crds::FabricSwitch>& fabric_switches,
                              const SwitchAnswers& answers, const std::vector<CabledNode>& nodes,
                              const Policies<crds::LosslessPolicy>& policies, const Silent& silent,
                              base::WallTime now);

}  // namespace heddle::operators
