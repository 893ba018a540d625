#include "nodeagent/gpu/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace heddle::nodeagent {
namespace {

// XIDs that end the use of a GPU until somebody resets or replaces it, by the immediate action of NVIDIA's Xid catalog
// (docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html): double-bit ECC, halted engine, failed row remap,
// NVLink, fallen off the bus, uncontained ECC, security fault, GSP, failed link training, ECC that escaped, failed
// start, NVLink 5's MSE, a retired resource, fatal time-out.
//
// Those that an application causes (13, 31, 43, 45, 68, 109) are not evidence against the GPU. Nor are NVLink 5's
// others (144 to 149): of most, one number stands for what is to be ignored and for what takes a reset, by a status
// that NVML's event does not have; what they come to is the driver's recovery action. 155 is told of links that were
// taken down on purpose, too.
constexpr std::array<int, 15> kFatalXids{48, 62, 64, 74, 79, 95, 110, 119, 120, 136, 140, 143, 150, 156, 158};

// Of a GPU that is gone nothing is known any more, and it does not speak against the others.
bool IsGone(const GpuReading& gpu) {
  return gpu.state == GpuState::kLost || gpu.state == GpuState::kResetRequired;
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
  std::set<std::size_t> groups;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (!IsGone(gpus[i])) groups.insert(group[i]);
  }
  return groups.size() <= 1;
}

// A GPU with a link that is up and ends nobody knows where; null where there is none.
const GpuReading* FindUnknownEnd(const std::vector<GpuReading>& gpus) {
  for (const GpuReading& gpu : gpus) {
    if (IsGone(gpu)) continue;
    for (const NvlinkReading& link : gpu.nvlinks) {
      const bool at_gpu = std::any_of(gpus.begin(), gpus.end(), [&link](const GpuReading& other) {
        return !other.pci.empty() && other.pci == link.remote_pci;
      });
      if (link.active && link.end == LinkEnd::kUnknown && !at_gpu) return &gpu;
    }
  }
  return nullptr;
}

constexpr int kUnhealthy = 2;        // NVML_GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY
constexpr int kLimitedCapacity = 3;  // NVML_GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY

// What the health mask says is wrong: each question has two bits, 1 = yes, 2 = no, 0 = not supported; the
// configuration has four, 1 = right (nvml.h, NVML_GPU_FABRIC_HEALTH_MASK_*). Empty when nothing is.
std::string FabricFault(const GpuReading& gpu) {
  const std::uint32_t mask = gpu.fabric.health_mask;
  std::vector<std::string> faults;
  const auto yes = [mask](int shift) { return (mask >> shift & 3U) == 1; };
  if (yes(0)) faults.emplace_back("its bandwidth is degraded");
  if (yes(2)) faults.emplace_back("routes are being recovered");
  if (yes(4)) faults.emplace_back("a route is unhealthy");
  if (yes(6)) faults.emplace_back("it recovers from an access time-out");
  constexpr std::array<std::string_view, 9> kWrong{"",
                                                   "",
                                                   "wrong system GUID",
                                                   "wrong chassis serial number",
                                                   "no partition",
                                                   "too few NVLinks",
                                                   "incompatible GPU firmware",
                                                   "invalid location",
                                                   "invalid GPU state"};
  const std::uint32_t wrong = mask >> 8 & 15U;
  if (wrong >= kWrong.size()) {
    faults.push_back(fmt::format("its configuration is wrong (code {})", wrong));
  } else if (!kWrong[wrong].empty()) {
    faults.push_back(fmt::format("its configuration is wrong: {}", kWrong[wrong]));
  }
  if ((mask >> 12 & 3U) == 2) faults.emplace_back("it is assigned to no partition");
  if (faults.empty() && gpu.fabric.health_summary == kUnhealthy) return "NVML does not say why";
  if (faults.empty() && gpu.fabric.health_summary == kLimitedCapacity) return "its capacity is limited";
  return fmt::format("{}", fmt::join(faults, ", "));
}

