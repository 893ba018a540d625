#pragma once

#include <span>
#include <vector>

#include "topology/suspect_links.h"

namespace heddle::topology {

// Inside of RankSuspects: loss and drops that no cause explains.

struct LossSuspect {
  Suspect suspect;         // without gangs and score
  std::vector<int> links;  // that it explains
  int watched = 1;         // links that work over it
};

// `lossy`: by link, whether it lost something that nothing explains. What most of those that lose share, and those of
// the same gangs that lose nothing do not: a leaf, a spine or a host; or a host that says nothing while all that work
// with it lose. Nothing where all of a gang lose, since they share everything; a single port that drops, and a link
// that loses alone in its gangs, by itself. The order is the one in which they were found.
std::vector<LossSuspect> ExplainLoss(const SuspectLinks& all, std::span<const GangOnLinks> gangs,
                                     std::vector<bool> lossy);

}  // namespace heddle::topology
