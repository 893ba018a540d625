#pragma once

#include <string>

#include "topology/suspect_cover.h"
#include "topology/suspect_links.h"

namespace heddle::topology {

// Inside of RankSuspects: what people read.

// "leaf su1-r3 port Ethernet48", "gpu-017 mlx5_3:1"; empty where that end has no name.
std::string EndName(const SuspectLinks& all, int link, End end);
// Kind, name and ends of a suspect: the cable of a link, or a device.
Suspect NamedCable(const SuspectLinks& all, int link);
Suspect NamedDevice(const SuspectLinks& all, int device);

// Fills symptom, evidence and next of a suspect that explains causes; `stopped`: how many more links its pause stops.
void DescribeCauses(const SuspectLinks& all, const Explanation& explanation, int stopped, Suspect& suspect);
// Likewise of one that explains loss and drops on `links` of the `watched` that work; `links` in no order.
void DescribeLoss(const SuspectLinks& all, const std::vector<int>& links, int watched, Suspect& suspect);
// Of a host whose peers, so many, all lose packets and which itself says nothing.
void DescribeSilent(int peers, Suspect& suspect);

}  // namespace heddle::topology
