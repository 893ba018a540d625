#include "nodeagent/assembly/nvlink_assembly.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace heddle::nodeagent {
namespace {

// A driver may not say what a link ends at (nvmlDeviceGetNvLinkRemoteDeviceType is missing in old ones, or fails):
// then the bus tells a switch by the class of the device there.
std::vector<GpuReading> GpusWithLinkEnds(const Readings& readings) {
  std::vector<GpuReading> gpus = readings.gpus.gpus;
  for (GpuReading& gpu : gpus) {
    for (NvlinkReading& link : gpu.nvlinks) {
      const PciDevice* other = readings.pci.Find(link.remote_pci);
      if (link.end == LinkEnd::kUnknown && other != nullptr && IsNvSwitch(*other))
        link.end = LinkEnd::kSwitch;
    }
  }
  return gpus;
}

void FindInactiveNvlinks(const Readings& readings, Observation& seen) {
  std::set<int> used;
  for (const GpuReading& gpu : readings.gpus.gpus) {
    for (const NvlinkReading& link : gpu.nvlinks) {
      if (link.active) used.insert(link.link);
    }
  }
  for (const GpuReading& gpu : readings.gpus.gpus) {
    std::vector<int> inactive, up_elsewhere;
    for (const NvlinkReading& link : gpu.nvlinks) {
      if (link.active || link.word == LinkWord::kUntold) continue;
      inactive.push_back(link.link);
      if (used.contains(link.link)) up_elsewhere.push_back(link.link);
    }
    if (!inactive.empty())
      seen.inactive_nvlinks[gpu.index] = std::move(up_elsewhere.empty() ? inactive : up_elsewhere);
  }
}

}  // namespace

void AssembleNvlink(const Readings& readings, Observation& seen) {
  const std::vector<GpuReading> gpus = GpusWithLinkEnds(readings);
  seen.node.nvlink = NvlinkOf(gpus);
  seen.node.nvlink_domain = DomainOf(gpus, seen.node.name, seen.problems);
  for (const GpuReading& gpu : gpus) {
    seen.xgmi = seen.xgmi || (gpu.xgmi && !gpu.nvlinks.empty());
    for (const NvlinkReading& link : gpu.nvlinks) {
      const bool unseen = link.active && link.end == LinkEnd::kSwitch && seen.node.nvswitches.empty();
      seen.nvswitches_unseen = seen.nvswitches_unseen || unseen;
    }
  }
  if (std::any_of(gpus.begin(), gpus.end(), [](const auto& gpu) { return gpu.fabric.health_mask != 0; }))
    seen.fabric_faults = FabricFaults(gpus);
  FindInactiveNvlinks(readings, seen);
  for (const GpuReading& gpu : gpus) {
    const int beyond = ActiveLinks(gpu) + UntoldLinks(gpu) - seen.node.nvlink.links_per_gpu;
    if (beyond > 0) seen.untold_nvlinks[gpu.index] = beyond;
  }
  const NvlinkSpeeds speeds = SpeedsOf(gpus);
  seen.slow_nvlinks = speeds.slow;
  seen.assumed_nvlink_speed = speeds.assumed;
  seen.bus_unread = seen.node.gpus.empty() && readings.pci.unread;
  // Files of clouds have the PCIe tree and no NVLinks, whatever the machine has.
  const bool untold = seen.file_alone && !gpus.empty() && seen.node.nvlink.links_per_gpu == 0;
  if (seen.gpus_unreadable || seen.bus_unread || untold)
    seen.node.nvlink_domain = topology::Missing::kUnknown;
}

}  // namespace heddle::nodeagent
