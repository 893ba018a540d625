#include "cli/import_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "formats/nccl_xml.h"
#include "formats/topo_matrix.h"

namespace heddle::cli {
namespace {

using base::Code;
using topology::PciDistance;

constexpr std::size_t kMaxGpus = 32;  // of one node, as the schema of NodeTopology has it
constexpr std::size_t kMaxNics = 128;
constexpr int kMaxNuma = 1023;
constexpr int kMaxGbps = 1'000'000;

// One direction of one link in Gb/s, as the machines of topology/synthetic_line.cc have it: 25 GB/s of NVLink
// 2 to 4, 50 of NVLink 5, 64 of xGMI 3.
constexpr int kNvlinkGbps = 200;
constexpr int kNvlink5Gbps = 400;
constexpr int kXgmiGbps = 512;

int GenerationOfSm(int sm) {
  if (sm >= 100) return 5;
  if (sm >= 90) return 4;
  if (sm >= 80) return 3;
  return sm >= 70 ? 2 : 1;
}

topology::Fact<int> Numa(const topology::Fact<int>& said) {
  return said && *said <= kMaxNuma ? said : topology::Fact<int>();
}

base::Status CheckSize(std::size_t gpus, std::size_t nics) {
  if (gpus == 0) return base::Fail(Code::kInvalid, "it has no GPU");
  if (gpus > kMaxGpus || nics > kMaxNics) {
    return base::Fail(Code::kInvalid,
                      fmt::format("it has {} GPUs and {} NICs; {} and {} are the most of one node", gpus,
                                  nics, kMaxGpus, kMaxNics));
  }
  return {};
}

// NICs in the order in which people count them, and `near` of each.
void SettleNics(Machine& machine) {
  std::vector<std::size_t> order(machine.nics.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return CountsBefore(machine.nics[a].name, machine.nics[b].name);
  });
  const std::vector<MachineNic> nics = machine.nics;
  auto distances = machine.distances;
  PciDistance best = PciDistance::kSys;
  for (std::size_t i = 0; i < order.size(); ++i) {
    machine.nics[i] = nics[order[i]];
    for (std::size_t g = 0; g < distances.size(); ++g) {
      machine.distances[g][i] = distances[g][order[i]];
      best = std::min(best, distances[g][order[i]]);
    }
  }
  const bool switches = best == PciDistance::kPix || best == PciDistance::kPxb;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (machine.nics[i].name.empty()) machine.nics[i].name = fmt::format("nic{}", i);
    machine.nics[i].near = !switches;
    for (const auto& row : machine.distances) {
      machine.nics[i].near =
          machine.nics[i].near || row[i] == PciDistance::kPix || row[i] == PciDistance::kPxb;
    }
  }
}

int CountNuma(const Machine& machine) {
  std::set<int> numa;
  for (const topology::Gpu& gpu : machine.gpus) {
    if (gpu.numa) numa.insert(*gpu.numa);
  }
  for (const MachineNic& nic : machine.nics) {
    if (nic.numa) numa.insert(*nic.numa);
  }
  return int(numa.size());
}

// GPUs whose links are fewer than the most are exceptions.
void SetLinks(const std::vector<int>& links, topology::NvLink& nvlink) {
  nvlink.links_per_gpu = *std::max_element(links.begin(), links.end());
  for (std::size_t g = 0; g < links.size(); ++g) {
    if (links[g] < nvlink.links_per_gpu) nvlink.exceptions.push_back({int(g), links[g]});
  }
}

void NoteUnsaidNvlink(Machine& machine, ImportFindings& findings) {
  machine.nvlink_joins_gpus = machine.gpus.size() > 1;
  findings.notes.push_back(
      fmt::format("{} says nothing of NVLink: its {} GPUs are taken for one NVLink domain", machine.source,
                  machine.gpus.size()));
}

