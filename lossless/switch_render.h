#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lossless/headroom.h"
#include "lossless/policy.h"
#include "lossless/port_settings.h"
#include "lossless/render.h"
#include "lossless/switch_profiles.h"

namespace heddle::lossless {

// What hangs on a switch port: a host's NIC, or another switch of the fabric. Both carry the same classes; cables
// between switches are longer, and so is what comes after a pause.
enum class PortFacing : std::uint8_t { kHost, kFabric };
std::string_view PortFacingName(PortFacing facing);  // "host", "fabric"

// What is known of a switch port.
struct SwitchPortFacts {
  PortFacing facing = PortFacing::kHost;
  std::optional<int> speed_mbps;
  std::optional<int> cable_metres;  // else, of a host's, what the policy says
  friend bool operator==(const SwitchPortFacts&, const SwitchPortFacts&) = default;
};

// A setting, and who says so.
struct SettingSource {
  Setting setting = Setting::kTrust;
  std::string source;
  friend bool operator==(const SettingSource&, const SettingSource&) = default;
};

// What a switch port should have. Each setting has its source; what can be said of a switch, and follows neither from
// the policy nor from the switch's profile, is a gap.
struct SwitchRendering {
  PortSettings settings;  // class_algorithm and class_percent by queue, buffer_bytes by priority group: xoff
  std::vector<SettingSource> sources;  // in the order of the settings
  std::vector<Gap> gaps;               // likewise
  std::optional<Headroom> headroom;    // of each lossless priority group

  // Who says so. Requires: `settings` has it, and all of this was made by RenderSwitchPort. It is a bug if nobody does:
  // what is written to a switch would stand there without a reason.
  std::string_view SourceOf(Setting setting) const;
  friend bool operator==(const SwitchRendering&, const SwitchRendering&) = default;
};

// A DSCP → TC map of all 64, a TC → queue map of which each class of the policy has a queue, a TC → priority group map
// of which only lossless ones have a group, PFC, watchdog, ECN, shares, MTU and headroom.
SwitchRendering RenderSwitchPort(const ResolvedPolicy& policy, const SwitchProfile& profile,
                                 const SwitchPortFacts& port);

}  // namespace heddle::lossless
