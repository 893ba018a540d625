#include "nodeagent/qos/recorded_port_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "nodeagent/qos/overlay.h"

namespace heddle::nodeagent {
namespace {

constexpr const char* kName = "qos.yaml";

std::vector<lossless::Gap> AllGaps(const std::string& reason) {
  std::vector<lossless::Gap> gaps;
  for (int i = 0; i < lossless::kHostSettings; ++i) {
    const auto setting = lossless::Setting(i);
    // What recordings before it was read do not have is not missed.
    if (setting != lossless::Setting::kTrafficClass && setting != lossless::Setting::kGlobalPause)
      gaps.push_back({setting, reason});
  }
  return gaps;
}

base::Status Gone(const QosPort& port) {
  return base::Fail(base::Code::kUnavailable, fmt::format("{}: the interface is gone", port.netdev));
}

}  // namespace

RecordedPortIo::RecordedPortIo(const base::FileTree& files, std::string folder)
    : files_(files), folder_(std::move(folder)) {}

base::Status RecordedPortIo::Load() {
  if (loaded_ && folder_.empty()) return {};
  auto text = base::Result<std::string>(base::Fail(base::Code::kNotFound, ""));
  if (!folder_.empty()) text = base::DiskFileTree(folder_).Read(kName);
  if (!text && text.error().code == base::Code::kNotFound) text = files_.Read(kName);
  if (text) {
    ASSIGN_OR_RETURN(ports_, ParseQosYaml(*text));
  } else if (text.error().code != base::Code::kNotFound) {
    return base::Fail(text.error());
  }
  loaded_ = true;
  return {};
}

base::Status RecordedPortIo::Save(const std::string& line) const {
  if (folder_.empty()) return {};
  const std::filesystem::path folder(folder_);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  // Whoever reads it meanwhile sees the old file or the new one.
  const std::filesystem::path fresh = folder / ".qos.yaml.new";
  std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
  file << FormatQosYaml(ports_);
  file.close();
  std::ofstream log(folder / "writes", std::ios::binary | std::ios::app);
  log << line << '\n';
  log.close();
  if (file && log) std::filesystem::rename(fresh, folder / kName, error);
  if (!file || !log || error) {
    return base::Fail(base::Code::kUnavailable,
                      fmt::format("{} cannot be written: does it exist, and is there space?", folder_));
  }
  return {};
}

const RecordedQosPort* RecordedPortIo::Find(const QosPort& port) const {
  const auto found = ports_.find(port.name);
  return found == ports_.end() ? nullptr : &found->second;
}

QosReading RecordedPortIo::Read(const QosPort& port) {
  if (const auto loaded = Load(); !loaded) return {{}, AllGaps(loaded.error().message), false};
  const RecordedQosPort* found = Find(port);
  if (found == nullptr)
    return {{}, AllGaps("qos.yaml of this recorded machine does not name the port"), false};
  return found->reading.gone ? QosReading{{}, {}, true} : found->reading;
}

base::Status RecordedPortIo::Write(const QosPort& port, std::span<const lossless::Setting> settings,
                                   const lossless::PortSettings& want) {
  TRY(Load());
  if (const RecordedQosPort* found = Find(port); found != nullptr && found->reading.gone) return Gone(port);
  const auto [place, fresh] = ports_.try_emplace(port.name);
  RecordedQosPort& recorded = place->second;
  if (fresh) {
    recorded.port = port;
    recorded.link.carrier = true;
    recorded.reading.gaps = AllGaps("not recorded, and not written yet");
  }
  std::string line = port.name;
  base::Status refused;
  for (const lossless::Setting setting : settings) {
    if (setting == lossless::Setting::kTrafficClass) continue;  // as on a live machine: no setting of a port
    const auto refusal = std::find_if(recorded.refuses.begin(), recorded.refuses.end(),
                                      [setting](const QosRefusal& each) { return each.setting == setting; });
    if (refusal != recorded.refuses.end()) {
      refused = base::Fail(refusal->error.In(lossless::SettingName(setting)));
      break;
    }
    Overlay(want, setting, recorded.reading.have);
    std::erase_if(recorded.reading.gaps,
                  [setting](const lossless::Gap& gap) { return gap.setting == setting; });
    line += fmt::format(" {}", lossless::SettingName(setting));
  }
  // What was refused leaves a line, too: it was tried.
  TRY(Save(refused ? line : line + " refused"));
  return refused;
}

base::Status RecordedPortIo::WriteBack(const QosPort& port, std::span<const lossless::Setting> settings,
                                       const lossless::PortSettings& before) {
  TRY(Write(port, settings, before));
  const auto recorded = ports_.find(port.name);
  auto& map = recorded->second.reading.have.dscp_to_priority;
  const bool asked =
      std::find(settings.begin(), settings.end(), lossless::Setting::kDscpToPriority) != settings.end();
  if (!asked || !before.dscp_to_priority || map == before.dscp_to_priority) return {};
  map = before.dscp_to_priority;
  return Save(port.name + " dscpToPriority");
}

base::Status RecordedPortIo::WriteRoce1(const QosPort&) {
  return {};
}

base::Result<int> RecordedPortIo::UserQueuePairs(const QosPort& port) {
  TRY(Load());
  const RecordedQosPort* found = Find(port);
  return found == nullptr ? 0 : found->queue_pairs;
}

std::vector<std::string> RecordedPortIo::QueuePairHolders(const QosPort& port) {
  const RecordedQosPort* found = Load() ? Find(port) : nullptr;
  return found == nullptr ? std::vector<std::string>() : found->holders;
}

base::Result<LinkEvidence> RecordedPortIo::Link(const QosPort& port) {
  TRY(Load());
  const RecordedQosPort* found = Find(port);
  if (found != nullptr && found->reading.gone) return base::Fail(Gone(port).error());
  return found == nullptr ? LinkEvidence{true, 0, {}} : found->link;
}

std::string RecordedPortIo::LikelyWriter(const QosPort& port, lossless::Setting /*setting*/) {
  if (!Load()) return {};
  const RecordedQosPort* found = Find(port);
  return found == nullptr ? std::string() : found->writer;
}

}  // namespace heddle::nodeagent
