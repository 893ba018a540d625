#pragma once

#include <cstdint>
#include <vector>

#include "topology/suspect_links.h"
#include "topology/suspect_storms.h"

namespace heddle::topology {

// Inside of RankSuspects: which hosts and switches explain what was seen of their links better than each cable by
// itself does.

// What may be against a link.
enum Cause : std::uint8_t { kFlaps = 1, kBroken = 2, kNearStops = 4, kFarStops = 8 };

struct ExplainedLink {
  int link = 0;
  std::uint8_t causes = 0;  // bits of Cause
  friend bool operator==(const ExplainedLink&, const ExplainedLink&) = default;
};

struct Explanation {
  int device = kNobody;  // kNobody: the cable of its one link
  std::vector<ExplainedLink> links;
  int watched = 1;  // links that the device has
};

// Flaps go before pause, and pause before errors.
int GravityOf(std::uint8_t causes);
Symptom GravestOf(std::uint8_t causes);
Symptom GravestOf(const Explanation& of);

// Every cause of every link is in one explanation. A leaf or spine explains its links when at least three and at least
// half of them have a cause, a host when at least two on different leaves and at least half, and no two alone that fail
// in different ways; a switch that stops two or
// more explains these in any case, since nothing but itself makes it. Who explains more goes first, sound links speak
// against; of equal ones a leaf before a spine before a host, then by name. In no order.
std::vector<Explanation> ExplainCauses(const SuspectLinks& all, const Storms& storms);

}  // namespace heddle::topology
