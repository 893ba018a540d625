#pragma once

#include "sizing/design.h"

namespace heddle::sizing {

// Inside of the sizing: the network to storage. Every node has its machine's storage ports on it, storage as many as
// the reads need; leaves carry storage at 1:1 and nodes at 4:3 upwards, as the guide's source does. Two leaves joined
// to each other as long as they have the ports; then leaves and spines; then several of these side by side.
// Requires: nodes, machine and request of the design, whose transport has switches as fast as the storage ports.
StorageFabric SizeStorage(const Design& design);

}  // namespace heddle::sizing
