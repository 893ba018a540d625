#include "nodeagent/leaf/memory.h"

#include <fmt/format.h>

#include <optional>

#include "nodeagent/leaf/lldpd.h"
#include "nodeagent/leaf/umad.h"

namespace heddle::nodeagent {
namespace {

bool IsUnknown(const LeafFact& leaf) {
  return !leaf && leaf.missing() == topology::Missing::kUnknown;
}

// What a folder of sysfs holds now; nothing where it cannot be read, and then nothing is forgotten.
std::optional<std::set<std::string, std::less<>>> Names(const base::FileTree& files,
                                                        std::string_view folder) {
  const auto names = files.List(folder);
  if (!names) return std::nullopt;
  return std::set<std::string, std::less<>>(names->begin(), names->end());
}

}  // namespace

LeafFact LeafMemory::Recall(const Known& known, bool unanswered, base::MonotonicTime now,
                            std::string_view cable, std::vector<std::string>& problems) {
  if (unanswered && now - known.confirmed < known.proof) return known.leaf;
  problems.push_back(fmt::format("{}: its leaf is stale: it was {} port {}, last confirmed at {}", cable,
                                 known.leaf.leaf, known.leaf.port, base::FormatTime(known.wall)));
  return topology::Missing::kStale;
}

void LeafMemory::Apply(LeafReadings& readings, base::MonotonicTime now, base::WallTime wall) {
  // Between two hosts there is no leaf, and that is no loss of one.
  std::erase_if(ports_, [&readings](const auto& entry) {
    const auto said = readings.by_port.find(entry.first);
    return said != readings.by_port.end() && !said->second &&
           said->second.missing() == topology::Missing::kNotApplicable;
  });
  for (const auto& [netdev, leaf] : readings.by_netdev) {
    const auto proof = readings.proof.find(netdev);
    if (leaf) netdevs_[netdev] = {*leaf, now, wall, proof == readings.proof.end() ? kIbProof : proof->second};
  }
  for (const auto& [port, leaf] : readings.by_port) {
    if (leaf) ports_[port] = {*leaf, now, wall, kIbProof};
  }
  for (const auto& [netdev, known] : netdevs_) {
    LeafFact& leaf = readings.by_netdev[netdev];
    if (IsUnknown(leaf)) leaf = Recall(known, readings.lldp_unanswered, now, netdev, readings.problems);
  }
  for (const auto& [port, known] : ports_) {
    LeafFact& leaf = readings.by_port[port];
    const std::string cable = fmt::format("{} port {}", port.first, port.second);
    if (IsUnknown(leaf)) {
      leaf = Recall(known, readings.unanswered.contains(port), now, cable, readings.problems);
    }
  }
}

void LeafMemory::KeepNetdevs(const std::set<std::string, std::less<>>& netdevs) {
  std::erase_if(netdevs_, [&netdevs](const auto& entry) { return !netdevs.contains(entry.first); });
}

void LeafMemory::KeepDevices(const std::set<std::string, std::less<>>& devices) {
  std::erase_if(ports_, [&devices](const auto& entry) { return !devices.contains(entry.first.first); });
}

LeafReadings RememberedLeaves::Read(const RdmaReadings& rdma) {
  LeafReadings readings;
  for (const auto& source : sources_) readings.Merge(source->Read(rdma));
  if (const auto netdevs = Names(files_, "sys/class/net")) memory_.KeepNetdevs(*netdevs);
  if (const auto devices = Names(files_, "sys/class/infiniband")) memory_.KeepDevices(*devices);
  memory_.Apply(readings, clock_.Now(), clock_.WallNow());
  return readings;
}

std::vector<std::unique_ptr<LeafSource>> LiveLeaves(const base::FileTree& files, base::Clock& clock,
                                                    const std::stop_token& stop, const LeafPaths& paths) {
  std::vector<std::unique_ptr<LeafSource>> asked;
  asked.push_back(std::make_unique<UmadLeaves>(files, std::make_unique<UmadPorts>(files), stop));
  CommandOptions lldpcli = AskLldpd(paths.lldpd_socket);
  lldpcli.stop = stop;
  asked.push_back(std::make_unique<LldpdLeaves>(std::move(lldpcli)));
  std::vector<std::unique_ptr<LeafSource>> sources;
  sources.push_back(std::make_unique<RememberedLeaves>(files, clock, std::move(asked)));
  if (!paths.labels_file.empty()) sources.push_back(std::make_unique<GivenLabels>(paths.labels_file));
  return sources;
}

}  // namespace heddle::nodeagent
