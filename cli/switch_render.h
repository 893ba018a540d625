#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/cluster_files.h"
#include "cli/output.h"

namespace heddle::cli {

// `kubectl heddle switch render`: what has to change in a switch's configuration so that a policy holds on its ports.
// Looks at files alone; nothing is ever sent to a switch.
struct SwitchRenderOptions {
  std::string policy;                 // file of one LosslessPolicy
  std::string config;                 // file of the switch's config_db.json; not needed for NVUE
  std::vector<std::string> ports;     // host ports, each name or a list with commas
  std::vector<std::string> hosts_on;  // files of NodeTopologies: the ports that their cables end on
  std::vector<std::string> fabric_ports;
  // Empty: "sonic/v1", and with "nvue" "spectrum/v1", which has what Cumulus Linux sets by itself. That has RoCE on
  // NVIDIA's chips alone (NVIDIA Cumulus Linux 5.x, RDMA over Converged Ethernet), and sizes headroom itself.
  std::string profile;
  std::string format = "sonic";  // "sonic" with why and source, "patch" as RFC 6902, "load", "nvue"
  std::optional<int> cable_metres, fabric_cable_metres;
};

// Exit codes: 0 the switch is as the policy wants it, 3 something is to change, or the policy or the configuration is
// faulty, 2 a file could not be read.
Output SwitchRender(const SwitchRenderOptions& options, const ReadFile& read, const OutputOptions& look);

}  // namespace heddle::cli
