#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "crds/fabric_switch.h"
#include "crds/lossless_policy.h"
#include "operator/outcome.h"
#include "operator/policies.h"
#include "operator/switch_verdicts.h"
#include "switches/sonic_answers.h"

namespace heddle::operators {

// Of a name that is longer than that, its beginning with a hash of all of it. Requires: max > 17.
std::string ShortName(const std::string& name, std::size_t max);

// Condition type of FabricSwitch in mode Render: its ConfigMap has what it should have.
inline constexpr std::string_view kRendered = "Rendered";

// What a switch in mode Render is to have in its ConfigMap, and what its condition Rendered says of that.
struct SwitchMap {
  // By key: the name of a policy, of a long one ShortName, with ".load.json", ".patch.json" or ".txt".
  std::map<std::string, std::string> data;
  bool any = false;     // something of a policy is in it; else `data` only says why there is nothing
  bool good = false;    // the condition is True
  std::string reason;   // of the condition, one CamelCase word
  std::string message;  // likewise: a sentence, with what to do where it is not True
};

// For each policy that alone selects ports of hosts whose cables end on the switch, or that its ports to other switches
// are to have, the patch, and the same explained; of those in doubt nothing, and why. Pure.
SwitchMap MapOf(const HostCables& cables, const switches::SonicAnswer& answer,
                const Policies<crds::LosslessPolicy>& policies);

// Where a switch is not believed (SwitchVerdicts::doubts) there is no patch: it may be for another switch, or against
// settings that are no longer there, and whoever applies it would not see that.
SwitchMap MapInDoubt(const SwitchTrouble& why);

// Of one in mode Observe, where something stands from when it was in mode Render.
SwitchMap MapOfObserved();

// Says in `status` how the map stands; `written`: what came of writing it, where it was to be written.
void SetRendered(const crds::FabricSwitch& object, const SwitchMap& map, const base::Result<Outcome>& written,
                 base::WallTime now, crds::FabricSwitchStatus& status);

}  // namespace heddle::operators
