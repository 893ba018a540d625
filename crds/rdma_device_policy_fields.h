#pragma once

#include "base/result.h"
#include "crds/object_meta.h"

namespace heddle::crds {

// For who reads an RdmaDevicePolicy without a server: what the API server refuses or drops of its spec and
// RdmaDevicePolicyFromJson takes; and labels in nodeSelector that no Node can have. Errors: kInvalid with every field
// that no RdmaDevicePolicy has, and the one that was probably meant; else with the first field that cannot stand so.
// Requires: that RdmaDevicePolicyFromJson takes the object.
[[nodiscard]] base::Status CheckRdmaDevicePolicyFields(const Json& policy);

}  // namespace heddle::crds
