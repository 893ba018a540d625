#pragma once

#include <string_view>

#include "kube/object.h"

namespace heddle::kube {

// Objects of a cache that are read once and then only compared, in a fifth of their memory: a tree of JSON takes a
// hundred bytes and more for each key. A packed one is a single value of bytes: first what tells one object from
// another and where a pod runs, then all else as CBOR. Name, Namespace, Uid, KeyOf, ResourceVersion and StringAt of
// spec.nodeName and status.phase read it as they read any object; every other accessor finds nothing until it is
// unpacked. Equal objects pack to equal ones.

// What is no object, or has a name of 64 KiB and more, stays as it is.
Json Packed(Json object);
bool IsPacked(const Json& object);
// As it was before; what is not packed comes back as it is. Of bytes that nobody packed, what can be read.
Json Unpacked(const Json& object);

// Whether two objects, both packed or both not, differ in nothing but metadata.resourceVersion.
bool SameButVersion(const Json& a, const Json& b);

// What StringAt answers of a packed object: empty for a path that cannot be read so.
std::string_view TextOfPacked(const Json& packed, Path path);

}  // namespace heddle::kube
