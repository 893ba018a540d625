#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/ground.h"
#include "cli/table.h"
#include "crds/gang.h"

namespace heddle::cli {

// What would give a gang without a place one; each was tried on the cluster as it stands, and works.
struct Remedy {
  enum class Kind : std::uint8_t { kRoomNow, kNodeBack, kRestart, kEnd, kWeaker, kFewer };
  Kind kind = Kind::kEnd;
  std::string what;                // a clause: "end gang dev/sweep (64 GPUs)"
  std::vector<std::string> names;  // who would end, or which node comes back
  std::int64_t step_micros = 0;    // predicted communication of a step then
  friend bool operator==(const Remedy&, const Remedy&) = default;
};

struct Remedies {
  std::vector<Remedy> found;            // the least intrusive first
  std::vector<std::string> not_looked;  // what the trials know nothing of: "CPU and memory"
  friend bool operator==(const Remedies&, const Remedies&) = default;
};

// What was read about one gang that has no place, or whose ranks lost theirs.
struct Stuck {
  const crds::Gang* gang = nullptr;
  std::vector<Json> pods;                       // its own, all
  std::map<std::string, std::string> unusable;  // by node, as WhyUnusable
  std::map<std::string, Json> nodes;            // Node objects, for selectors
  int spares = 0;  // free nodes that new gangs leave in each NVLink domain over nodes
  // Ranks that are done by the word of its Job, also where their pods are gone. Nothing = its owner was not asked.
  std::optional<std::set<int>> done = std::nullopt;
};

// `grounds` without the gang's own slots, but with its bound pods. Ends are tried of gangs of the same or a lower
// priority and of pods of no gang. Trials are bounded: about a hundred plannings.
Remedies FindRemedies(const Grounds& grounds, const Stuck& stuck);

Json RemediesJson(const Remedies& remedies);
std::string RemediesText(const Remedies& remedies, const Style& style);

}  // namespace heddle::cli
