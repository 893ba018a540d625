#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "crds/object_meta.h"

namespace heddle::crds {

// Kubernetes' own PodGroup (scheduling.k8s.io, v1alpha2 of 1.36 and v1beta1 of 1.37): its pods say its name, and it
// says how many of them make the gang. All of this is pure and total.

struct PodGroupRef {
  std::string ns;  // empty = the pod does not say its own
  std::string name;
  friend auto operator<=>(const PodGroupRef&, const PodGroupRef&) = default;
};

// The group whose pods are this pod's gang. Nothing for what is no Pod, is of no group, or has heddle.dev/gang-name,
// which goes before it.
std::optional<PodGroupRef> PodGroupOf(const Json& object);

bool IsPodGroup(const Json& object);
// Whether it is the one that the pod names. Where one of both does not say its namespace they have the same.
bool IsNamed(const Json& group, const PodGroupRef& by);

// What a pod of it has to know.
struct PodGroupFacts {
  std::int64_t pods = 0;      // that make the gang; 0 = not known
  bool asks_for_gang = true;  // else its pods may start one by one, which Heddle refuses
};
PodGroupFacts FactsOf(const Json& group);

}  // namespace heddle::crds
