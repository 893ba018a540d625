#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster_files.h"
#include "cli/ground.h"
#include "cli/table.h"
#include "crds/workload_check.h"
#include "placement/plan.h"

namespace heddle::cli {

// Where a workload's gang would lie if it came now, on the cluster as it stands.
struct Landing {
  std::string workload;    // as CheckedWorkload::name; of a Pod that names its gang "PodGroup pair (2 pods)"
  std::int64_t gangs = 1;  // that the object makes (LeaderWorkerSet replicas); the first is placed
  bool in_files = false;   // of LandingGround
  std::string
      why_not_asked;   // a sentence: nothing here is a gang that could be placed; the rest is empty then
  std::string fabric;  // as Title()
  std::vector<std::string> nodes;  // each once, sorted; empty = it has no place now
  std::optional<placement::Quality> quality;
  std::optional<placement::Refusal> refusal;
  friend bool operator==(const Landing&, const Landing&) = default;
};

// The cluster that is asked.
struct LandingGround {
  Grounds grounds;                    // nodes that a gang may not use are marked so
  std::map<std::string, Json> nodes;  // Node objects, for selectors; empty = they could not be read
  int spares = 0;                     // free nodes that new gangs leave in each NVLink domain over nodes
  bool in_files = false;              // as it was when they were written, or will be once it is built
};

// By its templates' annotations and node selectors; CPU, memory, taints and affinity are not looked at. `checked` is of
// `object`. Pure.
Landing LandingOf(const Json& object, const crds::CheckedWorkload& checked, const LandingGround& ground);

// All of a Pod by which LandingOf goes, beside the gang that it names: where it is equal, pods of one gang land alike,
// and the planner need not be asked again. Pure.
Json LandingWords(const Json& pod, const crds::CheckedWorkload& checked);

Json LandingJson(const Landing& landing);
// A paragraph of one or two lines.
std::string LandingText(const Landing& landing, const Style& style);

}  // namespace heddle::cli
