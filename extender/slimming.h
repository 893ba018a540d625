#pragma once

#include <functional>
#include <optional>

#include "extender/gang_key.h"
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
// Pods are kept packed: what is not in PodFacts is read a few times in a pod's life, and its labels and annotations can
// be read as it is.
Slimming SlimPods(Mode mode);
Slimming SlimNodes();
Slimming SlimTopologies();
Slimming SlimFabrics();
Slimming SlimOwners();  // Jobs and what else makes pods
Slimming SlimGangs();

// What every change of a pod is asked first.
struct PodKind {
  std::optional<GangKey> gang;   // that it is a pod of, see IsGangPod; nothing = of none
  bool passed_the_gate = false;  // see PassedTheGate
};
PodKind KindOfPod(const kube::Json& pod, Mode mode);  // at once, of one that SlimPods has packed

}  // namespace heddle::extender
