#pragma once

#include "topology/node.h"

namespace heddle::crds {

// Whether a node that shows no GPU may have some all the same: its agent could not read the PCI bus. Of a node without
// GPUs agents say that NVLink does not apply to it; here they do not know.
inline bool GpusUnread(const topology::Node& node) {
  return node.gpus.empty() && !node.nvlink_domain &&
         node.nvlink_domain.missing() == topology::Missing::kUnknown;
}

}  // namespace heddle::crds
