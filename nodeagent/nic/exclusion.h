#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "topology/node.h"

namespace heddle::nodeagent {

// What is known of a network device when it is decided whether it belongs to the fabric at all.
struct NicFacts {
  std::string_view device;  // "mlx5_0"
  bool virtual_function = false;
  bool manages_nvlink =
      false;  // its VPD says SW_MNG: an NVSwitch's management port that looks like a ConnectX
  bool has_ports = true;
  std::string_view served_by =
      {};  // of a software device (rxe, siw): the RDMA device in hardware that its interface has anyway
  friend bool operator==(const NicFacts&, const NicFacts&) = default;
};

struct PortFacts {
  topology::LinkState state = topology::LinkState::kUnknown;
  bool disabled = false;        // phys_state 3: Disabled
  bool infiniband = false;      // RoCE reports "Disabled" for a mere missing cable, InfiniBand does not
  bool sibling_active = false;  // another port of the device is up
  friend bool operator==(const PortFacts&, const PortFacts&) = default;
};

// A device that is left out of NodeTopology, and why.
struct Exclusion {
  std::string device;
  std::string pci;
  std::string reason;
  bool whole_function = true;  // its interface is no NIC either
  friend bool operator==(const Exclusion&, const Exclusion&) = default;
};

// The one rule that discovery, health, QoS and the device plugin share. Nothing: the device counts.
std::optional<std::string> WhyExcluded(const NicFacts& facts);
// A port that is down by design: not an alarm, not a rail that is missing.
bool IsDownByDesign(const PortFacts& facts);

}  // namespace heddle::nodeagent
