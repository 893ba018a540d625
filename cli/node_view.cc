#include <fmt/format.h>

#include <algorithm>

#include "cli/advice.h"
#include "cli/topology_view.h"
#include "crds/gpus_unread.h"

namespace heddle::cli {
namespace {

using topology::Fact;

std::string Text(const Fact<int>& fact) {
  return fact ? std::to_string(*fact) : std::string(topology::MissingName(fact.missing()));
}

// How it is, and where its cable ends.
std::vector<std::string> PortParts(const topology::NicPort& port, const Style& style) {
  const bool good = port.state == topology::LinkState::kActive && port.usable_gbps >= port.rate_gbps;
  std::string text = fmt::format("{} {} Gb/s", topology::LinkStateName(port.state), port.usable_gbps);
  if (port.usable_gbps < port.rate_gbps) text += fmt::format(" of {}", port.rate_gbps);
  if (port.state != topology::LinkState::kDown && port.rate_gbps == 0) text += " (its rate is unknown)";
  return {style.Paint(text, good ? Colour::kGood : Colour::kBad),
          port.leaf_port ? fmt::format("leaf {} port {}", WithoutControls(port.leaf_port->leaf),
                                       WithoutControls(port.leaf_port->port))
                         : fmt::format("leaf {}", topology::MissingName(port.leaf_port.missing()))};
}

// That it is congested, and by what; empty = it is not.
std::string CongestionText(const crds::NodeTopologyStatus& status, const topology::Nic& nic, int port) {
  const auto found =
      std::find_if(status.congestion.begin(), status.congestion.end(),
                   [&](const crds::CongestedPort& one) { return one.nic == nic.name && one.port == port; });
  if (found == status.congestion.end()) return {};
  return fmt::format("congested since {}: {}", base::FormatTime(found->since),
                     WithoutControls(found->evidence));
}

std::vector<std::string> NicParts(const crds::NodeTopologyStatus& status, const topology::Nic& nic,
                                  const Style& style) {
  std::vector<std::string> parts{WithoutControls(nic.name), "rail " + Text(nic.rail)};
  for (const topology::NicPort& port : nic.ports) {
    std::vector<std::string> its = PortParts(port, style);
    if (std::string congestion = CongestionText(status, nic, port.number); !congestion.empty())
      its.push_back(std::move(congestion));
    // Of several each stays together.
    if (nic.ports.size() > 1) its = {fmt::format("port {}: {}", port.number, fmt::join(its, "  "))};
    parts.insert(parts.end(), its.begin(), its.end());
  }
  return parts;
}

std::vector<std::string> GpuParts(const topology::NvLink& nvlink, const topology::Gpu& gpu,
                                  const Style& style) {
  std::vector<std::string> parts{fmt::format("GPU {}", gpu.index), WithoutControls(gpu.model),
                                 "NUMA " + Text(gpu.numa), WithoutControls(gpu.pci)};
  if (!gpu.healthy)
    parts.push_back(style.Paint("unhealthy: " + WithoutControls(gpu.unhealthy_reason), Colour::kBad));
  if (gpu.nic_gone)
    parts.push_back(style.Paint(fmt::format("a NIC on rail {} is gone", gpu.nic_gone->rail), Colour::kBad));
  if (const int usable = nvlink.usable_gbps(gpu.index); usable < nvlink.gbps_per_gpu) {
    parts.push_back(
        style.Paint(fmt::format("NVLink {} Gb/s of {}", usable, nvlink.gbps_per_gpu), Colour::kBad));
  }
  return parts;
}

std::string HeadLine(const topology::Node& node, const Style& style) {
  std::string text =
      fmt::format("{}, {} GPUs", node.machine.empty() ? "unknown machine" : WithoutControls(node.machine),
                  crds::GpusUnread(node) ? "?" : std::to_string(node.gpus.size()));
  if (node.nvlink.links_per_gpu > 0) {
    text += fmt::format(", NVLink {} Gb/s a GPU",
                        node.nvlink.gbps_per_gpu > 0 ? std::to_string(node.nvlink.gbps_per_gpu) : "?");
  }
  if (!node.nvswitches.empty()) text += fmt::format(", {} NVSwitches", node.nvswitches.size());
  text += ", NVLink domain ";
  text += node.nvlink_domain ? WithoutControls(node.nvlink_domain->id)
                             : std::string(topology::MissingName(node.nvlink_domain.missing()));
  return PartsText("", "  ", {WithoutControls(node.name), text}, style);
}

void AddGpu(const crds::NodeTopologyStatus& status, const topology::Gpu& gpu, bool last, const Style& style,
            std::string& text) {
  const topology::Node& node = status.node;
  std::vector<const topology::GpuNicPath*> paths;
  for (const topology::GpuNicPath& path : node.paths) {
    if (path.gpu == gpu.index && node.FindNic(path.nic) != nullptr) paths.push_back(&path);
  }
  const std::string trunk = last ? "   " : "│  ";
  text += PartsText(last ? "└─ " : "├─ ", trunk + (paths.empty() ? "   " : "│  "),
                    GpuParts(node.nvlink, gpu, style), style);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const bool last_nic = i + 1 == paths.size();
    std::vector<std::string> parts = NicParts(status, *node.FindNic(paths[i]->nic), style);
    parts.insert(parts.begin(), std::string(topology::PciDistanceName(paths[i]->distance)));
    text += PartsText(trunk + (last_nic ? "└─ " : "├─ "), trunk + (last_nic ? "   " : "│  "), parts, style);
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
    // Nodes on paper say nothing of it, which is nothing wrong.
    const Colour colour = ready == nullptr ? Colour::kNone : is_ready ? Colour::kGood : Colour::kBad;
    table.Add({topology.name,
               {word, colour},
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
  std::string text = HeadLine(node, style);
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    AddGpu(topology.status, node.gpus[i], i + 1 == node.gpus.size(), style, text);
  }
  std::string others;
  for (const topology::Nic& nic : node.nics) {
    const bool shown = std::any_of(node.paths.begin(), node.paths.end(),
                                   [&](const topology::GpuNicPath& path) { return path.nic == nic.name; });
    if (shown) continue;
    std::vector<std::string> parts{
        fmt::format("{} ({})", WithoutControls(nic.name), topology::NicRoleName(nic.role))};
    const std::vector<std::string> its =
        nic.ports.empty() ? std::vector<std::string>{"no port"} : PortParts(nic.ports.front(), style);
    parts.insert(parts.end(), its.begin(), its.end());
    for (const topology::NicPort& port : nic.ports) {
      const std::string congestion = CongestionText(topology.status, nic, port.number);
      if (congestion.empty()) continue;
      // Of several only the first has its state here, so nothing beside this says which it is.
      const bool one = nic.ports.size() == 1;
      parts.push_back(one ? congestion : fmt::format("port {} {}", port.number, congestion));
    }
    others += PartsText("  ", "    ", parts, style);
  }
  if (!others.empty()) text += "Other NICs\n" + others;
  for (const std::string& sentence : topology::Check(node)) {
    text += ProseText(style.Paint("Contradiction: " + WithoutControls(sentence), Colour::kBad) + "\n", style);
  }
  for (const crds::Condition& condition : topology.status.conditions) {
    if (condition.type == crds::kReady && condition.status != crds::ConditionStatus::kTrue) {
      text += ProseText(style.Paint("Not ready: " + WithoutControls(condition.message), Colour::kBad) + "\n",
                        style);
    }
  }
  return text;
}

}  // namespace heddle::cli
