#pragma once

#include <string>
#include <vector>

#include "lossless/render.h"

namespace heddle::lossless {

// Of the gaps of a port those that leave open whether senders slow down before they are paused, and whether connections
// get into the lossless class at all: ECN, the DSCP and priority of CNPs, and the ToS of rdma_cm. A port is compliant
// without them, but somebody has to look where nothing of the host can. In their order.
std::vector<Gap> Unproved(const std::vector<Gap>& gaps);

// "ecn, cnpDscp (debugfs is not mounted), tos (rdma_cm is not loaded)"; empty of none.
std::string UnprovedText(const std::vector<Gap>& unproved);

}  // namespace heddle::lossless
