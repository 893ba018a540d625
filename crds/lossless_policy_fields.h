#pragma once

#include "base/result.h"
#include "crds/object_meta.h"

namespace heddle::crds {

// For who reads a LosslessPolicy without a server: what the API server refuses or drops of its spec and
// LosslessPolicyFromJson takes, because objects that are stored already must stay readable; and labels in nodeSelector
// that no Node can have. Errors: kInvalid with every field that no LosslessPolicy has, and the one that was probably
// meant; else with the first field that cannot stand so.
// Requires: that LosslessPolicyFromJson takes the object.
[[nodiscard]] base::Status CheckLosslessPolicyFields(const Json& policy);

}  // namespace heddle::crds
