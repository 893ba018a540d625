#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "topology/suspect_links.h"

namespace heddle::topology {

// Inside of RankSuspects: where pause comes from. A switch that may not send fills up and stops whoever sends to it, so
// a storm walks from its source against the traffic: host, leaf, other hosts; or leaf, spine, other leaves. A host
// forwards nothing: one that stops its leaf does so of its own accord, whatever else stops it.

constexpr std::uint8_t BitOf(End end) {
  return std::uint8_t(1U << end);
}

struct Storms {
  // By link, a bit for each end that stops the other: because nothing stops it, or because all who stop it wait for it
  // in turn (switches that wait for each other in a circle).
  std::vector<std::uint8_t> sources;
  std::vector<std::uint8_t> victims;  // likewise, because it is stopped itself
  // A host's link that its leaf stops, and the link of a host that is the source: a gang has both, and what is above
  // the leaf nobody watches.
  std::vector<std::pair<int, int>> beyond;

  bool any() const { return !sources.empty(); }
};
Storms FindStorms(const SuspectLinks& all, std::span<const GangOnLinks> gangs);

// Calls `give(suspect, link)` for every link that a source stops from afar. `suspect_of(link, end)` says whose suspect
// a source is. Of several sources the nearest is meant, and of those that are equally near up to eight.
void SpreadStorms(const SuspectLinks& all, const Storms& storms,
                  const std::function<int(int link, End end)>& suspect_of,
                  const std::function<void(int suspect, int link)>& give);

}  // namespace heddle::topology
