#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "crds/object_meta.h"

namespace heddle::crds {

struct RdmaPodFault {
  enum class Kind : std::uint8_t { kMayNotPin, kNoInterface };
  Kind kind = Kind::kMayNotPin;
  std::string fact, remedy;  // what is so, and what to change
  friend bool operator==(const RdmaPodFault&, const RdmaPodFault&) = default;
};

// What keeps a pod from using the RDMA devices that it asks for, as sentences that say what to change; empty = nothing
// that can be seen from here, or it asks for none. RoCE needs two things that no device plugin brings:
//
//   a network interface of the NIC in the pod's network namespace, or its GIDs are not there: hostNetwork, an
//   attachment by Multus (k8s.v1.cni.cncf.io/networks), or a resource claim of a DRA driver that moves interfaces
//   (dranet);
//   memory that may be pinned: the capability IPC_LOCK, or a privileged container, unless the node's container runtime
//   has no limit (LimitMEMLOCK=infinity), which is not known here.
//
// `resources`: those that bring RDMA devices. EFA and InfiniBand need no interface: `roce` is whether the NICs of the
// pod's node speak RoCE. Pure and total.
std::vector<RdmaPodFault> FindRdmaPodFaults(const Json& pod, std::span<const std::string> resources,
                                            bool roce);
// The same as "fact: remedy".
std::vector<std::string> RdmaPodFaults(const Json& pod, std::span<const std::string> resources, bool roce);

// Whether a pod's spec claims devices that may be NICs or move them: any but the IMEX channel of its ComputeDomain.
bool ClaimsOtherDevices(const Json& spec);

}  // namespace heddle::crds
