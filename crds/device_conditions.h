#pragma once

#include <string_view>

namespace heddle::crds {

// Of a Gang by the extender and of a NodeTopology by its agent: what kubelets gave the pods is what their plans say.
inline constexpr std::string_view kDevicesAsPlanned = "DevicesAsPlanned";

}  // namespace heddle::crds
