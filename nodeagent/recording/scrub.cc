#include "nodeagent/recording/scrub.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "formats/ib_neighbours.h"
#include "formats/lldp.h"
#include "formats/scanner.h"
#include "nodeagent/assembly/identity.h"
#include "nodeagent/gpu/probe.h"
#include "nodeagent/leaf/leaf_counts.h"
#include "nodeagent/nic/plane.h"
#include "nodeagent/recording/identifiers.h"

namespace heddle::nodeagent {
namespace {

constexpr std::size_t kConfigBytes = 256;

// Whole files that are one identifier, by their name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kNameFiles{
    {{"board_id", "board"},
     {"serial_number", "serial"},
     {"product_serial", "serial"},
     {"board_serial", "serial"},
     {"chassis_serial", "serial"},
     {"board_asset_tag", "tag"},
     {"chassis_asset_tag", "tag"},
     {"product_sku", "sku"},
     {"hca_serial", "serial"}}};

std::string_view LastPart(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

class Scrubber {
 public:
  explicit Scrubber(const RecordedFiles& recorded) : recorded_(recorded) {}

  RecordedFiles Run() {
    for (const auto& [path, content] : recorded_.files) {
      identifiers_.Learn(path);
      identifiers_.Learn(content);
    }
    for (const auto& [path, target] : recorded_.links) {
      identifiers_.Learn(path);
      identifiers_.Learn(target);
    }
    LearnHost();
    RecordedFiles clean;
    for (const auto& [path, content] : recorded_.files)
      clean.files.emplace(identifiers_.Replace(path), Content(path, content));
    for (const auto& [path, target] : recorded_.links)
      clean.links.emplace(identifiers_.Replace(path), identifiers_.Replace(target));
    for (const std::string& path : recorded_.folders) clean.folders.insert(identifiers_.Replace(path));
    return clean;
  }

 private:
  // This host is number one.
  void LearnHost() {
    const auto machine = recorded_.files.find("machine.yaml");
    if (machine == recorded_.files.end()) return;
    if (const auto identity = ParseMachineYaml(machine->second)) {
      host_ = identity->node;
      (void)identifiers_.Name("host", host_);
    }
  }

  std::string Content(std::string_view path, const std::string& content) {
    const std::string_view name = LastPart(path);
    if (path == "machine.yaml") return MachineYaml(content);
    if (path == "nvml.yaml") return NvmlYaml(content);
    if (path == "lldp.json") return Lldp(content);
    if (path == "ib.txt") return IbText(content);
    if (path == "labels.txt") return Labels(content);
    if (path == kLeafCountersFile) return LeafCounters(content);
    if (name == "vpd") return content.find("SW_MNG") == std::string::npos ? std::string() : "SW_MNG";
    if (name == "config") return content.substr(0, kConfigBytes);
    if (name == "node_desc") return NodeDescription(path, content);
    if (name == "unique_id" || name == "xgmi_hive_id" || name == "xgmi_device_id") return ChipFile(content);
    if (path.find("kfd/topology/nodes/") != std::string_view::npos && name == "properties")
      return KfdProperties(content);
    for (const auto& [file, kind] : kNameFiles) {
      if (file == name) return WithNewline(identifiers_.Name(kind, Trimmed(content)), content);
    }
    return identifiers_.Replace(content);
  }

  static std::string WithNewline(std::string text, std::string_view like) {
    if (like.ends_with('\n')) text += '\n';
    return text;
  }

  std::string MachineYaml(const std::string& content) {
    auto identity = ParseMachineYaml(content);
    if (!identity) return {};
    identity->node = identifiers_.Name("host", identity->node);
    identity->site = identifiers_.Name("site", identity->site);
    identity->product = WithoutHost(identity->product);
    return FormatMachineYaml(*identity);
  }

  std::string NvmlYaml(const std::string& content) {
    GpuReadings readings = ParseNvmlYaml(content);
    for (GpuReading& gpu : readings.gpus) {
      gpu.uuid = identifiers_.Replace(gpu.uuid);
      gpu.failure = WithoutHost(identifiers_.Replace(gpu.failure));
      gpu.fabric.cluster_uuid = identifiers_.Replace(gpu.fabric.cluster_uuid);
    }
    for (std::string& problem : readings.problems) problem = WithoutHost(identifiers_.Replace(problem));
    readings.absent = WithoutHost(identifiers_.Replace(readings.absent));
    return FormatNvmlYaml(readings);
  }

  // The plane that a leaf's name tells stays in it.
  std::string Switch(const std::string& name) {
    std::string other = identifiers_.Name("switch", name);
    if (const auto plane = PlaneOfLeaf(name)) other += fmt::format("-p{}", *plane);
    return other;
  }

  std::string Lldp(const std::string& content) {
    auto heard = formats::ParseLldp(content);
    if (!heard) return {};
    formats::LldpNeighbours clean;
    for (auto& [netdev, neighbours] : *heard) {
      for (formats::LldpNeighbour& neighbour : neighbours) {
        neighbour.chassis_id = neighbour.chassis_type == "mac" ? identifiers_.Replace(neighbour.chassis_id)
                                                               : Switch(neighbour.chassis_id);
        neighbour.system_name = Switch(neighbour.system_name);
        neighbour.port_id = WithoutHost(identifiers_.Replace(neighbour.port_id));
        neighbour.port_description.clear();
      }
      clean[identifiers_.Replace(netdev)] = std::move(neighbours);
    }
    return formats::FormatLldp(clean);
  }

  std::string IbText(const std::string& content) {
    formats::IbNeighbours read = formats::ParseIbNeighbours(content);
    for (formats::IbNeighbour& entry : read.entries) {
      entry.device = identifiers_.Replace(entry.device);
      // By its default description a switch is not known, but by its GUID: that stays so.
      const bool by_guid = formats::IbSwitchName(entry.description, entry.guid) == entry.guid;
      entry.guid = identifiers_.Replace(entry.guid);
      switch (entry.kind) {
        case formats::IbNodeKind::kNone:
          entry.description = WithoutHost(identifiers_.Replace(entry.description));  // why nobody answered
          break;
        case formats::IbNodeKind::kChannelAdapter:
          entry.description = identifiers_.Name("host", entry.description);
          break;
        default:
          entry.description = by_guid ? std::string() : Switch(entry.description);
      }
    }
    return formats::FormatIbNeighbours(read.entries);
  }

  std::string LeafCounters(const std::string& content) {
    std::vector<LeafCounts> ports = ParseLeafCounts(content);
    for (LeafCounts& port : ports) {
      const std::string name = port.leaf,
                        other = name == port.guid ? identifiers_.Replace(name) : Switch(name);
      port.device = identifiers_.Replace(port.device);
      port.guid = identifiers_.Replace(port.guid);
      port.leaf = other;
      // The sentence begins with the switch, where it knows it.
      if (!name.empty() && port.unread.starts_with(name)) port.unread.replace(0, name.size(), other);
      port.unread = WithoutHost(identifiers_.Replace(port.unread));
    }
    return FormatLeafCounts(ports);
  }

  std::string Labels(const std::string& content) {
    std::string clean;
    formats::ForEachLine(content, [&](std::string_view line, int) {
      const std::size_t equals = line.find('=');
      if (equals == std::string_view::npos) return;
      clean += fmt::format("{}={}\n", line.substr(0, equals),
                           identifiers_.Name("label", Trimmed(line.substr(equals + 1))));
    });
    return clean;
  }

  // "gpu-17 mlx5_0" by custom, or anything else that an admin wrote.
  std::string NodeDescription(std::string_view path, std::string_view content) {
    const std::string device(LastPart(path.substr(0, path.size() - LastPart(path).size() - 1)));
    return WithNewline(fmt::format("{} {}", identifiers_.Name("host", host_), identifiers_.Replace(device)),
                       content);
  }

  std::string ChipFile(std::string_view content) {
    std::string_view digits = Trimmed(content);
    if (digits.starts_with("0x")) digits.remove_prefix(2);
    const auto number = formats::Number<std::uint64_t>(digits, 16);
    if (!number) return {};
    return WithNewline(fmt::format("{:016x}", identifiers_.Chip(*number)), content);
  }

  std::string KfdProperties(std::string_view content) {
    std::string clean;
    formats::ForEachLine(content, [&](std::string_view line, int) {
      for (const std::string_view key : {"unique_id ", "hive_id "}) {
        const auto number =
            line.starts_with(key) ? formats::Number<std::uint64_t>(line.substr(key.size())) : std::nullopt;
        if (!number) continue;
        clean += fmt::format("{}{}\n", key, identifiers_.Chip(*number));
        return;
      }
      clean += line;
      clean += '\n';
    });
    return clean;
  }

  // Free text that may name the host.
  std::string WithoutHost(std::string text) {
    if (host_.size() < 2) return text;
    const std::string other = identifiers_.Name("host", host_);
    for (std::size_t at = 0; (at = text.find(host_, at)) != std::string::npos; at += other.size())
      text.replace(at, host_.size(), other);
    return text;
  }

  const RecordedFiles& recorded_;
  Identifiers identifiers_;
  std::string host_;
};

}  // namespace

RecordedFiles Scrub(const RecordedFiles& recorded) {
  return Scrubber(recorded).Run();
}

}  // namespace heddle::nodeagent
