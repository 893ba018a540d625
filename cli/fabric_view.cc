#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "cli/advice.h"
#include "cli/topology_view.h"

namespace heddle::cli {
namespace {

constexpr std::size_t kMaxFaults = 20;

std::string UnitName(const topology::Fabric& fabric, topology::UnitId unit) {
  return unit == topology::kNone ? "(no unit)" : fabric.units[static_cast<std::size_t>(unit)].name;
}

std::string HeadLine(const topology::Fabric& fabric) {
  return fmt::format("Fabric {}: {}, {}, {}, {}, {} {}, {} {} above, {}\n", WithoutControls(Title(fabric)),
                     topology::ShapeName(fabric.shape), base::Counted(fabric.nodes.size(), "node"),
                     base::Counted(fabric.gpu_count(), "GPU"), base::Counted(fabric.rails, "rail"),
                     fabric.leaves.size(), fabric.leaves.size() == 1 ? "leaf" : "leaves",
                     fabric.spines.size(), fabric.spines.size() == 1 ? "switch" : "switches",
                     base::Counted(fabric.domains.size(), "NVLink domain"));
}

// How a leaf stands, by the host ports that belong on it. The signs are those of the fabric page.
enum class Mark : std::uint8_t { kNone, kUnsure, kFlawed, kUnusable };

std::string_view SignOf(Mark mark) {
  switch (mark) {
    case Mark::kUnusable:
      return "×";
    case Mark::kFlawed:
      return "!";
    case Mark::kUnsure:
      return "?";
    case Mark::kNone:
      break;
  }
  return "";
}

struct Standing {
  int ports = 0, unusable = 0;
  bool flawed = false;  // a slow port, or a cable that belongs elsewhere
  bool unsure = false;  // a cable, or a port that is down, of which nobody can tell
  Mark mark() const {
    if (ports > 0 && unusable == ports) return Mark::kUnusable;
    if (flawed || unusable > 0) return Mark::kFlawed;
    return unsure ? Mark::kUnsure : Mark::kNone;
  }
};

struct Standings {
  std::vector<Standing> leaves;  // as Fabric::leaves
  // A rail and the unit whose leaf for it has no name any more: all its ports are down, and no neighbour is heard.
  std::map<std::pair<int, topology::UnitId>, Standing> nameless;
};

bool IsUnusable(const topology::NicPort& port) {
  return port.state == topology::LinkState::kDown || (port.rate_gbps > 0 && port.usable_gbps == 0);
}

// Where the port is cabled to, or, as one that is down hears no neighbour, the leaves of its unit where it may belong.
std::vector<topology::LeafId> LeavesOf(const topology::Fabric& fabric, const topology::FabricNode& node,
                                       const topology::Nic& nic, const topology::NicPort& port) {
  std::vector<topology::LeafId> found;
  if (port.leaf_port) {
    const topology::LeafId leaf = fabric.FindLeaf(port.leaf_port->leaf);
    if (leaf != topology::kNone) found.push_back(leaf);
    return found;
  }
  if (node.unit == topology::kNone || !nic.rail) return found;
  for (const topology::LeafId id : fabric.units[static_cast<std::size_t>(node.unit)].leaves) {
    const topology::Leaf& leaf = fabric.leaves[static_cast<std::size_t>(id)];
    if (leaf.plane == port.plane && (!leaf.rail || *leaf.rail == *nic.rail)) found.push_back(id);
  }
  return found;
}

// `fastest_gbps`: of the node's compute ports, which are alike.
void CountPort(const topology::Fabric& fabric, const topology::FabricNode& node, const topology::Nic& nic,
               const topology::NicPort& port, int fastest_gbps, Standings& standings) {
  const bool unusable = IsUnusable(port);
  const bool slow = !unusable && (port.usable_gbps < port.rate_gbps || port.usable_gbps < fastest_gbps ||
                                  port.fault != topology::LinkFault::kNone);
  const std::vector<topology::LeafId> leaves = LeavesOf(fabric, node, nic, port);
  if (leaves.size() > 1) {
    for (const topology::LeafId id : leaves) {
      Standing& leaf = standings.leaves[static_cast<std::size_t>(id)];
      leaf.unsure = leaf.unsure || unusable || slow;
    }
    return;
  }
  if (leaves.empty() && (node.unit == topology::kNone || !nic.rail)) return;
  Standing& place = leaves.empty() ? standings.nameless[{*nic.rail, node.unit}]
                                   : standings.leaves[static_cast<std::size_t>(leaves.front())];
  ++place.ports;
  if (unusable) ++place.unusable;
  place.flawed = place.flawed || slow;
}

Standings StandingsOf(const topology::Fabric& fabric) {
  Standings standings;
  standings.leaves.resize(fabric.leaves.size());
  for (const topology::FabricNode& node : fabric.nodes) {
    int fastest_gbps = 0;
    for (const topology::Nic& nic : node.node.nics) {
      if (nic.role != topology::NicRole::kCompute) continue;
      for (const topology::NicPort& port : nic.ports) fastest_gbps = std::max(fastest_gbps, port.usable_gbps);
    }
    for (const topology::Nic& nic : node.node.nics) {
      if (nic.role != topology::NicRole::kCompute) continue;
      for (const topology::NicPort& port : nic.ports)
        CountPort(fabric, node, nic, port, fastest_gbps, standings);
    }
  }
  for (const topology::CablingFault& fault : fabric.faults) {
    const topology::LeafId id = fabric.FindLeaf(fault.seen.leaf);
    if (id == topology::kNone) continue;
    Standing& leaf = standings.leaves[static_cast<std::size_t>(id)];
    (fault.ambiguous ? leaf.unsure : leaf.flawed) = true;
  }
  for (const topology::Leaf& leaf : fabric.leaves) {
    if (leaf.rail) standings.nameless.erase({*leaf.rail, leaf.unit});
  }
  std::erase_if(standings.nameless, [](const auto& place) { return place.second.mark() != Mark::kUnusable; });
  return standings;
}

Cell MarkedCell(const std::string& name, Mark mark) {
  return {name + std::string(SignOf(mark)), mark >= Mark::kFlawed ? Colour::kBad : Colour::kNone};
}

constexpr std::size_t kRailWidth = 4;  // of "RAIL"
constexpr std::size_t kGap = 2;        // between columns

// A scalable unit: by rail its leaves, one for each plane, in as many lines as the terminal makes of them.
struct UnitColumn {
  std::string name;
  std::map<int, std::vector<Cell>> leaves;

