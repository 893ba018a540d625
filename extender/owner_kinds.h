#pragma once

#include <span>
#include <string>
#include <string_view>

#include "extender/owner_layout.h"
#include "kube/object.h"

namespace heddle::extender {

// A kind of object whose pods can be a gang: where it is served, and how it numbers its pods. A new framework is an
// entry in owner_kinds.cc and a function that reads its layout.
struct OwnerKind {
  kube::Resource resource;
  bool everywhere = false;  // part of Kubernetes; the others are looked for at run time
  OwnerLayout (*layout)(const kube::Json& owner) = nullptr;
};

std::span<const OwnerKind> OwnerKinds();
// Null for a kind, or a version of it, that we cannot read.
const OwnerKind* OwnerKindOf(std::string_view api_version, std::string_view kind);
// "Indexed Jobs, JobSets, …", for refusals.
std::string OwnerKindWords();

}  // namespace heddle::extender