void ReadNvlink(const formats::NcclTopology& topology, Machine& machine, ImportFindings& findings) {
  std::vector<int> links;
  bool any = false, described = true, xgmi = false;
  int sm = 0;
  for (const formats::NcclGpu& gpu : topology.gpus) {
    links.push_back(gpu.links);
    any = any || gpu.links > 0;
    described = described && gpu.index.known();
    xgmi = xgmi || gpu.xgmi;
    sm = std::max(sm, gpu.sm);
  }
  // Files that people wrote for a machine type have no <gpu> elements, and so no links of theirs.
  if (!any && !described) return NoteUnsaidNvlink(machine, findings);
  if (!any) return;
  machine.nvlink_joins_gpus = true;
  SetLinks(links, machine.nvlink);
  machine.nvlink.generation = xgmi || sm == 0 ? 0 : GenerationOfSm(sm);
  const int each = xgmi ? kXgmiGbps : machine.nvlink.generation >= 5 ? kNvlink5Gbps : kNvlinkGbps;
  machine.nvlink.gbps_per_gpu = machine.nvlink.links_per_gpu * each;
}

// Where every pair shows the same number, it is the links of a GPU to the NVSwitches, unless so many times
// the number of partners could be cables of their own: no GPU before 2026 has more than 18.
std::vector<int> LinksOfGpus(const formats::TopoMatrix& matrix) {
  constexpr int kMostLinks = 18;
  std::vector<int> sums;
  int least = kMostLinks + 1, most = 0;
  for (std::size_t g = 0; g < matrix.gpus.size(); ++g) {
    int sum = 0;
    for (std::size_t other = 0; other < matrix.gpus.size(); ++other) {
      if (other == g) continue;
      const int links = matrix.gpus[g].nvlinks[other];
      sum += links;
      least = std::min(least, links);
      most = std::max(most, links);
    }
    sums.push_back(sum);
  }
  const int highest = sums.empty() ? 0 : *std::max_element(sums.begin(), sums.end());
  if (highest <= kMostLinks) return sums;
  for (std::size_t g = 0; g < sums.size(); ++g) {
    const auto& row = matrix.gpus[g].nvlinks;
    sums[g] = *std::max_element(row.begin(), row.end());
  }
  return sums;
}

// Whether every GPU reaches every other over NVLink, directly or by way of others.
bool Joined(const formats::TopoMatrix& matrix) {
  std::vector<bool> seen(matrix.gpus.size(), false);
  std::vector<std::size_t> next{0};
  seen[0] = true;
  while (!next.empty()) {
    const auto& row = matrix.gpus[next.back()].nvlinks;
    next.pop_back();
    for (std::size_t other = 0; other < row.size(); ++other) {
      if (row[other] == 0 || seen[other]) continue;
      seen[other] = true;
      next.push_back(other);
    }
  }
  return matrix.gpus.size() > 1 && std::find(seen.begin(), seen.end(), false) == seen.end();
}

void ReadNvlink(const formats::TopoMatrix& matrix, Machine& machine, ImportFindings& findings) {
  machine.nvlink_joins_gpus = Joined(matrix);
  const std::vector<int> links = LinksOfGpus(matrix);
  if (*std::max_element(links.begin(), links.end()) == 0) return;
  SetLinks(links, machine.nvlink);
  const int count = machine.nvlink.links_per_gpu;
  machine.nvlink.generation = count == 18 ? 4 : count == 12 ? 3 : count == 6 ? 2 : 0;
  machine.nvlink.gbps_per_gpu = count * kNvlinkGbps;
  findings.notes.push_back(fmt::format(
      "{} shows {} NVLinks of each GPU and not how fast they are: taken for {} GB/s a GPU and direction{}",
      machine.source, count, machine.nvlink.gbps_per_gpu / 8,
      count == 18 ? ", as an H100 has (a B200 has twice that)" : ""));
  if (!machine.nvlink_joins_gpus) {
    findings.notes.push_back(machine.source +
                             ": not all GPUs reach each other over NVLink, so the node counts as "
                             "one without an NVLink domain");
  }
}

// The node's compute NICs in the order in which rails count them, as positions.
std::vector<std::size_t> ComputeNics(const topology::Node& node) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    if (node.nics[i].role == topology::NicRole::kCompute) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&node](std::size_t a, std::size_t b) {
    const topology::Nic &x = node.nics[a], &y = node.nics[b];
    const int rx = x.rail.value_or(topology::kMaxRail + 1), ry = y.rail.value_or(topology::kMaxRail + 1);
    return rx != ry ? rx < ry : CountsBefore(x.name, y.name);
  });
  return order;
}