  std::size_t width() const {
    std::size_t widest = DisplayWidth(name);
    for (const auto& [rail, lines] : leaves) {
      for (const Cell& line : lines) widest = std::max(widest, DisplayWidth(line.text));
    }
    return widest;
  }
};

// Side by side as far as they fit into `room`; 0 = no end.
std::vector<Cell> Lines(const std::vector<Cell>& leaves, std::size_t room) {
  std::vector<Cell> lines;
  for (const Cell& leaf : leaves) {
    const bool beside = !lines.empty() &&
                        (room == 0 || DisplayWidth(lines.back().text) + 1 + DisplayWidth(leaf.text) <= room);
    if (!beside) {
      lines.push_back(leaf);
      continue;
    }
    lines.back().text += " " + leaf.text;
    if (leaf.colour != Colour::kNone) lines.back().colour = leaf.colour;
  }
  return lines;
}

std::vector<UnitColumn> ColumnsOf(const topology::Fabric& fabric, const Standings& standings,
                                  const Style& style) {
  std::map<topology::UnitId, UnitColumn> units;
  for (std::size_t l = 0; l < fabric.leaves.size(); ++l) {
    const topology::Leaf& leaf = fabric.leaves[l];
    if (leaf.rail)
      units[leaf.unit].leaves[*leaf.rail].push_back(MarkedCell(leaf.name, standings.leaves[l].mark()));
  }
  for (const auto& [place, standing] : standings.nameless)
    units[place.second].leaves[place.first].push_back(MarkedCell("", standing.mark()));
  const std::size_t room =
      style.width == 0 ? 0 : std::max(style.width, kRailWidth + kGap + 1) - kRailWidth - kGap;
  std::vector<UnitColumn> columns;
  for (auto& [unit, column] : units) {
    column.name = UnitName(fabric, unit);
    for (auto& [rail, leaves] : column.leaves) leaves = Lines(leaves, room);
    columns.push_back(std::move(column));
  }
  return columns;
}

std::string BlockText(const std::set<int>& rails, const std::vector<UnitColumn>& block, const Style& style) {
  std::vector<std::string> header{"RAIL"};
  for (const UnitColumn& column : block) header.push_back(column.name);
  Table table(std::move(header));
  for (const int rail : rails) {
    std::size_t lines = 1;
    for (const UnitColumn& column : block) {
      const auto found = column.leaves.find(rail);
      if (found != column.leaves.end()) lines = std::max(lines, found->second.size());
    }
    for (std::size_t line = 0; line < lines; ++line) {
      std::vector<Cell> row{std::to_string(rail)};
      for (const UnitColumn& column : block) {
        const auto found = column.leaves.find(rail);
        const bool here = found != column.leaves.end() && line < found->second.size();
        row.push_back(here ? found->second[line] : Cell("-"));
      }
      table.Add(std::move(row));
    }
  }
  return "\n" + table.Format(style);
}

// Rails as rows, scalable units as columns, as many beside each other as the terminal has room for: the others stand
// below, with the rails again.
std::string RailTable(const topology::Fabric& fabric, const Standings& standings, const Style& style) {
  std::string text;
  std::set<int> rails;
  std::vector<UnitColumn> columns = ColumnsOf(fabric, standings, style);
  for (const UnitColumn& column : columns) {
    for (const auto& [rail, leaves] : column.leaves) rails.insert(rail);
  }
  std::vector<UnitColumn> block;
  std::size_t width = kRailWidth;
  for (UnitColumn& column : columns) {
    const std::size_t more = kGap + column.width();
    if (!block.empty() && style.width > 0 && width + more > style.width) {
      text += BlockText(rails, block, style);
      block.clear();
      width = kRailWidth;
    }
    width += more;
    block.push_back(std::move(column));
  }
  return block.empty() ? text : text + BlockText(rails, block, style);
}

// Leaves that serve no single rail: plain ToRs, and those nobody could place.
std::string OtherLeaves(const topology::Fabric& fabric, const Standings& standings, const Style& style) {
  Table table({"LEAF", "RAIL", "UNIT", "DOWN Gb/s", "UP Gb/s"});
  for (std::size_t l = 0; l < fabric.leaves.size(); ++l) {
    const topology::Leaf& leaf = fabric.leaves[l];
    if (leaf.rail) continue;
    table.Add({MarkedCell(leaf.name, standings.leaves[l].mark()),
               std::string(topology::MissingName(leaf.rail.missing())), UnitName(fabric, leaf.unit),
               std::to_string(leaf.down_gbps), std::to_string(leaf.up_gbps)});
  }
  return table.empty() ? "" : "\n" + table.Format(style);
}

// What the signs in the tables mean, with how many leaves have them.
std::string Legend(const Standings& standings) {
  std::map<Mark, std::size_t> counts;
  for (const Standing& leaf : standings.leaves) ++counts[leaf.mark()];
  for (const auto& [place, standing] : standings.nameless) ++counts[standing.mark()];
  std::string text;
  for (const auto& [mark, words] :
       {std::pair(Mark::kUnusable, "no host port can be used"),
        std::pair(Mark::kFlawed, "a host port is down or slow, or a cable belongs elsewhere"),
        std::pair(Mark::kUnsure, "nobody can tell whether a cable or a port that is down belongs there")}) {
    const std::size_t count = counts[mark];
    if (count > 0)
      text += fmt::format("{} {} {}: {}\n", SignOf(mark), count, count == 1 ? "leaf" : "leaves", words);
  }
  if (text.empty()) return "";
  return "\n" + text + "`cables --problems` names the ports, `topology NODE` how fast each is\n";
}

std::string Domains(const topology::Fabric& fabric, const Style& style) {
  Table table({"NVLINK DOMAIN", "NODES", "GPUS"});
  for (const topology::NvlinkDomain& domain : fabric.domains) {
    if (!domain.spans_nodes) continue;
    table.Add({domain.id, std::to_string(domain.nodes.size()), std::to_string(domain.gpus)});
  }
  return table.empty() ? "" : "\n" + table.Format(style);
}

}  // namespace

std::string FabricText(const topology::Fabric& fabric, const Style& style) {
  const Standings standings = StandingsOf(fabric);
  std::string text = HeadLine(fabric) + RailTable(fabric, standings, style) +
                     OtherLeaves(fabric, standings, style) + Legend(standings) + Domains(fabric, style);
  const auto ambiguous = std::size_t(std::count_if(fabric.faults.begin(), fabric.faults.end(),
                                                   [](const auto& fault) { return fault.ambiguous; }));
  if (!fabric.faults.empty()) {
    const std::size_t certain = fabric.faults.size() - ambiguous;
    std::string head = fmt::format("{} cabling faults", certain);
    if (ambiguous > 0) head += fmt::format(", {} cables of which nobody can tell", ambiguous);
    text += "\n" + style.Paint(head, certain > 0 ? Colour::kBad : Colour::kNone) + "\n";
  }
  for (std::size_t i = 0; i < std::min(fabric.faults.size(), kMaxFaults); ++i) {
    text += "  " + WithoutControls(fabric.faults[i].sentence) + "\n";
  }
  if (fabric.faults.size() > kMaxFaults)
    text += fmt::format("  and {} more\n", fabric.faults.size() - kMaxFaults);
  for (const std::string& sentence : fabric.assumptions)
    text += "\nAssumed: " + WithoutControls(sentence) + "\n";
  return ProseText(text, style);
}

}  // namespace heddle::cli
