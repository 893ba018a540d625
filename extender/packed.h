#pragma once

#include "kube/object.h"

namespace heddle::extender {

// Objects of a cache that are read once and then only compared, in a third of their memory: a tree of JSON takes a
// hundred bytes and more for each key. Name, namespace, UID and version stay where they are; the rest is CBOR. Equal
// objects pack to equal ones.
kube::Json Packed(kube::Json object);
bool IsPacked(const kube::Json& object);
// As it was before. What is not packed comes back as it is, and of what somebody else wrote there only the head.
kube::Json Unpacked(kube::Json object);

// A pod as the caches keep it while it runs and belongs to no gang: of thousands, only a few will ever be looked at
// again. Where it runs and its phase stay readable.
kube::Json PackedPod(kube::Json pod);

}  // namespace heddle::extender
