#pragma once

#include <string>

#include "crds/keys.h"
#include "kube/object.h"

namespace heddle::extender {

inline kube::Resource HeddleResource(crds::keys::Kind kind, bool namespaced) {
  return kube::CustomResource(std::string(crds::keys::kGroup), std::string(crds::keys::kVersion),
                              std::string(kind.plural), std::string(kind.kind), namespaced);
}
inline const kube::Resource kNodeTopologies = HeddleResource(crds::keys::kNodeTopology, false);
inline const kube::Resource kFabrics = HeddleResource(crds::keys::kFabric, false);
inline const kube::Resource kGangs = HeddleResource(crds::keys::kGang, true);

}  // namespace heddle::extender