// What the driver asks for (nvml.h, nvmlDeviceGpuRecoveryAction_t), and how it is done; empty where that is nothing.
std::string AskedFor(const GpuReading& gpu) {
  switch (gpu.recovery_action.value_or(0)) {
    case 0:  // NVML_GPU_RECOVERY_ACTION_NONE
      return {};
    case 1:  // GPU_RESET
      return "the driver asks for a reset of the GPU: drain the node and reset the GPU";
    case 2:  // NODE_REBOOT
      return "the driver asks for a reboot: drain and reboot the node";
    case 3:  // DRAIN_P2P
      return "the driver asks that peer-to-peer traffic ends: drain the node, and reset the GPU if it still "
             "asks then";
    case 4:  // DRAIN_AND_RESET
      return "the driver asks for a drain and a reset: give it no new work, drain the node and reset the GPU";
    case 5:  // RECOVER_IMEX_DOMAIN
      return "the driver asks to recover the IMEX domain: check nvidia-imex on the nodes of its NVLink "
             "domain";
    default:
      return fmt::format(
          "the driver asks for a recovery action that this agent does not know ({}): see nvidia-smi -q",
          *gpu.recovery_action);
  }
}

}  // namespace

int ActiveLinks(const GpuReading& gpu) {
  return int(
      std::count_if(gpu.nvlinks.begin(), gpu.nvlinks.end(), [](const auto& link) { return link.active; }));
}

int UntoldLinks(const GpuReading& gpu) {
  return int(std::count_if(gpu.nvlinks.begin(), gpu.nvlinks.end(),
                           [](const auto& link) { return link.word == LinkWord::kUntold; }));
}

bool IsFatalXid(int xid) {
  return std::find(kFatalXids.begin(), kFatalXids.end(), xid) != kFatalXids.end();
}

std::string SayXid(int xid) {
  return fmt::format("the driver reports XID {}{}", xid,
                     IsFatalXid(xid) ? ", which ends the use of the GPU" : "");
}

void KeepTold(const GpuReading& before, GpuReading& gpu) {
  if (!gpu.mig) gpu.mig = before.mig;
  if (!gpu.uncorrected_ecc) gpu.uncorrected_ecc = before.uncorrected_ecc;
  if (!gpu.row_remap_pending) gpu.row_remap_pending = before.row_remap_pending;
  if (!gpu.row_remap_failure) gpu.row_remap_failure = before.row_remap_failure;
  if (!gpu.recovery_action) gpu.recovery_action = before.recovery_action;
  if (gpu.fabric.unread != 0 && gpu.fabric.state == FabricState::kUnknown) {
    const int failure = gpu.fabric.unread;
    gpu.fabric = before.fabric;
    gpu.fabric.unread = failure;
  }
  if (IsGone(before)) return;  // its links went untold with it
  std::vector<NvlinkReading> links;
  for (NvlinkReading& link : gpu.nvlinks) {
    const auto told = std::find_if(before.nvlinks.begin(), before.nvlinks.end(),
                                   [&link](const NvlinkReading& one) { return one.link == link.link; });
    if (link.word != LinkWord::kUntold) {
      if (link.active && told != before.nvlinks.end() && told->active) {
        if (link.end == LinkEnd::kUnknown) link.end = told->end;
        if (link.remote_pci.empty()) link.remote_pci = told->remote_pci;
        if (link.speed_mbps == 0) link.speed_mbps = told->speed_mbps;
      }
      links.push_back(std::move(link));
    } else if (told != before.nvlinks.end()) {  // one that it did not have then is none
      links.push_back(*told);
      links.back().errors = link.errors;
      if (links.back().word == LinkWord::kSaid) links.back().word = LinkWord::kKept;
    }
  }
  gpu.nvlinks = std::move(links);
  if (gpu.nvlink_generation == 0 && !gpu.nvlinks.empty()) gpu.nvlink_generation = before.nvlink_generation;
}

