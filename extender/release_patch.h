#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "crds/gang.h"
#include "kube/object.h"
#include "topology/node.h"

namespace heddle::extender {

// What a pod is told when it is let go.
struct Slot {
  int rank = 0;
  std::string node;
  std::uint32_t gpus = 0;  // bit = GPU index
  std::vector<std::string> nics;
  std::vector<std::string> substitutes;  // best first
  std::string gang_uid;
  std::int64_t epoch = 0;
  friend bool operator==(const Slot&, const Slot&) = default;
};

// The NICs that go with these GPUs (bit = index) in a plan: the one next to each, in the order of the GPUs.
std::vector<const topology::Nic*> PlannedNics(const topology::Node& node, std::uint32_t gpus);

// One JSON patch that pins, annotates and ungates: test the uid and our gate, remove that gate only, append
// the node's name to each required term that is there (an empty term stays empty, as the API server demands).
// A pod without required terms gets the node and its substitutes as terms of its own. kInvalid when the pod
// has no gate of ours.
[[nodiscard]] base::Result<kube::Json> ReleasePatch(const kube::Json& pod, const Slot& slot);

// Moves a released pod that is not bound yet to one of its substitutes: annotations only, and only if nobody
// touched the pod since it was read.
kube::Json MovePatch(const kube::Json& pod, const Slot& slot);

// Whether ReleasePatch can give this pod substitutes: not when it has required terms of its own, and not when
// another scheduler than ours will place it, since only our filter keeps the pod off them.
bool TakesSubstitutes(const kube::Json& pod);

}  // namespace heddle::extender
