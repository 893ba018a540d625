#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/sonic_patch.h"

namespace heddle::formats {

// How a patch comes onto a switch. `config apply-patch` has a list of what may change in some tables, and refuses a
// whole patch for one other operation (sonic-utilities, generic_config_updater: field_operation_validators.py and
// gcu_field_operation_validators.conf.json): new profiles in WRED_PROFILE and BUFFER_PROFILE, and PFC_WD|GLOBAL. What
// refers to a profile goes through it, so the profiles have to be there before.

// "config apply-patch", "config load", or "sonic-db-cli" for what is to go from those tables: `config load` only adds.
std::string_view TakenBy(const PatchLine& line);

// The parts, in the order in which they go to the switch.
struct SonicSteps {
  std::string load;                   // what `config load` takes, whole or parts of entries; empty = nothing
  std::vector<std::string> removals;  // commands
  std::string patch;                  // JSON Patch that `config apply-patch` takes; "[]\n" = nothing
  bool patches = false;               // there is something in `patch`
};
SonicSteps StepsOf(const SonicPatch& patch);

// What to type on the switch, where the parts are files of these names: a command each, the last of which keeps it all
// over a boot. None where there is nothing to do.
std::vector<std::string> CommandsOf(const SonicSteps& steps, std::string_view load_file,
                                    std::string_view patch_file);

}  // namespace heddle::formats