std::string FaultOf(const GpuReading& gpu) {
  switch (gpu.state) {
    case GpuState::kLost:
      return "the driver has lost it, so it fell off the bus: power-cycle the node";
    case GpuState::kResetRequired:
      return "the driver asks for a reset: drain the node and reset the GPU";
    case GpuState::kSilent:
      return "the driver hangs and does not answer for it: drain and reboot the node";
    case GpuState::kFails:
      return fmt::format("the driver does not answer for it ({}): if that stays, drain and reboot the node",
                         gpu.failure.empty() ? "no error is told" : gpu.failure);
    case GpuState::kAnswers:
      break;
  }
  if (gpu.row_remap_failure.value_or(false)) return "a memory row could not be remapped: replace the GPU";
  // The driver's own word on what to do comes before ours.
  std::string asked = AskedFor(gpu);
  const std::string next = asked.empty() ? ": drain the node and reset the GPU" : ", and " + asked;
  // Kept over a restart by xid_memory.h.
  if (IsFatalXid(gpu.last_xid)) return fmt::format("XID {} was reported{}", gpu.last_xid, next);
  if (gpu.uncorrected_ecc.value_or(0) > 0) {
    return fmt::format("{} uncorrectable ECC errors since the driver was loaded{}", *gpu.uncorrected_ecc,
                       next);
  }
  if (!asked.empty()) return asked;
  if (gpu.row_remap_pending.value_or(false)) return "a memory row waits to be remapped: reset the GPU";
  if (gpu.fabric.health_summary == kUnhealthy) return "its NVLink fabric is unhealthy: " + FabricFault(gpu);
  // NVLink and the fabric are closed to MIG instances.
  if (gpu.mig.value_or(false)) return std::string(kMigIsOn);
  return {};
}

std::vector<std::string> FabricFaults(const std::vector<GpuReading>& gpus) {
  std::vector<std::string> faults;
  for (const GpuReading& gpu : gpus) {
    if (std::string fault = FabricFault(gpu); !fault.empty())
      faults.push_back(fmt::format("GPU {}: {}", gpu.index, fault));
  }
  return faults;
}

