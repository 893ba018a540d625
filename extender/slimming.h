#pragma once

#include <functional>

#include "extender/pod_facts.h"
#include "kube/object.h"
#include "kube/pruning.h"

namespace heddle::extender {

// What the caches keep of the objects of one resource, whichever way they come: a cluster has thousands of them, and of
// each little is read.
struct Slimming {
  std::function<kube::Json(kube::Json)> transform;
  kube::Pruning pruning;  // the most of what `transform` drops, so that it is not even made into a tree
};
Slimming SlimPods(Mode mode);
Slimming SlimNodes();
Slimming SlimTopologies();
Slimming SlimFabrics();
Slimming SlimOwners();  // Jobs and what else makes pods
Slimming SlimGangs();

}  // namespace heddle::extender
