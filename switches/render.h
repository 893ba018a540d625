#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/sonic_patch.h"
#include "formats/sonic_yang.h"
#include "lossless/policy.h"
#include "lossless/switch_profiles.h"
#include "switches/sonic_answers.h"

namespace heddle::switches {

// Each change of a patch with what was there, why, and who says so, for a person to read before it is applied. `faint`
// paints what is beside the point, or returns it as it is.
std::string Explain(const formats::SonicPatch& patch,
                    const std::function<std::string(const std::string&)>& faint);

// What a switch should have on the ports that one policy is for, against how it is set, with ProfileOf it. How long
// cables between switches are the policy does not say, so that the headroom of such a port stays as it is, with a note.
// Errors: those of formats::PatchSonic, and kInvalid for a policy that contradicts itself.
struct PolicyPorts {
  std::string policy;
  lossless::ResolvedPolicy resolved;
  std::set<std::string> host_ports, fabric_ports;  // as the switch names them; a port is in one of both
};
[[nodiscard]] base::Result<formats::SonicPatch> RenderPorts(const SonicAnswer& answer,
                                                            const PolicyPorts& wanted);

// What SONiC's published models refuse (formats/sonic_yang.h).
struct ConfigFaults {
  std::vector<formats::SonicFault> before;  // of the configuration as it is
  std::vector<formats::SonicFault> made;    // of what the patch makes of it, and not before
  bool empty() const { return before.empty() && made.empty(); }
};
// Errors: those of formats::CheckSonic, and kInvalid where the patch does not fit the configuration.
[[nodiscard]] base::Result<ConfigFaults> FaultsOf(const std::string& config_text,
                                                  const formats::SonicPatch& patch);

// The profile of a switch by its platform, else by its hwsku: NVIDIA's with one of the numbers that SONiC's table of
// chips has (sonic-buildimage, platform/mellanox/asic_table.j2) get that of their chip. Of all others, Spectrum-6 among
// them, no chip is known here, and they get "sonic/v1", which sizes no headroom.
const lossless::SwitchProfile& ProfileOf(const SonicAnswer& answer);

}  // namespace heddle::switches
