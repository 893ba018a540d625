#pragma once

#include <compare>
#include <optional>
#include <string>

#include "crds/object_meta.h"

namespace heddle::cli {

using crds::Json;

// The gang that a Pod says itself that it is of; of other pods it comes of the object that made them.
struct NamedGang {
  std::string ns;     // empty = the pod does not say its own
  std::string group;  // as GangSpec::group: "PodGroup/pair", "Pods/pair"
  friend auto operator<=>(const NamedGang&, const NamedGang&) = default;
};

// Nothing for what is no Pod, and for one that names no gang. Pure and total.
std::optional<NamedGang> NamedGangOf(const Json& object);

// "PodGroup train/pair", and of pods that are labelled "gang train/pair".
std::string Title(const NamedGang& gang);

}  // namespace heddle::cli
