#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "crds/cable_report.h"
#include "crds/fabric_switch.h"
#include "operator/switch_verdicts.h"

namespace heddle::operators {

inline constexpr std::string_view kCounted = "Counted";  // FabricSwitch: its counters are read

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

  bool usable() const { return answer != nullptr && answer->config != nullptr && lie.empty() && !stale; }
};

// Its name in what hosts say: the system name, else the chassis id.
const std::string& NameOf(const crds::FabricSwitch& object);

// What its status is to say. Conditions whose status has not changed keep their times.
crds::FabricSwitchStatus StatusOf(const JudgedSwitch& judged, base::WallTime now);

}  // namespace heddle::operators
