#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "crds/lossless_policy.h"
#include "crds/node_topology.h"
#include "lossless/cable_compare.h"
#include "operator/switch_verdicts.h"
#include "switches/cable_join.h"

namespace heddle::operators {

using PoliciesByName = std::map<std::string, const crds::LosslessPolicy*>;

// The one policy that selects a port; null where none does or several, which then apply nowhere.
const crds::LosslessPolicy* PolicyOf(const crds::NodeTopology& node, const std::string& port,
                                     const PoliciesByName& policies);

// What is wrong and what to do, a sentence; empty where nothing is (null).
std::string MessageOf(const lossless::CableFinding* worst);

// What the verdicts on all nodes have in common.
struct CableFacts {
  const switches::CableJoin& cables;
  const PoliciesByName& policies;
  const std::vector<char>& unheard;     // by switch: nobody has heard it yet, so that what was written stays
  const std::set<std::string>& unread;  // as Silent has them
  const std::set<std::string>& unread_policies;  // by name
};

// What is to stand in the spec of one node, by its position among those that were joined. `silent`: its agent is. Pure.
NodeVerdict JudgeNode(const crds::NodeTopology& node, std::size_t at, bool silent, const CableFacts& facts);

}  // namespace heddle::operators
