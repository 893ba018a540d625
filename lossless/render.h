#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lossless/policy.h"
#include "lossless/port_settings.h"
#include "topology/node.h"

namespace heddle::lossless {

// What is known of the port that a policy is to be rendered for.
struct PortFacts {
  topology::Transport transport = topology::Transport::kEthernet;
  // Empty = not known, and then nothing is held against it.
  std::string device;  // PCI "15b3:1021"
  std::string driver;  // of the PCI function, "mlx5_core"
  friend bool operator==(const PortFacts&, const PortFacts&) = default;
};

// A setting that the port cannot have, and why.
struct Gap {
  Setting setting = Setting::kDcbx;
  std::string reason;
  friend bool operator==(const Gap&, const Gap&) = default;
};

// What a port should have, or one sentence why the policy has nothing to say to it.
struct Rendering {
  std::optional<PortSettings> settings;  // nothing = not applicable, or refused
  std::string reason;                    // why; empty with settings
  bool refused = false;                  // this NIC cannot have what the policy wants
  InfiniBand infiniband;                 // of an InfiniBand port, what NCCL is to do there
  std::vector<Gap> gaps;                 // of the settings, what this NIC cannot have
  friend bool operator==(const Rendering&, const Rendering&) = default;
};

// Of RoCE: a whole DSCP map (what no class claims goes to priority 0), PFC, ETS, ECN, MTU, watchdog, ToS. Refused: a
// profile for other NICs, and a driver that cannot be told what no port is lossless without. Fine tuning that was asked
// for and that the driver does not have is a gap, and so is the watchdog. Of InfiniBand: no settings, and what
// the policy says of service level and adaptive routing, which no other port gets.
Rendering Render(const ResolvedPolicy& policy, const PortFacts& port);

// The priority of each of the 64 DSCPs: of data, CNPs and other classes as the policy says, of all others 0. Hosts and
// switches get the same. Requires: a resolved policy.
DscpMap DscpsOf(const Policy& policy);

// Why a port of this transport has no lossless settings; empty = it has.
std::string NotApplicable(topology::Transport transport);

}  // namespace heddle::lossless
