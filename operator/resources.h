#pragma once

#include <string>

#include "crds/keys.h"
#include "kube/object.h"

namespace heddle::operators {

inline kube::Resource ClusterResource(crds::keys::Kind kind) {
  return kube::CustomResource(std::string(crds::keys::kGroup), std::string(crds::keys::kVersion),
                              std::string(kind.plural), std::string(kind.kind), false);
}
inline const kube::Resource kNodeTopologies = ClusterResource(crds::keys::kNodeTopology);
inline const kube::Resource kFabrics = ClusterResource(crds::keys::kFabric);
inline const kube::Resource kGangs =
    kube::CustomResource(std::string(crds::keys::kGroup), std::string(crds::keys::kVersion),
                         std::string(crds::keys::kGang.plural), std::string(crds::keys::kGang.kind), true);
inline const kube::Resource kLosslessPolicies = ClusterResource(crds::keys::kLosslessPolicy);
inline const kube::Resource kFabricSwitches = ClusterResource(crds::keys::kFabricSwitch);
inline const kube::Resource kRdmaDevicePolicies = ClusterResource(crds::keys::kRdmaDevicePolicy);

}  // namespace heddle::operators
