#include "nodeagent/health/conditions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/counted.h"
#include "base/cut_utf8.h"
#include "crds/place_labels.h"
#include "nodeagent/nic/rdma_mtu.h"

namespace heddle::nodeagent {
namespace {

using crds::Condition;
using crds::ConditionStatus;
using topology::LinkFault;
using topology::LinkState;
using topology::Nic;
using topology::NicPort;
using topology::NicRole;

constexpr std::size_t kMaxMessage = 1000;  // the schema takes 1024

// As many sentences as fit, and how many more there are. Of the first there is always something, cut where it must be.
std::string Join(const std::vector<std::string>& sentences) {
  constexpr std::size_t kTail = 20;  // "; and N more"
  constexpr std::string_view kCut = "…";
  std::string text;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    if (text.size() + sentences[i].size() + kTail > kMaxMessage) {
      std::size_t left = sentences.size() - i;
      if (text.empty()) {
        text = base::CutUtf8(sentences[i], kMaxMessage - kTail - kCut.size());
        text += kCut;
        --left;
      }
      return left == 0 ? text : fmt::format("{}; and {} more", text, left);
    }
    if (!text.empty()) text += "; ";
    text += sentences[i];
  }
  return text;
}

Condition Make(std::string_view type, bool good, std::string_view reason, std::string message) {
  return Condition{std::string(type),
                   good ? ConditionStatus::kTrue : ConditionStatus::kFalse,
                   std::string(reason),
                   std::move(message),
                   0,
                   {}};
}

Condition NotKnown(std::string_view type, std::string_view reason, std::string message) {
  Condition condition = Make(type, false, reason, std::move(message));
  condition.status = ConditionStatus::kUnknown;
  return condition;
}

std::string PortName(const Nic& nic, const NicPort& port) {
  return nic.ports.size() == 1 ? nic.name : fmt::format("{} port {}", nic.name, port.number);
}

std::string Counts(const topology::Node& node) {
  int rails = 0, up = 0;
  for (const Nic& nic : node.nics) {
    rails += nic.role == NicRole::kCompute ? 1 : 0;
    up += nic.up() ? 1 : 0;
  }
  return fmt::format("{}, {}, {} of {} up", base::Counted(node.gpus.size(), "GPU"),
                     base::Counted(node.nics.size(), "NIC"), up, base::Counted(rails, "compute NIC"));
}

Condition Ready(const Observation& seen) {
  if (const auto wrong = topology::Check(seen.node); !wrong.empty()) {
    return Make(crds::kReady, false, "Contradictory", Join(wrong));
  }
  if (seen.gpus_unreadable) {
    return Make(crds::kReady, false, "GpusUnreadable",
                fmt::format("GPUs are on the PCI bus, but {}",
                            seen.no_driver.empty() ? "NVML lists none" : seen.no_driver));
  }
  if (seen.bus_unread) {
    return NotKnown(
        crds::kReady, "BusUnreadable",
        fmt::format("whether there are GPUs here is not known: the PCI bus cannot be read in full, "
                    "and {}",
                    seen.no_driver.empty() ? "NVML lists none" : seen.no_driver));
  }
  if (seen.node.gpus.empty()) {
    return Make(crds::kReady, true, "NoGpus",
                seen.no_driver.empty() ? "no GPU here" : fmt::format("no GPU here: {}", seen.no_driver));
  }
  return Make(crds::kReady, true, "Discovered", Counts(seen.node));
}

std::set<int> RailsOf(const topology::Node& node) {
  std::set<int> rails;
  for (const Nic& nic : node.nics) {
    if (nic.role == NicRole::kCompute && nic.rail) rails.insert(*nic.rail);
  }
  return rails;
}

Condition Complete(const Observation& seen) {
  std::vector<std::string> problems = seen.problems;
  if (const std::size_t rails = RailsOf(seen.node).size(); rails > std::size_t(kMaxRailConditions)) {
    problems.push_back(fmt::format("{} rails have no condition of their own: the first {} have",
                                   rails - std::size_t(kMaxRailConditions), kMaxRailConditions));
  }
  if (!problems.empty()) return Make(kDiscoveryComplete, false, "ProbesFailed", Join(problems));
  std::vector<std::string> left_out;
  for (const Exclusion& excluded : seen.excluded)
    left_out.push_back(fmt::format("{} {}", excluded.device, excluded.reason));
  return Make(kDiscoveryComplete, true, "AllAnswered",
              left_out.empty() ? "every probe answered" : "left out: " + Join(left_out));
}

Condition GpusHealthy(const Observation& seen) {
  std::vector<std::string> faults;
  std::string unasked;
  for (const topology::Gpu& gpu : seen.node.gpus) {
    if (seen.unasked_gpus.contains(gpu.index))
      unasked = gpu.unhealthy_reason;  // one driver, and so one reason
    else if (!gpu.healthy)
      faults.push_back(fmt::format("GPU {} ({}): {}", gpu.index, gpu.pci, gpu.unhealthy_reason));
  }
  for (const std::string& unlisted : seen.unlisted_gpus)
    faults.push_back(unlisted + ": see dmesg, and reset it or power-cycle the node");
  // That nobody could ask is no evidence against any: Ready says what is wrong.
  if (!unasked.empty()) {
    unasked =
        fmt::format("{} could not be asked: {}", base::Counted(seen.unasked_gpus.size(), "GPU"), unasked);
    if (faults.empty()) return NotKnown(kGpusHealthy, "Unread", std::move(unasked));
    faults.push_back(std::move(unasked));
  }
  const bool good = faults.empty();
  return Make(kGpusHealthy, good, good ? "NoFaults" : "GpuFault",
              good ? "no evidence against any GPU" : Join(faults));
}

// ": link 4 is down"; nothing where the driver's answer does not tell which, or all are.
std::string LinksDown(const Observation& seen, const topology::NvLink::Exception& exception) {
  const auto inactive = seen.inactive_nvlinks.find(exception.gpu);
  const int missing = seen.node.nvlink.links_per_gpu - exception.links_up;
  if (exception.links_up == 0 || inactive == seen.inactive_nvlinks.end() ||
      int(inactive->second.size()) != missing)
    return {};
  return fmt::format(": {} {} {} down", missing == 1 ? "link" : "links", fmt::join(inactive->second, ", "),
                     missing == 1 ? "is" : "are");
}

Condition NvlinksUp(const Observation& seen) {
  const topology::Node& node = seen.node;
  std::vector<std::string> faults;
  for (const auto& exception : node.nvlink.exceptions) {
    // With all of them up it is there because it carries less: slow_nvlinks and NvlinkHealthy say why.
    if (exception.links_up >= node.nvlink.links_per_gpu) continue;
    faults.push_back(fmt::format("GPU {} has {} of {} NVLinks up{}", exception.gpu, exception.links_up,
                                 node.nvlink.links_per_gpu, LinksDown(seen, exception)));
  }
  const bool down = !faults.empty();
  faults.insert(faults.end(), seen.slow_nvlinks.begin(), seen.slow_nvlinks.end());
  if (!faults.empty()) return Make(kNvlinksUp, false, down ? "LinkDown" : "LinkSlow", Join(faults));
  std::string message = fmt::format("{} {} of every GPU are up", node.nvlink.links_per_gpu,
                                    seen.xgmi ? "xGMI links" : "NVLinks");
  if (seen.nvswitches_unseen) message += ", to NVLink switches that no PCI bus of this host shows";
  if (seen.assumed_nvlink_speed) {
    message +=
        node.nvlink.gbps_per_gpu > 0
            ? fmt::format("; the driver does not say how fast: {} Gb/s a link is what generation {} has",
                          node.nvlink.gbps_per_gpu / node.nvlink.links_per_gpu, node.nvlink.generation)
            : std::string("; the driver does not say how fast");
  }
  return Make(kNvlinksUp, true, "AllUp", std::move(message));
}

Condition NvlinkFabricHealthy(const std::vector<std::string>& faults) {
  const bool good = faults.empty();
  return Make(kNvlinkFabricHealthy, good, good ? "Healthy" : "FabricFault",
              good ? "NVML finds nothing wrong with the NVLink fabric" : Join(faults));
}

Condition NvlinkHealthy(const std::vector<std::string>& faults) {
  const bool good = faults.empty();
  return Make(kNvlinkHealthy, good, good ? "Healthy" : "NvlinkFault",
              good ? "nothing stands against any NVLink" : Join(faults));
}

// What is wrong with one port, worst first; its place in this order is its weight.
constexpr std::array<std::string_view, 8> kPortReasons{"Flapping", "LinkDown", "PauseStorm", "LinkErrors",
                                                       "PathLoss", "BeingSet", "SlowLink",   "Healthy"};
constexpr std::size_t kBeingSet = 5;

// A rate that nobody could read is none.
bool IsSlow(const NicPort& port, int best_gbps) {
  return port.state == LinkState::kActive && port.rate_gbps > 0 && port.rate_gbps < best_gbps;
}

// What a port does not say, as the end of a sentence; empty where it says all.
std::string_view Silence(const NicPort& port) {
  if (port.state == LinkState::kUnknown) return "says neither that it is up nor that it is down";
  return port.state == LinkState::kActive && port.rate_gbps == 0 ? "says no rate that can be read" : "";
}

std::size_t WeighPort(const NicPort& port, int best_gbps) {
  switch (port.fault) {
    case LinkFault::kFlapping:
      return 0;
    case LinkFault::kPauseStorm:
      return port.state == LinkState::kDown ? 1 : 2;
    case LinkFault::kErrors:
      return port.state == LinkState::kDown ? 1 : 3;
    case LinkFault::kPathLoss:
      return port.state == LinkState::kDown ? 1 : 4;
    case LinkFault::kNotLossless:
    case LinkFault::kNone:
      break;
  }
  if (port.state == LinkState::kDown) return 1;
  return IsSlow(port, best_gbps) ? 6 : 7;
}

// "mlx5_3 port 1 (leaf-4 port 17)"
std::string PortWithLeaf(const Nic& nic, const NicPort& port) {
  std::string name = fmt::format("{} port {}", nic.name, port.number);
  if (!port.leaf_port) return name;
  return port.leaf_port->port.empty()
             ? fmt::format("{} ({})", name, port.leaf_port->leaf)
             : fmt::format("{} ({} port {})", name, port.leaf_port->leaf, port.leaf_port->port);
}

std::string SayPort(const Nic& nic, const NicPort& port, int best_gbps) {
  std::string text = PortWithLeaf(nic, port);
  if (port.state == LinkState::kDown) text += " is down";
  if (!port.reason.empty()) text += ": " + port.reason;
  if (IsSlow(port, best_gbps))
    text += fmt::format(": trained to {} Gb/s, others to {}", port.rate_gbps, best_gbps);
  return text;
}

Condition RailCondition(const Observation& seen, int rail, int best_gbps) {
  std::vector<std::string> names, faults, unread;
  std::size_t worst = kPortReasons.size() - 1;
  for (const Nic& nic : seen.node.nics) {
    if (nic.role != NicRole::kCompute || nic.rail.value_or(-1) != rail) continue;
    for (const NicPort& port : nic.ports) {
      std::size_t weight = WeighPort(port, best_gbps);
      const auto withdrawn = seen.withdrawn_ports.find({nic.name, port.number});
      names.push_back(PortWithLeaf(nic, port));
      if (withdrawn != seen.withdrawn_ports.end() && weight > kBeingSet) {
        weight = kBeingSet;
        faults.push_back(fmt::format("{}: {}", names.back(), withdrawn->second));
      } else if (weight < kPortReasons.size() - 1) {
        faults.push_back(SayPort(nic, port, best_gbps));
        if (withdrawn != seen.withdrawn_ports.end()) faults.back() += fmt::format(" ({})", withdrawn->second);
      }
      worst = std::min(worst, weight);
      const auto why = seen.unread_ports.find({nic.name, port.number});
      if (why != seen.unread_ports.end()) {
        unread.push_back(fmt::format("{}: {}", names.back(), why->second));
      } else if (!Silence(port).empty()) {
        unread.push_back(fmt::format("{} {}", names.back(), Silence(port)));
      }
    }
  }
  if (!faults.empty()) return Make(RailHealthy(rail), false, kPortReasons[worst], Join(faults));
  if (!unread.empty()) return NotKnown(RailHealthy(rail), "Unread", Join(unread));
  return Make(RailHealthy(rail), true, "Healthy", "nothing stands against " + Join(names));
}

int BestGbps(const topology::Node& node) {
  int best = 0;
  for (const Nic& nic : node.nics) {
    for (const NicPort& port : nic.ports) {
      if (nic.role == NicRole::kCompute) best = std::max(best, port.rate_gbps);
    }
  }
  return best;
}

void AddRails(const Observation& seen, std::vector<Condition>& conditions) {
  const std::set<int> rails = RailsOf(seen.node);
  const int best = BestGbps(seen.node);
  int count = 0;
  for (const int rail : rails) {
    if (++count > kMaxRailConditions) break;
    conditions.push_back(RailCondition(seen, rail, best));
  }
}

// Reason and message of rails that are all known.
std::pair<std::string, std::string> RailBasis(const Observation& seen) {
  if (!seen.rail_notes.empty()) return {"PciOrder", Join(seen.rail_notes)};
  switch (seen.rail_reach) {
    case topology::PciDistance::kPix:
    case topology::PciDistance::kPxb:
      break;
    case topology::PciDistance::kPhb:
      return {"HostBridges", "from the host bridges that GPUs and NICs share: no PCIe switch is visible"};
    case topology::PciDistance::kNode:
    case topology::PciDistance::kSys:
      return {"NumaNodes", "from the NUMA nodes that GPUs and NICs share: no PCIe switch is visible"};
  }
  if (!seen.pci_source.empty()) return {"SuppliedTopology", "from the PCIe switches of " + seen.pci_source};
  return {"PciSwitches", "from the PCIe switches that GPUs and NICs share"};
}

Condition RailsMeasured(const Observation& seen) {
  const auto& nics = seen.node.nics;
  const bool good = std::all_of(nics.begin(), nics.end(), [](const Nic& nic) {
    return nic.role != NicRole::kCompute || nic.rail.known();
  });
  if (!good) {
    return Make(kRailsMeasured, false, "Unknown",
                seen.rail_notes.empty() ? "no GPU is near enough to tell the rail of every compute NIC"
                                        : Join(seen.rail_notes));
  }
  auto [reason, message] = RailBasis(seen);
  if (!seen.lost_gpus.empty()) message = Join({std::move(message), seen.lost_gpus});
  if (!seen.given_storage.empty()) message = Join({std::move(message), seen.given_storage});
  return Make(kRailsMeasured, true, reason, std::move(message));
}

Condition PcieLinksFull(const std::vector<std::string>& faults) {
  const bool good = faults.empty();
  return Make(kPcieLinksFull, good, good ? "Full" : "LinkDegraded",
              good ? "the PCIe links of GPUs and compute NICs have all lanes and the speed of their ends"
                   : Join(faults));
}

Condition LinksUp(const Observation& seen) {
  const topology::Node& node = seen.node;
  const int best = BestGbps(node);
  std::vector<std::string> down, slow, unknown;
  bool efa = false;
  for (const Nic& nic : node.nics) {
    if (nic.role != NicRole::kCompute) continue;
    efa = efa || nic.transport == topology::Transport::kEfa;
    for (const NicPort& port : nic.ports) {
      if (!Silence(port).empty()) unknown.push_back(fmt::format("{} {}", PortName(nic, port), Silence(port)));
      if (port.state == LinkState::kDown) down.push_back(PortName(nic, port) + " is down");
      if (IsSlow(port, best)) {
        slow.push_back(
            fmt::format("{} trained to {} Gb/s, others to {}", PortName(nic, port), port.rate_gbps, best));
      }
    }
  }
  // A card that dies takes its port along, and the ports that are left may all be up.
  if (!seen.lost_nics.empty()) {
    std::vector<std::string> faults = seen.lost_nics;
    for (const auto* list : {&down, &slow, &unknown}) faults.insert(faults.end(), list->begin(), list->end());
    return Make(kLinksUp, false, "NicGone", Join(faults));
  }
  if (down.empty() && slow.empty() && best == 0)
    return NotKnown(kLinksUp, "Unread", "the state of no compute port is known");
  if (down.empty() && slow.empty() && !unknown.empty()) return NotKnown(kLinksUp, "Unread", Join(unknown));
  if (down.empty() && slow.empty())
    return Make(kLinksUp, true, "AllUp",
                fmt::format("all compute ports run at {} Gb/s{}", best,
                            efa ? ", as EFA's driver says whatever its link does" : ""));
  const bool any_down = !down.empty();
  down.insert(down.end(), slow.begin(), slow.end());
  down.insert(down.end(), unknown.begin(), unknown.end());
  return Make(kLinksUp, false, any_down ? "LinkDown" : "LinkDegraded", Join(down));
}

Condition RdmaMtuEqual(const RdmaMtus& mtus, bool derived) {
  if (!mtus.faults.empty()) return Make(kRdmaMtuEqual, false, "MtuDiffers", Join(mtus.faults));
  return Make(kRdmaMtuEqual, true, "Equal",
              derived
                  ? fmt::format("{} bytes, by the MTU of the interfaces: no driver said its own", mtus.bytes)
                  : fmt::format("{} bytes, as the drivers say", mtus.bytes));
}

// Why the leaf of a port is not known, by who could have told it.
std::string WhyNoLeaf(topology::Transport transport) {
  switch (transport) {
    case topology::Transport::kEfa:
      return fmt::format("no place label on the Node ({} or {})", crds::kPlaceLabels[0].key,
                         crds::kPlaceLabels[1].key);
    case topology::Transport::kRoce:
    case topology::Transport::kEthernet:
      return "no LLDP neighbour is heard: it is off at the switch, or the NIC's firmware has an LLDP agent "
             "of its "
             "own that keeps the frames";
    case topology::Transport::kInfiniBand:
      break;
  }
  return "no neighbour answers";
}

Condition LeavesKnown(const Observation& seen) {
  const topology::Node& node = seen.node;
  using Names = std::vector<std::string>;
  Names ambiguous, stale;
  std::map<topology::Transport, Names> unknown;
  std::size_t ports = 0;
  for (const Nic& nic : node.nics) {
    for (const NicPort& port : nic.ports) {
      if (nic.role != NicRole::kCompute || port.state == LinkState::kDown) continue;
      ++ports;
      if (port.leaf_port.known() || port.leaf_port.missing() == topology::Missing::kNotApplicable) continue;
      const topology::Missing why = port.leaf_port.missing();
      (why == topology::Missing::kAmbiguous ? ambiguous
       : why == topology::Missing::kStale   ? stale
                                            : unknown[nic.transport])
          .push_back(PortName(nic, port));
    }
  }
  std::vector<std::string> sentences;
  const auto say = [&](const Names& names, std::string_view what) {
    if (names.empty()) return;
    const std::size_t shown = std::min<std::size_t>(names.size(), 8);
    sentences.push_back(fmt::format("{} of {} compute ports: {} ({}{})", names.size(), ports, what,
                                    fmt::join(names.begin(), names.begin() + std::ptrdiff_t(shown), ", "),
                                    shown < names.size() ? ", …" : ""));
  };
  const std::vector<std::string>& shared = seen.shared_leaf_names;
  say(ambiguous, shared.empty() ? "several neighbours answer" : "several neighbours answer or share a name");
  if (!ambiguous.empty()) sentences.insert(sentences.end(), shared.begin(), shared.end());
  say(stale, "the last answer has expired");
  for (const auto& [transport, names] : unknown) say(names, WhyNoLeaf(transport));
  // A neighbour says nothing to a port that is down.
  if (ports == 0) return NotKnown(kLeavesKnown, "Unread", "every compute port is down");
  if (sentences.empty()) return Make(kLeavesKnown, true, "AllKnown", "every compute port knows its leaf");
  const bool labels_only = ambiguous.empty() && stale.empty() && unknown.size() == 1 &&
                           unknown.contains(topology::Transport::kEfa);
  return Make(kLeavesKnown, false,
              !ambiguous.empty() ? "LeafAmbiguous"
              : labels_only      ? "NoPlaceLabel"
                                 : "LeafUnknown",
              Join(sentences));
}

// Nothing: no leaf was asked.
std::optional<Condition> LeavesCounted(const Observation& seen) {
  std::size_t ports = 0;
  std::vector<std::string> reasons;  // in the order of ports
  std::map<std::string, std::vector<std::string>>
      unread;  // ports by reason: a managed fabric has one for all
  for (const Nic& nic : seen.node.nics) {
    for (const NicPort& port : nic.ports) {
      const auto end = seen.leaf_ends.find({nic.name, port.number});
      if (end == seen.leaf_ends.end() || port.state == LinkState::kDown) continue;
      ++ports;
      if (end->second.empty()) continue;
      std::vector<std::string>& names = unread[end->second];
      if (names.empty()) reasons.push_back(end->second);
      names.push_back(PortName(nic, port));
    }
  }
  if (ports == 0) return std::nullopt;
  if (reasons.empty())
    return Make(kLeavesCounted, true, "AllCounted",
                fmt::format("the leaf of each of {} InfiniBand ports tells what its end has counted", ports));
  std::vector<std::string> sentences;
  sentences.reserve(reasons.size());
  for (const std::string& reason : reasons)
    sentences.push_back(fmt::format("{}: {}", fmt::join(unread[reason], ", "), reason));
  return NotKnown(kLeavesCounted, "Unread", Join(sentences));
}

}  // namespace

