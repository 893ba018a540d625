#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topology/suspect_links.h"

namespace heddle::topology {

// Inside of RankSuspects: whom a suspect slows.

// How many gangs cross one of the links of each suspect; `links_of` by suspect, ascending or not. A gang crosses a link
// above a leaf when one of its hosts hangs on that leaf and another does not: what goes to that one goes up.
// `lossy`: by link, whether it lost something; those of a gang that crosses any suspect become true in `explained`.
std::vector<int> CountGangs(const SuspectLinks& all, std::span<const GangOnLinks> gangs,
                            const std::vector<std::vector<int>>& links_of, const std::vector<bool>& lossy,
                            std::vector<bool>& explained);

// Calls `each(link)` for the links of a gang that there are.
template <class Each>
void ForEachLink(const SuspectLinks& all, const GangOnLinks& gang, Each each) {
  for (const std::size_t position : gang.links) {
    if (position >= all.of_position.size()) continue;
    if (const int link = all.of_position[position]; link != kNobody) each(link);
  }
}

// The same for those whose mark is not 0, of `marks` by position: of two million that a thousand gangs have, few are.
template <class Each>
void ForEachMarked(const SuspectLinks& all, const GangOnLinks& gang, const std::vector<std::uint8_t>& marks,
                   Each each) {
  const std::size_t count = marks.size();
  for (const std::size_t position : gang.links) {
    if (position < count && marks[position] != 0) each(all.of_position[position]);
  }
}
// `marks` by position, of marks by link.
std::vector<std::uint8_t> MarksByPosition(const SuspectLinks& all, const std::vector<std::uint8_t>& by_link);

}  // namespace heddle::topology