int NvlinkGbps(const NvlinkReading& link, int generation) {
  if (link.speed_mbps > 0) {
    // What is left of the wire: 64 of 66 bits to generation 3 (25,781 MB/s carry 25,000); from 4 on PAM4 with
    // RS(544,514) over 256b/257b, which is 16 of 17 (26,562 carry 25,000, 53,125 carry 50,000).
    const auto [data, wire] = generation >= 4 ? std::pair(16, 17) : std::pair(32, 33);
    return int(std::lround(double(link.speed_mbps) * 8 * data / wire / 1000));
  }
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

namespace {

// More is nonsense, and 256 such links, the most that a NodeTopology has of a GPU, are still a number that it takes.
constexpr int kMostLinkGbps = 3'900;

int LinkGbps(const GpuReading& gpu, const NvlinkReading& link) {
  const int gbps = gpu.xgmi ? link.speed_mbps / 125 : NvlinkGbps(link, gpu.nvlink_generation);
  return std::min(gbps, kMostLinkGbps);
}

// Of the links that are up together, in Gb/s. One of which nobody knows the speed, or that is faster than `usual`,
// counts as that.
int TrainedGbps(const GpuReading& gpu, int usual) {
  int sum = 0;
  for (const NvlinkReading& link : gpu.nvlinks) {
    const int gbps = link.active ? LinkGbps(gpu, link) : 0;
    if (link.active) sum += gbps > 0 ? std::min(gbps, usual) : usual;
  }
  return sum;
}

}  // namespace

NvlinkSpeeds SpeedsOf(const std::vector<GpuReading>& gpus) {
  NvlinkSpeeds speeds;
  std::map<int, int> links_at;  // by Gb/s
  for (const GpuReading& gpu : gpus) {
    for (const NvlinkReading& link : gpu.nvlinks) {
      if (!link.active) continue;
      speeds.assumed = speeds.assumed || link.speed_mbps == 0;
      if (const int gbps = LinkGbps(gpu, link); gbps > 0) ++links_at[gbps];
    }
  }
  int most = 0;
  for (const auto& [gbps, links] : links_at) {
    if (links < most) continue;
    most = links;
    speeds.usual_gbps = gbps;
  }
  for (const GpuReading& gpu : gpus) {
    std::map<int, std::vector<int>> slower;  // links, by Gb/s
    for (const NvlinkReading& link : gpu.nvlinks) {
      const int gbps = link.active ? LinkGbps(gpu, link) : 0;
      if (gbps > 0 && gbps < speeds.usual_gbps) slower[gbps].push_back(link.link);
    }
    for (const auto& [gbps, links] : slower) {
      speeds.slow.push_back(fmt::format("GPU {}: {} {} trained to {} Gb/s, others to {}", gpu.index,
                                        links.size() == 1 ? "link" : "links", fmt::join(links, ", "), gbps,
                                        speeds.usual_gbps));
    }
  }
  return speeds;
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
  const int usual = SpeedsOf(gpus).usual_gbps;
  nvlink.gbps_per_gpu = nvlink.links_per_gpu * usual;
  for (const GpuReading& gpu : gpus) {
    // A link of which nobody knows whether it is up is no evidence against its GPU.
    const int untold = std::min(UntoldLinks(gpu), nvlink.links_per_gpu - ActiveLinks(gpu));
    const int up = ActiveLinks(gpu) + untold, trained = TrainedGbps(gpu, usual) + untold * usual;
    if (up == nvlink.links_per_gpu && trained == up * usual) continue;
    topology::NvLink::Exception odd{gpu.index, up};
    if (trained < up * usual) odd.usable_gbps = trained;
    nvlink.exceptions.push_back(odd);
  }
  return nvlink;
}

topology::Fact<topology::NvlinkMembership> DomainOf(const std::vector<GpuReading>& gpus,
                                                    std::string_view node_name,
                                                    std::vector<std::string>& problems) {
  std::set<std::string> ids;
  bool linked = false, untold = false;
  const GpuReading* unread = nullptr;
  for (const GpuReading& gpu : gpus) {
    if (IsGone(gpu)) continue;
    linked = linked || ActiveLinks(gpu) > 0;
    untold = untold || UntoldLinks(gpu) > 0;
    const FabricReading& fabric = gpu.fabric;
    if (fabric.unread != 0) {
      unread = &gpu;
      continue;
    }
    if (fabric.error != 0) {
      problems.push_back(fmt::format(
          "GPU {} could not join its NVLink fabric (NVML error {}): check nvidia-fabricmanager and IMEX",
          gpu.index, fabric.error));
      return topology::Missing::kUnknown;
    }
    if (fabric.state == FabricState::kNotStarted || fabric.state == FabricState::kInProgress) {
      problems.push_back(fmt::format(
          "GPU {} has not joined its NVLink fabric yet: check nvidia-fabricmanager and IMEX", gpu.index));
      return topology::Missing::kUnknown;
    }
    const bool spans = fabric.state == FabricState::kCompleted && !fabric.cluster_uuid.empty();
    ids.insert(spans ? fmt::format("{}.{}", fabric.cluster_uuid, fabric.clique) : std::string());
  }
  if (!linked) return untold ? topology::Missing::kUnknown : topology::Missing::kNotApplicable;
  if (unread != nullptr) {
    problems.push_back(
        fmt::format("GPU {} does not say which NVLink fabric it is in (NVML error {}), so the domain of this "
                    "node is not known",
                    unread->index, unread->fabric.unread));
    return topology::Missing::kUnknown;
  }
  if (ids.size() > 1) {
    problems.push_back(
        fmt::format("the GPUs of this node are in {} NVLink cliques ({})", ids.size(), fmt::join(ids, ", ")));
    return topology::Missing::kAmbiguous;
  }
  if (!ids.begin()->empty()) return topology::NvlinkMembership{*ids.begin(), true};
  if (!AllConnected(gpus)) {
    if (untold) return topology::Missing::kUnknown;
    if (const GpuReading* gpu = FindUnknownEnd(gpus)) {
      problems.push_back(
          fmt::format("neither the driver nor the PCI bus says where the NVLinks of GPU {} end, so the "
                      "domain of this node is not known",
                      gpu->index));
      return topology::Missing::kUnknown;
    }
    problems.emplace_back("NVLink joins only some of the GPUs of this node, so they are in no common domain");
    return topology::Missing::kAmbiguous;
  }
  return topology::NvlinkMembership{std::string(node_name), false};
}

}  // namespace heddle::nodeagent
