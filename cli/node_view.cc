#include <fmt/format.h>

#include <algorithm>

#include "cli/topology_view.h"

namespace heddle::cli {
namespace {

using topology::Fact;

std::string Text(const Fact<int>& fact) {
  return fact ? std::to_string(*fact) : std::string(topology::MissingName(fact.missing()));
}

std::string PortText(const topology::NicPort& port, const Style& style) {
  const bool good = port.state == topology::LinkState::kActive && port.usable_gbps >= port.rate_gbps;
  std::string text = fmt::format("{} {} Gb/s", topology::LinkStateName(port.state), port.usable_gbps);
  if (port.usable_gbps < port.rate_gbps) text += fmt::format(" of {}", port.rate_gbps);
  if (port.state != topology::LinkState::kDown && port.rate_gbps == 0) text += " (its rate is unknown)";
  text = style.Paint(text, good ? Colour::kGood : Colour::kBad);
  if (port.leaf_port) {
    text +=
        fmt::format("  leaf {} port {}", Printable(port.leaf_port->leaf), Printable(port.leaf_port->port));
  } else {
    text += fmt::format("  leaf {}", topology::MissingName(port.leaf_port.missing()));
  }
  return text;
}

std::string NicText(const topology::Nic& nic, const Style& style) {
  std::string text = fmt::format("{}  rail {}", Printable(nic.name), Text(nic.rail));
  for (const topology::NicPort& port : nic.ports) {
    text += nic.ports.size() > 1 ? fmt::format("  port {}: ", port.number) : "  ";
    text += PortText(port, style);
  }
  return text;
}

std::string GpuText(const topology::Gpu& gpu, const Style& style) {
  std::string text = fmt::format("GPU {}  {}  NUMA {}  {}", gpu.index, Printable(gpu.model), Text(gpu.numa),
                                 Printable(gpu.pci));
  if (!gpu.healthy) text += "  " + style.Paint("unhealthy: " + Printable(gpu.unhealthy_reason), Colour::kBad);
  return text;
}

std::string HeadLine(const topology::Node& node) {
  std::string text =
      fmt::format("{}  {}, {} GPUs", Printable(node.name),
                  node.machine.empty() ? "unknown machine" : Printable(node.machine), node.gpus.size());
  if (node.nvlink.generation > 0) text += fmt::format(", NVLink {} Gb/s a GPU", node.nvlink.gbps_per_gpu);
  if (!node.nvswitches.empty()) text += fmt::format(", {} NVSwitches", node.nvswitches.size());
  text += ", NVLink domain ";
  text += node.nvlink_domain ? Printable(node.nvlink_domain->id)
                             : std::string(topology::MissingName(node.nvlink_domain.missing()));
  return text + "\n";
}

void AddGpu(const topology::Node& node, const topology::Gpu& gpu, bool last, const Style& style,
            std::string& text) {
  text += (last ? "└─ " : "├─ ") + GpuText(gpu, style) + "\n";
  std::vector<const topology::GpuNicPath*> paths;
  for (const topology::GpuNicPath& path : node.paths) {
    if (path.gpu == gpu.index && node.FindNic(path.nic) != nullptr) paths.push_back(&path);
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    text += fmt::format("{}  {} {}  {}\n", last ? " " : "│", i + 1 == paths.size() ? "└─" : "├─",
                        topology::PciDistanceName(paths[i]->distance),
                        NicText(*node.FindNic(paths[i]->nic), style));
  }
}

}  // namespace

std::string NodeTable(const std::vector<crds::NodeTopology>& topologies, const Style& style) {
  Table table({"NODE", "READY", "MACHINE", "GPUS", "DOMAIN", "RAILS", "LEAF", "TRANSPORT"});
  for (const crds::NodeTopology& topology : topologies) {
    const crds::NodeSummary summary = crds::Summarise(topology.status.node);
    const crds::Condition* ready = crds::FindCondition(topology.status.conditions, crds::kReady);
    const bool is_ready = ready != nullptr && ready->status == crds::ConditionStatus::kTrue;
    const std::string word = ready == nullptr ? "?" : is_ready ? "True" : ready->reason;
    table.Add({topology.name,
               {word, is_ready ? Colour::kGood : Colour::kBad},
               summary.machine,
               summary.gpus,
               summary.nvlink_domain,
               summary.rails,
               summary.leaf,
               summary.transport});
  }
  return table.Format(style);
}

std::string NodeTree(const crds::NodeTopology& topology, const Style& style) {
  const topology::Node& node = topology.status.node;
  std::string text = HeadLine(node);
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    AddGpu(node, node.gpus[i], i + 1 == node.gpus.size(), style, text);
  }
  std::string others;
  for (const topology::Nic& nic : node.nics) {
    const bool shown = std::any_of(node.paths.begin(), node.paths.end(),
                                   [&](const topology::GpuNicPath& path) { return path.nic == nic.name; });
    if (shown) continue;
    others += fmt::format("  {} ({})  {}\n", Printable(nic.name), topology::NicRoleName(nic.role),
                          nic.ports.empty() ? "no port" : PortText(nic.ports.front(), style));
  }
  if (!others.empty()) text += "Other NICs\n" + others;
  for (const std::string& sentence : topology::Check(node)) {
    text += style.Paint("Contradiction: " + Printable(sentence), Colour::kBad) + "\n";
  }
  for (const crds::Condition& condition : topology.status.conditions) {
    if (condition.type == crds::kReady && condition.status != crds::ConditionStatus::kTrue) {
      text += style.Paint("Not ready: " + Printable(condition.message), Colour::kBad) + "\n";
    }
  }
  return text;
}

}  // namespace heddle::cli
