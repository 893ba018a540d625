#include "nodeagent/leaf_lldpd.h"

#include <fmt/format.h>

#include <algorithm>

#include "nodeagent/rdma_probe.h"

namespace heddle::nodeagent {
namespace {

bool HasRoce(const base::FileTree& files) {
  const RdmaReadings rdma = RdmaProbe(files).Read();
  return std::any_of(rdma.devices.begin(), rdma.devices.end(),
                     [](const RdmaDevice& device) { return device.transport == topology::Transport::kRoce; });
}

}  // namespace

CommandOptions AskLldpd() {
  CommandOptions options;
  options.arguments = {"lldpcli", "-f", "json0", "show", "neighbors"};
  return options;
}

LeafReadings LldpdLeaves::Read() {
  auto text = lldpcli_.Run();
  if (text) {
    LeafReadings readings = LeavesOfLldp(*text, "lldpd");
    if (!readings.lldp_unanswered) readings.files["lldp.json"] = *std::move(text);
    return readings;
  }
  LeafReadings readings;
  readings.lldp_unanswered = true;
  if (text.error().code != base::Code::kNotFound || HasRoce(files_)) {
    readings.problems.push_back(
        fmt::format("lldpd does not say where Ethernet cables end: {}", text.error().message));
  }
  return readings;
}

}  // namespace heddle::nodeagent