// For each of the machine's NICs the node's, by name or else by order; nothing where neither tells.
std::vector<std::size_t> Match(const Machine& machine, const topology::Node& node, bool& by_order) {
  constexpr auto kNobody = std::size_t(-1);
  const std::vector<std::size_t> own = ComputeNics(node);
  std::vector<std::size_t> match(machine.nics.size(), kNobody);
  std::size_t named = 0;
  for (const std::size_t i : own) {
    const auto found = std::find_if(machine.nics.begin(), machine.nics.end(),
                                    [&](const MachineNic& nic) { return nic.name == node.nics[i].name; });
    if (found == machine.nics.end()) continue;
    match[std::size_t(found - machine.nics.begin())] = i;
    ++named;
  }
  if (named == own.size()) return match;
  std::vector<std::size_t> near;
  for (std::size_t i = 0; i < machine.nics.size(); ++i) {
    if (machine.nics[i].near) near.push_back(i);
  }
  if (near.size() != own.size()) return {};
  match.assign(machine.nics.size(), kNobody);
  for (std::size_t i = 0; i < near.size(); ++i) match[near[i]] = own[i];
  by_order = true;
  return match;
}

void AddPaths(const Machine& machine, const std::vector<std::size_t>& match, topology::Node& node) {
  for (std::size_t n = 0; n < match.size(); ++n) {
    if (match[n] == std::size_t(-1)) continue;
    node.nics[match[n]].numa = machine.nics[n].numa;
    if (node.nics[match[n]].pci.empty()) node.nics[match[n]].pci = machine.nics[n].pci;
  }
  for (std::size_t g = 0; g < machine.distances.size(); ++g) {
    PciDistance best = PciDistance::kSys;
    for (std::size_t n = 0; n < match.size(); ++n) {
      if (match[n] != std::size_t(-1)) best = std::min(best, machine.distances[g][n]);
    }
    for (std::size_t n = 0; n < match.size(); ++n) {
      if (match[n] == std::size_t(-1) || machine.distances[g][n] != best) continue;
      node.paths.push_back({machine.gpus[g].index, node.nics[match[n]].name, best});
    }
  }
  std::sort(node.paths.begin(), node.paths.end(), [](const auto& a, const auto& b) {
    return std::tie(a.gpu, a.distance, a.nic) < std::tie(b.gpu, b.distance, b.nic);
  });
}

}  // namespace

bool CountsBefore(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!digit(a[i]) || !digit(b[j])) {
      // As bytes: a char alone is signed on x86-64 and not on arm64, and names need not be ASCII.
      if (a[i] != b[j]) return std::char_traits<char>::lt(a[i], b[j]);
      ++i, ++j;
      continue;
    }
    std::size_t x = i, y = j;
    while (x < a.size() && a[x] == '0') ++x;
    while (y < b.size() && b[y] == '0') ++y;
    const std::size_t a0 = x, b0 = y;
    while (x < a.size() && digit(a[x])) ++x;
    while (y < b.size() && digit(b[y])) ++y;
    if (x - a0 != y - b0) return x - a0 < y - b0;
    if (const int order = a.substr(a0, x - a0).compare(b.substr(b0, y - b0)); order != 0) return order < 0;
    i = x, j = y;
  }
  if (i < a.size() || j < b.size()) return j < b.size();
  return a < b;  // equal but for leading zeros
}

base::Result<Machine> MachineFromNcclXml(const std::string& source, std::string_view text,
                                         ImportFindings& findings) {
  ASSIGN_OR_RETURN(const formats::NcclTopology topology, formats::ParseNcclXml(text));
  TRY(CheckSize(topology.gpus.size(), topology.nics.size()));
  Machine machine;
  machine.source = source;
  for (std::size_t g = 0; g < topology.gpus.size(); ++g) {
    topology::Gpu gpu;
    gpu.index = int(g);
    gpu.pci = topology.gpus[g].pci;
    gpu.numa = Numa(topology.gpus[g].numa);
    machine.gpus.push_back(std::move(gpu));
    auto& row = machine.distances.emplace_back();
    for (const formats::NcclNic& nic : topology.nics) row.push_back(formats::Distance(topology.gpus[g], nic));
  }
  for (const formats::NcclNic& nic : topology.nics) {
    machine.nics.push_back({nic.name, nic.pci, Numa(nic.numa), std::min(nic.gbps, kMaxGbps), false});
  }
  SettleNics(machine);
  ReadNvlink(topology, machine, findings);
  machine.numa_nodes = CountNuma(machine);
  return machine;
}

