#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "kube/object.h"

namespace heddle::kube {

// Objects of a cache that are read once and then only compared, in a fifth of their memory: a tree of JSON takes a
// hundred bytes and more for each key. A packed one is a single value of bytes: first what tells one object from
// another, where a pod runs, its labels and annotations, then all else as CBOR. Name, Namespace, Uid, KeyOf,
// ResourceVersion, Label, Labels, Annotation, Annotations and StringAt of spec.nodeName and status.phase read it as
// they read any object; every other accessor finds nothing until it is unpacked. Equal objects pack to equal ones.

// `note`: what its owner wants to know of it again and again, and would have to unpack it for; no part of the object.
// What is no object, or says something in 64 KiB and more where it is read packed, stays as it is.
Json Packed(Json object, std::string_view note = {});
bool IsPacked(const Json& object);
std::string_view NoteOf(const Json& packed);  // empty where it has none, or is not packed
// As it was before; what is not packed comes back as it is. Of bytes that nobody packed, what can be read.
Json Unpacked(const Json& object);

// Whether two objects, both packed or both not, differ in nothing but metadata.resourceVersion.
bool SameButVersion(const Json& a, const Json& b);

// What StringAt answers of a packed object: empty for a path that cannot be read so.
std::string_view TextOfPacked(const Json& packed, Path path);
// What the accessors of labels and annotations answer of one; `map` is "labels" or "annotations".
std::optional<std::string> EntryOfPacked(const Json& packed, std::string_view map, std::string_view key);
std::map<std::string, std::string> EntriesOfPacked(const Json& packed, std::string_view map);

}  // namespace heddle::kube
