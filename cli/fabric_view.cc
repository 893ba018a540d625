#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/advice.h"
#include "cli/topology_view.h"

namespace heddle::cli {
namespace {

constexpr std::size_t kMaxFaults = 20;

std::string UnitName(const topology::Fabric& fabric, topology::UnitId unit) {
  return unit == topology::kNone ? "(no unit)" : fabric.units[static_cast<std::size_t>(unit)].name;
}

std::string HeadLine(const topology::Fabric& fabric) {
  return fmt::format(
      "Fabric {}: {}, {} nodes, {} GPUs, {} rails, {} leaves, {} switches above, {} NVLink domains\n",
      Printable(Title(fabric)), topology::ShapeName(fabric.shape), fabric.nodes.size(), fabric.gpu_count(),
      fabric.rails, fabric.leaves.size(), fabric.spines.size(), fabric.domains.size());
}

// Rails as rows, scalable units as columns, leaves (one for each plane) in the cells.
std::string RailTable(const topology::Fabric& fabric, const Style& style) {
  std::map<int, std::map<topology::UnitId, std::string>> rows;
  std::map<topology::UnitId, bool> units;
  for (const topology::Leaf& leaf : fabric.leaves) {
    if (!leaf.rail) continue;
    std::string& cell = rows[*leaf.rail][leaf.unit];
    cell += (cell.empty() ? "" : " ") + leaf.name;
    units[leaf.unit] = true;
  }
  if (rows.empty()) return "";
  std::vector<std::string> header{"RAIL"};
  for (const auto& [unit, here] : units) header.push_back(UnitName(fabric, unit));
  Table table(std::move(header));
  for (const auto& [rail, cells] : rows) {
    std::vector<Cell> row{std::to_string(rail)};
    for (const auto& [unit, here] : units) row.emplace_back(cells.contains(unit) ? cells.at(unit) : "-");
    table.Add(std::move(row));
  }
  return "\n" + table.Format(style);
}

// Leaves that serve no single rail: plain ToRs, and those nobody could place.
std::string OtherLeaves(const topology::Fabric& fabric, const Style& style) {
  Table table({"LEAF", "RAIL", "UNIT", "DOWN Gb/s", "UP Gb/s"});
  for (const topology::Leaf& leaf : fabric.leaves) {
    if (leaf.rail) continue;
    table.Add({leaf.name, std::string(topology::MissingName(leaf.rail.missing())),
               UnitName(fabric, leaf.unit), std::to_string(leaf.down_gbps), std::to_string(leaf.up_gbps)});
  }
  return table.empty() ? "" : "\n" + table.Format(style);
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
  std::string text =
      HeadLine(fabric) + RailTable(fabric, style) + OtherLeaves(fabric, style) + Domains(fabric, style);
  const auto ambiguous = std::size_t(std::count_if(fabric.faults.begin(), fabric.faults.end(),
                                                   [](const auto& fault) { return fault.ambiguous; }));
  if (!fabric.faults.empty()) {
    const std::size_t certain = fabric.faults.size() - ambiguous;
    std::string head = fmt::format("{} cabling faults", certain);
    if (ambiguous > 0) head += fmt::format(", {} cables of which nobody can tell", ambiguous);
    text += "\n" + style.Paint(head, certain > 0 ? Colour::kBad : Colour::kNone) + "\n";
  }
  for (std::size_t i = 0; i < std::min(fabric.faults.size(), kMaxFaults); ++i) {
    text += "  " + Printable(fabric.faults[i].sentence) + "\n";
  }
  if (fabric.faults.size() > kMaxFaults)
    text += fmt::format("  and {} more\n", fabric.faults.size() - kMaxFaults);
  for (const std::string& sentence : fabric.assumptions) text += "\nAssumed: " + Printable(sentence) + "\n";
  return ProseText(text, style);
}

}  // namespace heddle::cli