base::Result<Machine> MachineFromTopoMatrix(const std::string& source, std::string_view text,
                                            ImportFindings& findings) {
  ASSIGN_OR_RETURN(const formats::TopoMatrix matrix, formats::ParseTopoMatrix(text));
  TRY(CheckSize(matrix.gpus.size(), matrix.nics.size()));
  for (const std::string& problem : matrix.problems)
    findings.warnings.push_back(fmt::format("{}: {}", source, problem));
  Machine machine;
  machine.source = source;
  for (std::size_t g = 0; g < matrix.gpus.size(); ++g) {
    topology::Gpu gpu;
    gpu.index = int(g);
    gpu.numa = matrix.gpus[g].numa;
    machine.gpus.push_back(std::move(gpu));
    machine.distances.push_back(matrix.gpus[g].distances);
  }
  for (const std::string& nic : matrix.nics) machine.nics.push_back({nic, "", {}, 0, false});
  SettleNics(machine);
  ReadNvlink(matrix, machine, findings);
  machine.numa_nodes = CountNuma(machine);
  return machine;
}

Machine AssumedMachine(int gpus) {
  Machine machine;
  for (int g = 0; g < gpus; ++g) {
    machine.gpus.push_back({});
    machine.gpus.back().index = g;
  }
  machine.nvlink_joins_gpus = gpus > 1;
  return machine;
}

std::vector<topology::Nic> NicsOf(const Machine& machine, topology::Transport transport, int gbps) {
  std::vector<topology::Nic> nics;
  const auto add = [&](const std::string& name, int rate) {
    topology::Nic nic;
    nic.name = name;
    nic.transport = transport;
    nic.role = topology::NicRole::kCompute;
    nic.ports.emplace_back();
    nic.ports.front().state = topology::LinkState::kActive;
    nic.ports.front().rate_gbps = nic.ports.front().usable_gbps = rate > 0 ? rate : gbps;
    nics.push_back(std::move(nic));
  };
  for (const MachineNic& nic : machine.nics) {
    if (nic.near) add(nic.name, nic.gbps);
  }
  for (std::size_t g = 0; machine.nics.empty() && g < machine.gpus.size(); ++g)
    add(fmt::format("nic{}", g), 0);
  return nics;
}

void Furnish(const Machine& machine, topology::Node& node, ImportFindings& findings) {
  node.gpus = machine.gpus;
  node.nvlink = machine.nvlink;
  node.numa_nodes = machine.numa_nodes;
  if (machine.nvlink_joins_gpus && !node.nvlink_domain) {
    node.nvlink_domain = topology::NvlinkMembership{node.name, false};
  } else if (!machine.nvlink_joins_gpus && (!node.nvlink_domain || machine.gpus.size() > 1)) {
    // A GPU alone in its host says nothing against the NVLinks to other hosts that --nvlink-blocks speaks of.
    node.nvlink_domain = topology::Missing::kNotApplicable;
  }
  if (machine.nics.empty()) return;
  bool by_order = false;
  const std::vector<std::size_t> match = Match(machine, node, by_order);
  if (match.empty()) {
    findings.warnings.push_back(
        fmt::format("{}: its {} compute NICs are not those of {}, by name or by number: how near each GPU is "
                    "to them is unknown",
                    node.name, ComputeNics(node).size(), machine.source));
    return;
  }
  if (by_order) {
    const std::string note = fmt::format(
        "NICs of the hosts are matched with those of {} in their order: they are "
        "called otherwise there",
        machine.source);
    if (std::find(findings.notes.begin(), findings.notes.end(), note) == findings.notes.end()) {
      findings.notes.push_back(note);
    }
  }
  AddPaths(machine, match, node);
}

}  // namespace heddle::cli
