#include "nodeagent/gpu_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

namespace heddle::nodeagent {
namespace {

// XIDs that end the use of a GPU until somebody resets or replaces it (NVIDIA, "XID errors"): double-bit ECC,
// halted engine, failed row remap, NVLink, fallen off the bus, uncontained ECC, GSP. Those that an
// application causes (13, 31, 43, 45, 68, 109) are not evidence against the GPU.
constexpr std::array<int, 9> kFatalXids{48, 62, 64, 74, 79, 95, 119, 120, 140};

int ActiveLinks(const GpuReading& gpu) {
  return int(
      std::count_if(gpu.nvlinks.begin(), gpu.nvlinks.end(), [](const auto& link) { return link.active; }));
}

// GPUs that reach each other, over switches (all of them are in one plane) or hop by hop.
bool AllConnected(const std::vector<GpuReading>& gpus) {
  std::map<std::string_view, std::size_t> by_pci;
  for (std::size_t i = 0; i < gpus.size(); ++i) by_pci.emplace(gpus[i].pci, i);
  std::vector<std::size_t> group(gpus.size() + 1);  // the last stands for the switches
  std::iota(group.begin(), group.end(), 0);
  const auto merge = [&group](std::size_t a, std::size_t b) {
    std::replace(group.begin(), group.end(), std::size_t(group[a]), std::size_t(group[b]));
  };
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (const NvlinkReading& link : gpus[i].nvlinks) {
      if (!link.active) continue;
      const auto other = by_pci.find(link.remote_pci);
      if (other != by_pci.end())
        merge(i, other->second);
      else if (link.end == LinkEnd::kSwitch)
        merge(i, gpus.size());
    }
  }
  return std::all_of(group.begin(), group.end() - 1, [&](std::size_t g) { return g == group.front(); });
}

}  // namespace

std::string FaultOf(const GpuReading& gpu) {
  if (gpu.row_remap_failure.value_or(false)) return "a memory row could not be remapped: replace the GPU";
  if (std::find(kFatalXids.begin(), kFatalXids.end(), gpu.last_xid) != kFatalXids.end()) {
    return fmt::format("XID {} was reported: drain the node and reset the GPU", gpu.last_xid);
  }
  if (gpu.uncorrected_ecc.value_or(0) > 0) {
    return fmt::format(
        "{} uncorrectable ECC errors since the driver was loaded: drain the node and reset the GPU",
        *gpu.uncorrected_ecc);
  }
  if (gpu.row_remap_pending.value_or(false)) return "a memory row waits to be remapped: reset the GPU";
  return {};
}

int NvlinkGbps(int generation) {
  switch (generation) {
    case 1:
      return 160;
    case 2:
    case 3:
    case 4:
      return 200;
    case 5:
      return 400;
    default:
      return 0;
  }
}

topology::NvLink NvlinkOf(const std::vector<GpuReading>& gpus) {
  topology::NvLink nvlink;
  for (const GpuReading& gpu : gpus) {
    nvlink.generation = std::max(nvlink.generation, gpu.nvlink_generation);
    // Export variants have fewer links than the chip has slots: what should be up is what the best GPU here
    // has up.
    nvlink.links_per_gpu = std::max(nvlink.links_per_gpu, ActiveLinks(gpu));
  }
  if (nvlink.links_per_gpu == 0) nvlink.generation = 0;
  nvlink.gbps_per_gpu = nvlink.links_per_gpu * NvlinkGbps(nvlink.generation);
  for (const GpuReading& gpu : gpus) {
    if (ActiveLinks(gpu) < nvlink.links_per_gpu) nvlink.exceptions.push_back({gpu.index, ActiveLinks(gpu)});
  }
  return nvlink;
}

topology::Fact<topology::NvlinkMembership> DomainOf(const std::vector<GpuReading>& gpus,
                                                    std::string_view node_name,
                                                    std::vector<std::string>& problems) {
  std::set<std::string> ids;
  bool linked = false;
  for (const GpuReading& gpu : gpus) {
    linked = linked || ActiveLinks(gpu) > 0;
    const FabricReading& fabric = gpu.fabric;
    if (fabric.state == FabricState::kNotStarted || fabric.state == FabricState::kInProgress) {
      problems.push_back(fmt::format(
          "GPU {} has not joined its NVLink fabric yet: check nvidia-fabricmanager and IMEX", gpu.index));
      return topology::Missing::kUnknown;
    }
    const bool spans = fabric.state == FabricState::kCompleted && !fabric.cluster_uuid.empty();
    ids.insert(spans ? fmt::format("{}.{}", fabric.cluster_uuid, fabric.clique) : std::string());
  }
  if (gpus.empty() || !linked) return topology::Missing::kNotApplicable;
  if (ids.size() > 1) {
    problems.push_back(
        fmt::format("the GPUs of this node are in {} NVLink cliques ({})", ids.size(), fmt::join(ids, ", ")));
    return topology::Missing::kAmbiguous;
  }
  if (!ids.begin()->empty()) return topology::NvlinkMembership{*ids.begin(), true};
  if (!AllConnected(gpus)) {
    problems.emplace_back("NVLink joins only some of the GPUs of this node, so they are in no common domain");
    return topology::Missing::kAmbiguous;
  }
  return topology::NvlinkMembership{std::string(node_name), false};
}

}  // namespace heddle::nodeagent
