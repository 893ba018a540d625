#include "nodeagent/leaf/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "crds/place_labels.h"
#include "formats/lldp.h"
#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::nodeagent {
namespace {

// Two different answers for one cable are both doubtful.
template <class Map, class Key>
void Put(Map& map, const Key& key, const LeafFact& leaf) {
  const auto [entry, fresh] = map.try_emplace(key, leaf);
  if (fresh || !leaf || entry->second == leaf) return;
  entry->second = entry->second.known() ? LeafFact(topology::Missing::kAmbiguous) : leaf;
}

// The text of a file that may be absent; an unreadable one is a problem.
std::optional<std::string> ReadOptional(const base::FileTree& files, std::string_view path,
                                        LeafReadings& readings) {
  auto text = files.Read(path);
  if (text) return *std::move(text);
  if (text.error().code != base::Code::kNotFound) readings.problems.push_back(text.error().message);
  return std::nullopt;
}

}  // namespace

void LeafReadings::Merge(LeafReadings other) {
  for (const auto& [port, leaf] : other.by_port) Put(by_port, port, leaf);
  for (const auto& [netdev, leaf] : other.by_netdev) Put(by_netdev, netdev, leaf);
  labels.merge(other.labels);
  problems.insert(problems.end(), other.problems.begin(), other.problems.end());
  shared_names.insert(shared_names.end(), other.shared_names.begin(), other.shared_names.end());
  proof.merge(other.proof);
  lldp_unanswered = lldp_unanswered || other.lldp_unanswered;
  unanswered.merge(other.unanswered);
  files.merge(other.files);
}

LeafReadings LeavesOfIb(const formats::IbNeighbours& neighbours) {
  LeafReadings readings;
  readings.problems = neighbours.problems;
  for (const formats::IbNeighbour& neighbour : neighbours.entries) {
    LeafFact leaf;
    if (neighbour.kind == formats::IbNodeKind::kSwitch) {
      leaf = topology::LeafPort{formats::IbSwitchName(neighbour.description, neighbour.guid),
                                neighbour.remote_port};
    } else if (neighbour.kind == formats::IbNodeKind::kChannelAdapter) {
      leaf = topology::Missing::kNotApplicable;  // cabled back to back
    } else if (!neighbour.description.empty()) {
      readings.problems.push_back(fmt::format("{} port {}: its leaf is unknown: {}", neighbour.device,
                                              neighbour.port, neighbour.description));
    }
    Put(readings.by_port, std::pair(neighbour.device, neighbour.port), leaf);
  }
  return readings;
}

LeafReadings LeavesOfLldp(std::string_view json0, std::string_view from) {
  LeafReadings readings;
  const auto neighbours = formats::ParseLldp(json0);
  if (!neighbours) {
    readings.lldp_unanswered = true;
    readings.problems.push_back(fmt::format("{}: {}", from, neighbours.error().message));
    return readings;
  }
  const auto shared = formats::SharedNames(*neighbours);
  for (const auto& [name, of] : shared) {
    readings.shared_names.push_back(
        fmt::format("two switches are called {}, chassis {} at {} and {} at {}, both with their port {}: "
                    "give each switch a "
                    "hostname of its own",
                    name, of.chassis_id, of.interface, of.other_chassis_id, of.other_interface, of.port_id));
  }
  for (const auto& [netdev, heard] : *neighbours) {
    LeafFact leaf = formats::LeafOf(heard);
    if (!leaf && leaf.missing() == topology::Missing::kAmbiguous) {
      readings.problems.push_back(
          fmt::format("{} hears {} LLDP neighbours, so its leaf is ambiguous: a hub or bridge "
                      "in between, or a second LLDP agent on this host?",
                      netdev, heard.size()));
    }
    if (leaf && shared.contains(leaf->leaf)) leaf = topology::Missing::kAmbiguous;
    const auto shortest = std::min_element(heard.begin(), heard.end(),
                                           [](const auto& a, const auto& b) { return a.ttl < b.ttl; });
    if (shortest != heard.end()) readings.proof[netdev] = shortest->ttl;
    Put(readings.by_netdev, netdev, leaf);
  }
  return readings;
}

LeafReadings IbFileLeaves::Read(const RdmaReadings& /*rdma*/) {
  LeafReadings readings;
  const auto text = ReadOptional(files_, "ib.txt", readings);
  return text ? LeavesOfIb(formats::ParseIbNeighbours(*text)) : readings;
}

LeafReadings LldpFileLeaves::Read(const RdmaReadings& /*rdma*/) {
  LeafReadings readings;
  if (const auto text = ReadOptional(files_, "lldp.json", readings)) return LeavesOfLldp(*text, "lldp.json");
  if (const auto why = ReadOptional(files_, kLldpUnanswered, readings)) {
    readings.lldp_unanswered = true;
    readings.problems.push_back(formats::Printable(*why, 512));
  }
  return readings;
}

LeafReadings LeavesOfLabels(std::string_view text) {
  static constexpr std::string_view kBlanks = " \t\r";
  const auto trimmed = [](std::string_view part) {
    const std::size_t begin = std::min(part.find_first_not_of(kBlanks), part.size());
    part.remove_prefix(begin);
    return part.substr(0, part.find_last_not_of(kBlanks) + 1);
  };
  crds::PlaceLabels labels;
  formats::ForEachLine(text, [&](std::string_view line, int) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || trimmed(line).starts_with('#')) return;
    labels[formats::Printable(trimmed(line.substr(0, equals)))] =
        formats::Printable(trimmed(line.substr(equals + 1)), 63);
  });
  LeafReadings readings;
  readings.labels = crds::PlaceLabelsOf(labels);
  return readings;
}

LeafReadings LabelFileLeaves::Read(const RdmaReadings& /*rdma*/) {
  LeafReadings readings;
  const auto text = ReadOptional(files_, "labels.txt", readings);
  return text ? LeavesOfLabels(*text) : readings;
}

LeafReadings GivenLabels::Read(const RdmaReadings& /*rdma*/) {
  constexpr std::size_t kMaxBytes = 1 << 20;  // some lines of text: more is another file
  LeafReadings readings;
  auto text = root_.Read(path_);
  if (!text) {
    readings.problems.push_back(fmt::format("the file of labels: {}", text.error().message));
    return readings;
  }
  if (text->size() <= kMaxBytes) readings = LeavesOfLabels(*text);
  if (readings.labels.empty()) {
    readings.problems.push_back(
        fmt::format("{} names no place: it has no line such as {}=…", path_, crds::kPlaceLabels[0].key));
  } else {
    readings.files["labels.txt"] = *std::move(text);
  }
  return readings;
}

std::vector<std::unique_ptr<LeafSource>> RecordedLeaves(const base::FileTree& files) {
  std::vector<std::unique_ptr<LeafSource>> sources;
  sources.push_back(std::make_unique<IbFileLeaves>(files));
  sources.push_back(std::make_unique<LldpFileLeaves>(files));
  sources.push_back(std::make_unique<LabelFileLeaves>(files));
  return sources;
}

}  // namespace heddle::nodeagent
