#include "lossless/port_settings.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/names.h"

namespace heddle::lossless {
namespace {

constexpr std::array<std::string_view, 2> kTrustNames{"PCP", "DSCP"};
constexpr std::array<std::string_view, 3> kDcbxNames{"Host", "Firmware", "HostCEE"};
constexpr std::array<std::string_view, 5> kAlgorithmNames{"Strict", "ETS", "CBS", "Vendor", "Any"};
constexpr std::array<std::string_view, 4> kGlobalPauseNames{"None", "RX", "TX", "RXTX"};
constexpr std::array<std::string_view, kDcqcnParameters> kDcqcnNames{"rpAiRate",
                                                                     "rpByteReset",
                                                                     "rpClampTgtRate",
                                                                     "rpDceTcpG",
                                                                     "rpGd",
                                                                     "rpHaiRate",
                                                                     "rpInitialAlphaValue",
                                                                     "rpMinDecFac",
                                                                     "rpMinRate",
                                                                     "rpRateReduceMonitorPeriod",
                                                                     "rpRateToSetOnFirstCnp",
                                                                     "rpThreshold",
                                                                     "rpTimeReset",
                                                                     "npMinTimeBetweenCnps"};
constexpr std::array<std::string_view, kSettings> kSettingNames{"dcbx",
                                                                "trust",
                                                                "dscpToPriority",
                                                                "pfc",
                                                                "watchdogMs",
                                                                "cableMetres",
                                                                "priorityToClass",
                                                                "classAlgorithm",
                                                                "classPercent",
                                                                "priorityToBuffer",
                                                                "bufferBytes",
                                                                "mtu",
                                                                "ecn",
                                                                "cnpDscp",
                                                                "cnpPriority",
                                                                "tos",
                                                                "trafficClass",
                                                                "dcqcn",
                                                                "globalPause",
                                                                "priorityToGroup",
                                                                "priorityToQueue",
                                                                "pauseToQueue",
                                                                "watched",
                                                                "marking",
                                                                "lossyQueues",
                                                                "losslessQueues",
                                                                "sizedBySwitch"};

std::optional<int> ParseDscp(std::string_view text) {
  int dscp = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), dscp);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || dscp < 0 || dscp >= kDscps) return std::nullopt;
  return dscp;
}

}  // namespace

std::vector<int> PrioritySet::Members() const {
  std::vector<int> members;
  for (int priority = 0; priority < kPriorities; ++priority) {
    if (Contains(priority)) members.push_back(priority);
  }
  return members;
}

std::string Text(const PrioritySet& set) {
  std::string text;
  for (const int priority : set.Members()) text += (text.empty() ? "" : ",") + std::to_string(priority);
  return text.empty() ? "none" : text;
}

std::string_view TrustName(Trust trust) {
  return kTrustNames[std::size_t(trust)];
}
std::string_view DcbxName(Dcbx dcbx) {
  return kDcbxNames[std::size_t(dcbx)];
}
std::string_view AlgorithmName(Algorithm algorithm) {
  return kAlgorithmNames[std::size_t(algorithm)];
}
std::string_view GlobalPauseName(GlobalPause pause) {
  return kGlobalPauseNames[std::size_t(pause)];
}
std::optional<Trust> ParseTrust(std::string_view name) {
  return base::ValueNamed<Trust>(kTrustNames, name);
}
std::optional<Dcbx> ParseDcbx(std::string_view name) {
  return base::ValueNamed<Dcbx>(kDcbxNames, name);
}
std::optional<Algorithm> ParseAlgorithm(std::string_view name) {
  return base::ValueNamed<Algorithm>(kAlgorithmNames, name);
}
std::optional<GlobalPause> ParseGlobalPause(std::string_view name) {
  return base::ValueNamed<GlobalPause>(kGlobalPauseNames, name);
}

DscpMap AllDscps(int priority) {
  DscpMap map;
  map.fill(std::int8_t(priority));
  return map;
}

PriorityTable Identity() {
  return {0, 1, 2, 3, 4, 5, 6, 7};
}

std::string DscpRanges(const DscpMap& map, int priority) {
  std::string text;
  for (std::size_t first = 0; first < map.size(); ++first) {
    if (map[first] != priority) continue;
    std::size_t last = first;
    while (last + 1 < map.size() && map[last + 1] == priority) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last != first) text += "-" + std::to_string(last);
    first = last;
  }
  return text;
}

std::optional<std::vector<int>> ParseDscpRanges(std::string_view text) {
  constexpr std::size_t kMaxText = 256;  // "0,2,4,…" of every other DSCP is 86 characters
  if (text.size() > kMaxText) return std::nullopt;
  std::array<bool, kDscps> seen{};
  std::vector<int> dscps;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const std::size_t dash = part.find('-');
    const auto first = ParseDscp(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : ParseDscp(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    for (int dscp = *first; dscp <= *last; ++dscp) {
      if (std::exchange(seen[std::size_t(dscp)], true)) return std::nullopt;
      dscps.push_back(dscp);
    }
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return std::nullopt;
  }
  std::sort(dscps.begin(), dscps.end());
  return dscps;
}

std::span<const std::string_view> DcqcnParameterNames() {
  return kDcqcnNames;
}
std::string_view DcqcnParameterName(DcqcnParameter parameter) {
  return kDcqcnNames[std::size_t(parameter)];
}
std::optional<DcqcnParameter> ParseDcqcnParameter(std::string_view name) {
  return base::ValueNamed<DcqcnParameter>(kDcqcnNames, name);
}

std::span<const std::string_view> SettingNames() {
  return kSettingNames;
}
std::string_view SettingName(Setting setting) {
  return kSettingNames[std::size_t(setting)];
}
std::optional<Setting> ParseSetting(std::string_view name) {
  return base::ValueNamed<Setting>(kSettingNames, name);
}

int PriorityOf(const PortSettings& settings, int dscp) {
  if (!settings.dscp_to_priority || dscp < 0 || dscp >= kDscps) return kNotSaid;
  const int priority = (*settings.dscp_to_priority)[std::size_t(dscp)];
  if (priority < 0 || priority >= kPriorities || !settings.priority_to_group) return priority;
  return (*settings.priority_to_group)[std::size_t(priority)];
}

std::optional<bool> IsLossless(const PortSettings& settings, int dscp) {
  if (settings.pfc && settings.pfc->empty()) return false;
  const int priority = PriorityOf(settings, dscp);
  if (!settings.pfc || priority == kNotSaid) return std::nullopt;
  return settings.pfc->Contains(priority);
}

PortSettings WithWhatFollows(PortSettings wanted) {
  if (wanted.pfc && !wanted.pfc->empty() && !wanted.global_pause) wanted.global_pause = GlobalPause::kNone;
  if (wanted.trust == Trust::kPcp) wanted.dscp_to_priority.reset();
  return wanted;
}

std::optional<int> DataDscp(const PortSettings& settings) {
  if (settings.tos) return *settings.tos >> 2;
  if (settings.traffic_class) return *settings.traffic_class >> 2;
  return std::nullopt;
}

}  // namespace heddle::lossless