std::string RailHealthy(int rail) {
  return fmt::format("Rail{}Healthy", rail);
}

std::vector<Condition> ConditionsOf(const Observation& observation) {
  const topology::Node& node = observation.node;
  std::vector<Condition> conditions{Ready(observation), Complete(observation)};
  // A file tells what is there and not how it does.
  if (!node.gpus.empty() && !observation.file_alone) conditions.push_back(GpusHealthy(observation));
  if (node.nvlink.links_per_gpu > 0 && !observation.file_alone) conditions.push_back(NvlinksUp(observation));
  if (observation.fabric_faults) conditions.push_back(NvlinkFabricHealthy(*observation.fabric_faults));
  if (observation.pcie_faults) conditions.push_back(PcieLinksFull(*observation.pcie_faults));
  if (observation.nvlink_faults) conditions.push_back(NvlinkHealthy(*observation.nvlink_faults));
  AddRails(observation, conditions);
  if (auto counted = LeavesCounted(observation)) conditions.push_back(*std::move(counted));
  const bool compute = std::any_of(node.nics.begin(), node.nics.end(),
                                   [](const Nic& nic) { return nic.role == NicRole::kCompute; });
  if (compute || !observation.lost_nics.empty()) conditions.push_back(LinksUp(observation));
  if (compute) {
    conditions.push_back(RailsMeasured(observation));
    if (!observation.file_alone) conditions.push_back(LeavesKnown(observation));
    if (const auto mtus = CompareRdmaMtus(node))
      conditions.push_back(RdmaMtuEqual(*mtus, observation.derived_mtus));
  }
  std::sort(conditions.begin(), conditions.end(),
            [](const Condition& a, const Condition& b) { return a.type < b.type; });
  return conditions;
}

}  // namespace heddle::nodeagent
