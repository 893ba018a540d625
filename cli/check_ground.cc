#include "cli/check_ground.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace heddle::cli {
namespace {

using base::Code;

bool HasStandardInput(const std::vector<std::string>& paths) {
  return std::find(paths.begin(), paths.end(), "-") != paths.end();
}

}  // namespace

void AddNodes(const std::vector<crds::NodeTopology>& nodes, const CheckOptions& options,
              CheckGround& ground) {
  int gpus = 0;
  bool roce = false, other = false;
  for (const crds::NodeTopology& one : nodes) {
    const topology::Node& node = one.status.node;
    gpus = std::max(gpus, int(node.gpus.size()));
    for (const topology::Nic& nic : node.nics) {
      if (nic.role != topology::NicRole::kCompute) continue;
      (nic.transport == topology::Transport::kRoce ? roce : other) = true;
    }
  }
  if (gpus > 0 && !options.gpus_per_node) ground.known.gpus_per_node = gpus;
  if (other && !roce) ground.known.roce = false;
  if (gpus == 0 && !options.gpus_per_node)
    ground.notes += fmt::format("Note: no node has reported its GPUs, so nodes of {} are taken for granted\n",
                                ground.known.gpus_per_node);
}

base::Result<CheckGround> CheckGroundOfFiles(const CheckOptions& options, const ReadFile& read) {
  if (HasStandardInput(options.topology) && HasStandardInput(options.targets)) {
    return base::Fail(
        Code::kInvalid,
        "--topology -: standard input is what is looked at already: give one of them as a file");
  }
  CheckGround ground;
  ground.known = GroundOf(options);
  ASSIGN_OR_RETURN(ClusterFiles files, ReadClusterFiles(options.topology, read));
  AddNodes(files.topologies, options, ground);
  if (!options.where) return ground;
  LandingGround landing;
  landing.in_files = true;
  ASSIGN_OR_RETURN(landing.grounds, GroundsOf(std::move(files)), "--topology");
  if (landing.grounds.fabrics.empty()) {
    return base::Fail(Code::kInvalid,
                      "--topology: every node is excluded by its Fabric, so there is nowhere to land");
  }
  ground.notes +=
      "Note: the files say nothing of Nodes, so each counts as Ready, and node selectors are passed over\n";
  ground.landing = std::move(landing);
  return ground;
}

Output CheckFiles(const CheckOptions& options, const ReadFile& read, const OutputOptions& look) {
  if (options.topology.empty() || options.rules)
    return Check(options, GroundOf(options), {.read = read}, look);
  const auto ground = CheckGroundOfFiles(options, read);
  if (!ground) return FailureOfInput(ground.error());
  Output output = Check(options, ground->known,
                        {.read = read, .ground = ground->landing ? &*ground->landing : nullptr}, look);
  output.err = ground->notes + output.err;
  return output;
}

}  // namespace heddle::cli
