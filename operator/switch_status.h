#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "crds/cable_report.h"
#include "crds/fabric_switch.h"
#include "operator/switch_verdicts.h"
#include "switches/ecn_marking.h"

namespace heddle::operators {

// Condition types of FabricSwitch.
inline constexpr std::string_view kCounted = "Counted";    // its counters are read
inline constexpr std::string_view kMarksEcn = "MarksEcn";  // what PFC protects is marked before it is paused

// How the ports with a compared cable mark ECN.
struct PortsMarking {
  int ports = 0;   // of which it is known
  int faults = 0;  // of these
  std::optional<switches::MarkingReason> gravest;
  std::string first;  // port of those with the gravest, as a sentence

  // `port` as the switch names it; `wanted` where a policy says it.
  void Take(const std::string& port, const lossless::PortSettings& settings,
            const std::optional<lossless::EcnMarking>& wanted);
};

// A FabricSwitch as one look at all of them takes it.
struct JudgedSwitch {
  const crds::FabricSwitch* object = nullptr;
  const SwitchAnswer* answer = nullptr;  // null: nobody has asked it yet
  std::string lie;                       // why its answer is not believed; empty = it is
  bool stale = false;
  bool silent = false;   // it has said nothing yet, and it is too early to take back what was said of it
  bool doubled = false;  // another FabricSwitch has its name, too
  crds::CableCounts counts;
  std::vector<crds::SwitchCable> worst;  // of cables that are not lossless, in any order
  PortsMarking marking;

  bool usable() const { return answer != nullptr && answer->config != nullptr && lie.empty() && !stale; }
};

// Why nothing is to be made of what it said, with reason and message of its condition Compared: it was never read, it
// is stale, or its name is in doubt. Nothing: it is believed, or it is one of OpenConfig that was not read, whose
// settings nobody could make anything of anyway.
std::optional<SwitchTrouble> WhyNotBelieved(const JudgedSwitch& judged);

// Its name in what hosts say: the system name, else the chassis id.
const std::string& NameOf(const crds::FabricSwitch& object);

// What the status of one is to say whose spec cannot be read, so that nobody asks it and no cable is joined with it.
// `known`: all of it but its spec; `why`: a sentence with what to do.
crds::FabricSwitchStatus StatusOfNotUnderstood(const crds::FabricSwitch& known, const std::string& why,
                                               base::WallTime now);

// What its status is to say. Conditions whose status has not changed keep their times.
crds::FabricSwitchStatus StatusOf(const JudgedSwitch& judged, base::WallTime now);

}  // namespace heddle::operators
