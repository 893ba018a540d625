#pragma once

#include <string>
#include <string_view>

#include "crds/rdma_device_policy.h"

namespace heddle::crds {

// Names that several entries of one policy come to, as heddle.dev/rail0 and heddle.dev/rail{rail} do: who asks for such
// a resource would get devices of either. Told by names and rails of the entries alone, whatever NICs a node has: a
// name is to mean the same on all nodes, and still once the NIC that made it ambiguous has failed.

// Why no node offers `resource`: names two of the entries that come to it, and says what to do. Empty = at most one
// does. A sentence without a full stop.
std::string WhyAmbiguous(const RdmaDevicePolicySpec& spec, std::string_view resource);

// The first such name, by entry and rail; empty = there is none.
std::string FirstAmbiguous(const RdmaDevicePolicySpec& spec);

}  // namespace heddle::crds
