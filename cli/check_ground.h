#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/check.h"
#include "crds/node_topology.h"

namespace heddle::cli {

// What a cluster says to `check`, one that was asked or one in files.
struct CheckGround {
  crds::WorkloadGround known;            // what the command line says goes before what nodes say
  std::optional<LandingGround> landing;  // with --where only
  std::string notes;                     // lines for standard error
};

// How many GPUs nodes have, and what their NICs speak.
void AddNodes(const std::vector<crds::NodeTopology>& nodes, const CheckOptions& options, CheckGround& ground);

// Of options.topology. Errors: as ReadClusterFiles, and kInvalid.
[[nodiscard]] base::Result<CheckGround> CheckGroundOfFiles(const CheckOptions& options, const ReadFile& read);

}  // namespace heddle::cli
