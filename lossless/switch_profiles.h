#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lossless/headroom.h"
#include "lossless/port_settings.h"
#include "lossless/profiles.h"

namespace heddle::lossless {

// What one kind of switch is to get beside what the policy says, under a name with a version. A value that nobody
// publishes is not in it: what follows from it is then a gap with a reason, and never a guess.
struct SwitchProfile {
  std::string name;                // "sonic/v1"
  std::optional<int> mtu;          // of IP packets, bytes
  std::optional<int> watchdog_ms;  // from when a pause counts as a storm, ms
  std::optional<EcnMarking> marking;
  std::optional<Asic> asic;
  std::vector<ProfileValue> sources;  // one for each value, named as the setting, or "headroom"
  std::string_view no_asic;           // why `asic` is missing; empty with it
  std::string_view note;              // what a person should know; may be empty
};

std::span<const SwitchProfile> SwitchProfiles();
const SwitchProfile* FindSwitchProfile(std::string_view name);  // null: there is none of that name
std::string SwitchProfileNames();                               // "sonic/v1, spectrum/v1, …"

}  // namespace heddle::lossless
