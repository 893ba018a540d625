#pragma once

#include <algorithm>

#include "crds/json_at.h"
#include "crds/keys.h"

namespace heddle::crds {

// Whether a pod, or its template, has our scheduling gate, which admission puts there and the release takes off. Pure.
inline bool HasGangGate(const Json& pod) {
  const Json& gates = ListOf(At(pod, {"spec", "schedulingGates"}));
  return std::any_of(gates.begin(), gates.end(),
                     [](const Json& gate) { return TextOf(At(gate, "name")) == keys::kGangGate; });
}

}  // namespace heddle::crds
