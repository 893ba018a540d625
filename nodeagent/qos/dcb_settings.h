#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lossless/port_settings.h"
#include "lossless/render.h"
#include "nodeagent/qos/dcb_message.h"
#include "nodeagent/qos/port_io.h"

namespace heddle::nodeagent {

// Between what dcbnl says and settings. Pure.

// Reads DCBX, trust, DSCPs, PFC, cable, ETS and buffers. What the state lacks is a gap.
//
// `trust_file`: what MLNX_OFED's sysfs says ("dscp", "pcp"); nothing where there is none. Trust is that of the
// kernel's table, else of this file, else DSCP where the APP table names a DSCP: mlx5 and ice trust DSCPs from their
// first entry on, and the VLAN tag after the last one is deleted (Linux, mlx5e_dcbnl_ieee_setapp and _delapp).
//
// A DSCP without an entry is not said: mlx5 has it at dscp >> 3 as long as nobody touched it and at 0 once its entry
// was deleted, and says neither. Of several entries of one DSCP the highest priority counts (dcb_ieee_getapp_mask).
//
// Of `port` its driver counts, as cables are metres on mlx5_core alone and bit times in IEEE 802.1Qaz, and its
// interface, which a gap tells what to type for.
struct DcbSettings {
  lossless::PortSettings have;
  std::vector<lossless::Gap> gaps;
};
DcbSettings SettingsOfDcb(const DcbState& state, const std::optional<std::string>& trust_file,
                          const QosPort& port);

// The ETS message that makes these of the three ETS settings what `want` says, the rest staying as it is; nothing
// where it is so already. A class that is left with a share which `want` does not give it has none afterwards and is
// strict: shares must sum to 100, and `want` says all of them.
std::optional<ieee_ets> EtsFor(const ieee_ets& have, std::span<const lossless::Setting> settings,
                               const lossless::PortSettings& want);
// The same of PFC and the cable.
std::optional<ieee_pfc> PfcFor(const ieee_pfc& have, std::span<const lossless::Setting> settings,
                               const lossless::PortSettings& want);
// The same of buffers.
std::optional<dcbnl_buffer> BufferFor(const dcbnl_buffer& have, std::span<const lossless::Setting> settings,
                                      const lossless::PortSettings& want);

// What becomes of the entry of a DSCP that a map leaves open.
enum class Unsaid : std::uint8_t { kLeave, kClear };

// What the APP table lacks of a DSCP map, and what stands in its way.
struct DscpDifference {
  std::vector<DcbApp> add;
  std::vector<DcbApp> remove;
};
DscpDifference DscpsFor(const std::vector<DcbApp>& have, const lossless::DscpMap& want, Unsaid unsaid);
// All entries of DSCPs.
std::vector<DcbApp> DscpApps(const std::vector<DcbApp>& apps);

// The kernel's trust table for this trust; nothing where it is so already.
std::optional<std::vector<int>> TrustFor(const std::vector<int>& have, lossless::Trust want);

}  // namespace heddle::nodeagent
