#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/sonic_config.h"
#include "formats/sonic_patch.h"
#include "formats/sonic_yang.h"
#include "lossless/policy.h"

namespace heddle::switches {

// Each change of a patch with what was there, why, and who says so, for a person to read before it is applied. `faint`
// paints what is beside the point, or returns it as it is.
std::string Explain(const formats::SonicPatch& patch,
                    const std::function<std::string(const std::string&)>& faint);

// What a switch should have on the ports to hosts that one policy selects, against how it is set.
// Errors: those of formats::PatchSonic, and kInvalid for a policy that contradicts itself.
struct HostPorts {
  std::string policy;
  lossless::ResolvedPolicy resolved;
  std::set<std::string> ports;  // as the switch names them
};
[[nodiscard]] base::Result<formats::SonicPatch> RenderHostPorts(const std::string& config_text,
                                                                const formats::SonicConfig& config,
                                                                const std::string& model,
                                                                const HostPorts& wanted);

// What SONiC's published models refuse (formats/sonic_yang.h).
struct ConfigFaults {
  std::vector<formats::SonicFault> before;  // of the configuration as it is
  std::vector<formats::SonicFault> made;    // of what the patch makes of it, and not before
  bool empty() const { return before.empty() && made.empty(); }
};
// Errors: those of formats::CheckSonic, and kInvalid where the patch does not fit the configuration.
[[nodiscard]] base::Result<ConfigFaults> FaultsOf(const std::string& config_text,
                                                  const formats::SonicPatch& patch);

// The profile that a model's name speaks for: "spectrum/v1" for NVIDIA's, else "sonic/v1".
std::string_view ProfileOfModel(std::string_view model);

}  // namespace heddle::switches
