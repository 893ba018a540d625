#pragma once

#include <string>
#include <vector>

#include "crds/rdma_device_policy.h"

namespace heddle::crds {

// Names that several entries of one policy come to, as heddle.dev/rail0 and heddle.dev/rail{rail} do: who asks for such
// a resource would get devices of either.

// Why no node offers a resource that these entries come to, names as the policy has them: says what to do, and
// then two of them. Empty where they are fewer. A sentence without a full stop.
std::string WhyAmbiguous(const std::vector<std::string>& entries);

// The first name, by entry and rail, that entries come to by their names and rails alone, whatever NICs nodes have; and
// which do. Empty = there is none.
struct AmbiguousResource {
  std::string name;
  std::vector<std::string> entries;
};
AmbiguousResource FirstAmbiguous(const RdmaDevicePolicySpec& spec);

}  // namespace heddle::crds
