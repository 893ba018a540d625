#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/advice.h"
#include "crds/object_meta.h"

namespace heddle::cli {

// Something that is wrong with objects of a cluster, and what to do about it.
enum class Gravity : std::uint8_t {
  kProblem,  // work stands still, or what was bought cannot be used
  kWarning,  // it goes on, worse than it could
  kNote,     // what a person may want to know and need not act on
};
std::string_view GravityName(Gravity gravity);  // "problem", "warning", "note"

struct Trouble {
  Gravity gravity = Gravity::kProblem;
  int order = 0;                        // among those of one gravity, the least first
  std::string kind;                     // of the objects: "Gang", "Node", "Fabric"
  std::string reason;                   // for programs: "NodeLost", "Rail3Healthy/LinkDown"
  std::string what;                     // "rail 3 down"
  std::vector<std::string> names;       // "team/llama", "gpu-017"; at least one
  std::optional<base::WallTime> since;  // the first of them
  std::string message;                  // what the first of them says of itself; may be empty
  std::string remedy;                   // what to do, as a clause
  friend bool operator==(const Trouble&, const Trouble&) = default;
};

// Worst first, and equal things in one: of the same gravity, kind, what and remedy. Names are sorted.
std::vector<Trouble> Folded(std::vector<Trouble> troubles);
// Worst first, each for itself.
std::vector<Trouble> Sorted(std::vector<Trouble> troubles);

// "2 nodes: gpu-001 and gpu-002"
std::string WhereText(const Trouble& trouble);
crds::Json ToJson(const Trouble& trouble);
std::string TroublesText(const std::vector<Trouble>& troubles, base::WallTime now, const Style& style);

}  // namespace heddle::cli
