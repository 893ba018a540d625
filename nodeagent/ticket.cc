#include "nodeagent/ticket.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/counted.h"
#include "base/table.h"
#include "crds/gpus_unread.h"

namespace heddle::nodeagent {
namespace {

using base::Table;
using base::WithoutControls;
using crds::ConditionStatus;
using topology::Fact;
using topology::Nic;
using topology::NicPort;
using topology::Node;

// "3", or why there is none.
std::string Text(const Fact<int>& fact) {
  return fact ? std::to_string(*fact) : std::string(topology::MissingName(fact.missing()));
}

// Nobody counted what was not read.
std::string CountOrUnknown(std::size_t number, bool unread, std::string_view one) {
  return number == 0 && unread ? fmt::format("? {}s", one) : base::Counted(number, one);
}

std::string_view OrUnknown(std::string_view text) {
  return text.empty() ? "?" : text;
}

// Words in lines of 100 columns, the first behind `first`, the others behind `indent`.
std::string Fill(const std::vector<std::string>& words, std::string_view first, std::string_view indent) {
  constexpr std::size_t kColumns = 100;
  std::string text, line(first);
  bool fresh = true;  // nothing but the indent is on the line
  for (const std::string& word : words) {
    if (!fresh && base::DisplayWidth(line) + 1 + base::DisplayWidth(word) > kColumns) {
      text += line + '\n';
      line = indent;
      fresh = true;
    }
    if (!fresh) line += ' ';
    line += word;
    fresh = false;
  }
  return text + line + '\n';
}

// "a, b, c", each line behind `indent`.
std::string Wrap(std::vector<std::string> names, std::string_view indent) {
  for (std::size_t i = 0; i + 1 < names.size(); ++i) names[i] += ',';
  return Fill(names, indent, indent);
}

// A sentence, its first line behind two columns and the others behind four.
std::string WrapSentence(std::string_view sentence) {
  std::vector<std::string> words;
  while (!sentence.empty()) {
    const std::size_t end = std::min(sentence.find(' '), sentence.size());
    words.emplace_back(sentence.substr(0, end));
    sentence.remove_prefix(std::min(end + 1, sentence.size()));
  }
  return Fill(words, "  ", "    ");
}

std::string NvlinkText(const Node& node) {
  if (node.nvlink.generation == 0 && node.nvlink.links_per_gpu == 0) {
    const bool untold = !node.nvlink_domain && node.nvlink_domain.missing() == topology::Missing::kUnknown;
    return untold ? "?" : "none";
  }
  std::string text;
  if (node.nvlink.generation > 0) text = fmt::format("generation {}, ", node.nvlink.generation);
  text += fmt::format("{} of each GPU, {} Gb/s a GPU and direction",
                      base::Counted(node.nvlink.links_per_gpu, "link"),
                      node.nvlink.gbps_per_gpu > 0 ? std::to_string(node.nvlink.gbps_per_gpu) : "?");
  for (const topology::NvLink::Exception& odd : node.nvlink.exceptions) {
    text += fmt::format("; GPU {}: {} up", odd.gpu, odd.links_up);
    if (odd.usable_gbps) text += fmt::format(", counted for {} Gb/s", *odd.usable_gbps);
  }
  return text;
}

std::string DomainText(const Node& node) {
  if (!node.nvlink_domain) return std::string(topology::MissingName(node.nvlink_domain.missing()));
  return WithoutControls(node.nvlink_domain->id) +
         (node.nvlink_domain->spans_nodes ? ", with other nodes" : ", this machine alone");
}

// " (gone: rail 3's NIC 0000:5e:00.0)"
std::string GoneText(const Node& node) {
  constexpr std::size_t kShown = 3;
  std::map<int, std::string> gone;  // the first of each rail
  for (const topology::Gpu& gpu : node.gpus) {
    if (gpu.nic_gone) gone.try_emplace(gpu.nic_gone->rail, gpu.nic_gone->pci);
  }
  std::vector<std::string> names;
  for (const auto& [rail, pci] : gone) {
    if (names.size() == kShown) break;
    names.push_back(fmt::format("rail {}'s NIC{}{}", rail, pci.empty() ? "" : " ", WithoutControls(pci)));
  }
  if (gone.size() > kShown) names.push_back(fmt::format("{} more", gone.size() - kShown));
  return names.empty() ? std::string() : fmt::format(" (gone: {})", fmt::join(names, ", "));
}

void AddHead(const crds::NodeTopology& object, const PrintedFacts& facts, std::string& text) {
  const Node& node = object.status.node;
  const bool unread = crds::GpusUnread(node);
  const crds::NodeSummary summary = crds::Summarise(node);
  const auto line = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("{:<11}{}\n", name, value);
  };
  line("Node", WithoutControls(object.name));
  line("Machine", (node.machine.empty() ? "of an unknown make" : WithoutControls(node.machine)) +
                      fmt::format(", {}, {}, {}", CountOrUnknown(node.gpus.size(), unread, "GPU"),
                                  CountOrUnknown(node.nics.size(), unread, "NIC"),
                                  CountOrUnknown(std::size_t(node.numa_nodes), true, "NUMA node")) +
                      (node.site.empty() ? "" : ", site " + WithoutControls(node.site)));
  if (facts.read) {
    line("Software",
         "kernel " + WithoutControls(OrUnknown(facts.kernel)) +
             (facts.gpu_driver.empty() ? "" : ", GPU driver " + WithoutControls(facts.gpu_driver)));
  }
  if (!node.gpus.empty()) {
    line(facts.xgmi ? "xGMI" : "NVLink",
         NvlinkText(node) +
             (node.nvswitches.empty() ? "" : fmt::format(", {} NVSwitches", node.nvswitches.size())));
    line("Domain", DomainText(node));
  }
  line("Fabric", fmt::format("{}, rails up {}{}, leaves {}", summary.transport, summary.rails, GoneText(node),
                             WithoutControls(summary.leaf)));
  line("Seen", fmt::format("{} by heddle-nodeagent {}, hash {}",
                           object.status.observed_at ? base::FormatTime(*object.status.observed_at) : "never",
                           object.status.agent_version, object.status.hash));
}

// They are under no condition, since no gang needs them: a node whose storage is away trains nothing all the same. A
// port that is down has no rate to tell storage from a card that nobody cabled: one of its model that is up does.
std::string StoragePortsDown(const Node& node) {
  std::string lines;
  std::set<std::string_view> models;  // of storage that is up
  const auto is_up = [](const NicPort& port) { return port.state == topology::LinkState::kActive; };
  for (const Nic& nic : node.nics) {
    if (nic.role == topology::NicRole::kStorage && std::any_of(nic.ports.begin(), nic.ports.end(), is_up))
      models.insert(nic.pci_id);
  }
  for (const Nic& nic : node.nics) {
    if (!models.contains(nic.pci_id)) continue;
    for (const NicPort& port : nic.ports) {
      if (nic.role != topology::NicRole::kStorage || port.state != topology::LinkState::kDown) continue;
      const std::string number = nic.ports.size() == 1 ? "" : fmt::format(" port {}", port.number);
      lines += fmt::format("  storage port {}{} is Down\n", WithoutControls(nic.name), number);
    }
  }
  return lines;
}

// What is not True, the worst first, each with its evidence; then in one line what is.
void AddConditions(const std::vector<crds::Condition>& conditions, const Node& node, std::string& text) {
  std::vector<std::string> good;
  std::string bad, unknown;
  for (const crds::Condition& condition : conditions) {
    if (condition.status == ConditionStatus::kTrue) {
      good.push_back(condition.type);
      continue;
    }
    std::string& into = condition.status == ConditionStatus::kFalse ? bad : unknown;
    into += WrapSentence(
        fmt::format("{} ({}): {}", condition.type, condition.reason, WithoutControls(condition.message)));
  }
  bad += StoragePortsDown(node);
  text += "\nWrong\n" + (bad.empty() ? "  nothing that this agent can see\n" : bad);
  if (!unknown.empty()) text += "Not known\n" + unknown;
  if (!good.empty()) text += "Good\n" + Wrap(good, "  ");
}

// How far GPU `gpu` is from a NIC; "?" where nothing says.
std::string DistanceText(const Node& node, int gpu, std::string_view nic) {
  const auto path = std::find_if(node.paths.begin(), node.paths.end(), [&](const topology::GpuNicPath& of) {
    return of.gpu == gpu && of.nic == nic;
  });
  return path == node.paths.end() ? "?" : std::string(topology::PciDistanceName(path->distance));
}

std::string HealthText(const topology::Gpu& gpu, bool unasked) {
  if (unasked) return "?";
  if (!gpu.healthy) return "unhealthy: " + gpu.unhealthy_reason;
  return gpu.mig ? "healthy, cut by MIG" : "healthy";
}

// The NICs of one GPU that are equally far and on one rail: "rdmap79s0,rdmap80s0", "PIX", "0".
using NicGroup = std::array<std::string, 3>;
std::vector<NicGroup> NicGroups(const Node& node, int gpu) {
  std::vector<NicGroup> groups;
  for (const Nic* nic : node.NicsOfGpu(gpu)) {
    const std::string distance = DistanceText(node, gpu, nic->name), rail = Text(nic->rail);
    if (!groups.empty() && groups.back()[1] == distance && groups.back()[2] == rail) {
      groups.back()[0] += "," + nic->name;
    } else {
      groups.push_back({nic->name, distance, rail});
    }
  }
  if (groups.empty()) groups.push_back({"none", "-", "-"});
  return groups;
}

// Enough to tell the GPUs of a site apart: "GPU-1d3f0a52".
std::string ShortUuid(const std::string& uuid) {
  constexpr std::size_t kShown = std::string_view("GPU-").size() + 8;
  return std::string(OrUnknown(uuid.substr(0, kShown)));
}

void AddGpus(const Node& node, const PrintedFacts& facts, std::string& text) {
  if (node.gpus.empty()) return;
  Table table({"GPU", "UUID", "PCI", "NUMA", "MODEL", "GIB", "NICS", "DISTANCE", "RAIL", "STATE"});
  for (const topology::Gpu& gpu : node.gpus) {
    for (const NicGroup& group : NicGroups(node, gpu.index)) {
      table.Add({std::to_string(gpu.index), ShortUuid(gpu.uuid), gpu.pci, Text(gpu.numa), gpu.model,
                 gpu.memory_gib == 0 ? "?" : std::to_string(gpu.memory_gib), group[0], group[1], group[2],
                 HealthText(gpu, facts.file_alone)});
    }
  }
  text += "\nGPUs and the NICs that go with them\n" + table.Format({});
}

std::string RateText(const NicPort& port) {
  if (port.rate_gbps == 0 && port.state != topology::LinkState::kDown)
    return port.usable_gbps == 0 ? "?" : fmt::format("? (counts as {})", port.usable_gbps);
  if (port.usable_gbps == port.rate_gbps) return std::to_string(port.rate_gbps);
  return fmt::format("{} of {}", port.usable_gbps, port.rate_gbps);
}

std::string MtuText(const Nic& nic, const NicPort& port) {
  if (nic.transport == topology::Transport::kEthernet) return "-";  // it carries no RDMA
  return port.rdma_mtu == 0 ? "?" : std::to_string(port.rdma_mtu);
}

void AddPorts(const Node& node, std::string& text) {
  if (node.nics.empty()) return;
  Table table({"NIC", "PORT", "ROLE", "TRANSPORT", "PCI", "NUMA", "INTERFACE", "STATE", "GBIT/S", "RDMA MTU",
               "LEAF", "LEAF PORT"});
  std::string reasons;
  for (const Nic& nic : node.nics) {
    for (const NicPort& port : nic.ports) {
      const bool known = port.leaf_port.known();
      table.Add({nic.name, std::to_string(port.number), std::string(topology::NicRoleName(nic.role)),
                 std::string(topology::TransportName(nic.transport)), nic.pci, Text(nic.numa), nic.netdev,
                 std::string(topology::LinkStateName(port.state)), RateText(port), MtuText(nic, port),
                 known ? port.leaf_port->leaf : std::string(topology::MissingName(port.leaf_port.missing())),
                 known ? port.leaf_port->port : ""});
      if (!port.reason.empty())
        reasons += fmt::format("  {} port {}: {}\n", WithoutControls(nic.name), port.number,
                               WithoutControls(port.reason));
    }
  }
  text += "\nPorts\n" + table.Format({}) + reasons;
}

// As `nvidia-smi topo -m` has it, with the switch that makes a pair PIX. NICs are rows: of those there may be dozens.
void AddDistances(const Node& node, const std::vector<PairDistance>& pairs, std::string& text) {
  if (pairs.empty()) return;
  std::vector<std::string> head{"NIC"};
  for (const topology::Gpu& gpu : node.gpus) head.push_back(fmt::format("GPU{}", gpu.index));
  head.emplace_back("BEHIND");
  Table table(head);
  for (const Nic& nic : node.nics) {
    std::vector<base::Cell> row{nic.name};
    std::vector<std::string> bridges;
    for (const topology::Gpu& gpu : node.gpus) {
      const auto pair = std::find_if(pairs.begin(), pairs.end(), [&](const PairDistance& of) {
        return of.gpu == gpu.index && of.nic == nic.name;
      });
      row.emplace_back(pair == pairs.end() ? "?" : std::string(topology::PciDistanceName(pair->distance)));
      const bool fresh = pair != pairs.end() && !pair->bridge.empty() &&
                         std::find(bridges.begin(), bridges.end(), pair->bridge) == bridges.end();
      if (fresh) bridges.push_back(pair->bridge);
    }
    row.emplace_back(bridges.empty() ? "-" : fmt::format("{}", fmt::join(bridges, ",")));
    table.Add(std::move(row));
  }
  text += "\nPCIe distance of every NIC from every GPU, and the switch that PIX pairs are behind\n" +
          table.Format({});
}

// Cards of one firmware in one line: one that differs stands out.
void AddFirmware(const PrintedFacts& facts, std::string& text) {
  if (facts.nics.empty()) return;
  std::map<std::string, std::vector<std::string>> devices;
  for (const auto& [name, of] : facts.nics) {
    devices[fmt::format("firmware {} ({}, board {}), driver {}", OrUnknown(of.firmware), OrUnknown(of.model),
                        OrUnknown(of.board), OrUnknown(of.driver))]
        .push_back(WithoutControls(name));
  }
  text += "\nVersions of NICs\n";
  for (const auto& [version, names] : devices)
    text += WithoutControls("  " + version) + ":\n" + Wrap(names, "    ");
}

// What a person compares with the same counters of the host. Traffic says nothing by itself.
void AddLeaves(const std::vector<LeafCounts>& leaves, std::string& text) {
  if (leaves.empty()) return;
  text += "\nCounted at the leaf since its counters were cleared\n";
  for (const LeafCounts& leaf : leaves) {
    std::vector<std::string> counts;
    for (const PmaCount& count : leaf.counts) {
      if (StandsStill(count.name) && count.value > 0)
        counts.push_back(fmt::format("{} {}", count.name, count.value));
    }
    const std::string said = !leaf.unread.empty() ? leaf.unread
                             : counts.empty()     ? std::string("nothing wrong")
                                                  : fmt::format("{}", fmt::join(counts, ", "));
    const std::string where =
        leaf.leaf.empty() ? "" : fmt::format(" ({} port {})", leaf.leaf, leaf.leaf_port);
    text += WithoutControls(fmt::format("  {} port {}{}: {}", leaf.device, leaf.port, where, said)) + "\n";
  }
}

void AddExcluded(const std::vector<Exclusion>& excluded, std::string& text) {
  if (excluded.empty()) return;
  // A card's virtual functions are dozens, and all say the same.
  std::vector<std::string> reasons;
  std::map<std::string, std::vector<std::string>> devices;
  for (const Exclusion& of : excluded) {
    if (!devices.contains(of.reason)) reasons.push_back(of.reason);
    devices[of.reason].push_back(of.device.empty() ? of.pci : of.device);
  }
  text += "\nLeft out\n";
  for (const std::string& reason : reasons)
    text += WithoutControls(fmt::format("  {}: {}", fmt::join(devices[reason], ", "), reason)) + "\n";
}

void AddGrants(const std::vector<crds::Grant>& grants, std::string& text) {
  if (grants.empty()) return;
  Table table({"POD", "CONTAINER", "GPUS", "NICS"});
  for (const crds::Grant& grant : grants) {
    std::vector<std::string> gpus;
    for (const crds::Grant::GpuRef& gpu : grant.gpus) gpus.push_back(std::to_string(gpu.index));
    table.Add({grant.pod_namespace + "/" + grant.pod_name, grant.container,
               fmt::format("{}", fmt::join(gpus, ",")), fmt::format("{}", fmt::join(grant.nics, ","))});
  }
  text += "\nIn use\n" + table.Format({});
}

}  // namespace

std::string Ticket(const crds::NodeTopology& object, const PrintedFacts& facts) {
  std::string text;
  AddHead(object, facts, text);
  AddConditions(object.status.conditions, object.status.node, text);
  AddGpus(object.status.node, facts, text);
  AddPorts(object.status.node, text);
  AddDistances(object.status.node, facts.distances, text);
  AddFirmware(facts, text);
  AddLeaves(facts.leaves, text);
  AddExcluded(facts.excluded, text);
  AddGrants(object.status.grants, text);
  return text;
}

}  // namespace heddle::nodeagent
