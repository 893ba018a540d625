#include "crds/lossless_codec.h"

#include <fmt/format.h>

#include "crds/kept_text.h"

namespace heddle::crds::codec {
namespace {

using lossless::kPriorities;
using lossless::Setting;

constexpr std::size_t kEight = kPriorities;

// What a number of each setting can be.
struct Range {
  std::int64_t min = 0;
  std::int64_t max = 0;
};
Range RangeOf(Setting setting) {
  switch (setting) {
    case Setting::kWatchdogMs:
      return {0, 65535};
    case Setting::kCableMetres:
      return {0, kMaxCableMetres};
    case Setting::kMtu:
      return {kMinMtu, kMaxMtu};
    case Setting::kCnpDscp:
      return {0, lossless::kDscps - 1};
    case Setting::kCnpPriority:
      return {0, kPriorities - 1};
    default:
      return {0, 255};  // ToS bytes
  }
}

template <class Table>
Table ReadEight(const Field& field, std::int64_t max) {
  const auto values = field.Ints<typename Table::value_type>(kEight, lossless::kNotSaid, max);
  Table table;
  table.fill(lossless::kNotSaid);
  if (values.size() != table.size()) {
    field.Refuse("must have 8 entries");
    return table;
  }
  std::copy(values.begin(), values.end(), table.begin());
  return table;
}

void Read(const Field& field, Setting, lossless::Dcbx& value) {
  value = field.Word(lossless::ParseDcbx, "Host, Firmware, HostCEE", lossless::Dcbx::kHost);
}
void Read(const Field& field, Setting, lossless::Trust& value) {
  value = field.Word(lossless::ParseTrust, "PCP, DSCP", lossless::Trust::kDscp);
}
void Read(const Field& field, Setting, lossless::GlobalPause& value) {
  value = field.Word(lossless::ParseGlobalPause, "None, RX, TX, RXTX", lossless::GlobalPause::kNone);
}
void Read(const Field& field, Setting setting, int& value) {
  const Range range = RangeOf(setting);
  value = field.Int(range.min, range.max);
}
void Read(const Field& field, Setting, lossless::PrioritySet& value) {
  value = ReadPriorities(field);
}
void Read(const Field& field, Setting, lossless::DscpMap& value) {
  value = lossless::AllDscps(lossless::kNotSaid);
  field.Each(kEight, [&](const Field& item) {
    const int priority = item("priority").Required().Int(0, kPriorities - 1);
    const Field dscps = item("dscps");
    for (const int dscp : ReadDscps(dscps.Required())) {
      auto& entry = value[std::size_t(dscp)];
      if (entry != lossless::kNotSaid) dscps.Refuse("DSCP " + std::to_string(dscp) + " stands twice");
      entry = std::int8_t(priority);
    }
  });
}
void Read(const Field& field, Setting, lossless::PriorityTable& value) {
  value = ReadTable(field);
}
void Read(const Field& field, Setting, lossless::Algorithms& value) {
  value.fill(lossless::Algorithm::kAny);
  const auto words = field.List(kEight, [](const Field& item) {
    return item.Word(lossless::ParseAlgorithm, "Strict, ETS, CBS, Vendor, Any", lossless::Algorithm::kAny);
  });
  if (words.size() != value.size()) return field.Refuse("must have 8 entries");
  std::copy(words.begin(), words.end(), value.begin());
}
void Read(const Field& field, Setting setting, lossless::Numbers& value) {
  value = ReadNumbers(field, setting == Setting::kClassPercent ? 100 : kMaxBufferBytes);
}
void Read(const Field& field, Setting, lossless::Dcqcn& value) {
  value = ReadDcqcn(field);
}

Json Write(lossless::Dcbx value) {
  return lossless::DcbxName(value);
}
Json Write(lossless::Trust value) {
  return lossless::TrustName(value);
}
Json Write(lossless::GlobalPause value) {
  return lossless::GlobalPauseName(value);
}
Json Write(int value) {
  return value;
}
Json Write(const lossless::PrioritySet& value) {
  return WritePriorities(value);
}
Json Write(const lossless::DscpMap& value) {
  Json list = Json::array();
  for (int priority = 0; priority < kPriorities; ++priority) {
    std::string dscps = lossless::DscpRanges(value, priority);
    if (!dscps.empty()) list.push_back({{"priority", priority}, {"dscps", std::move(dscps)}});
  }
  return list;
}
Json Write(const lossless::PriorityTable& value) {
  Json list = Json::array();
  for (const std::int8_t entry : value) list.push_back(int(entry));
  return list;
}
Json Write(const lossless::Algorithms& value) {
  Json list = Json::array();
  for (const lossless::Algorithm entry : value) list.push_back(lossless::AlgorithmName(entry));
  return list;
}
Json Write(const lossless::Numbers& value) {
  return value;
}
Json Write(const lossless::Dcqcn& value) {
  return WriteDcqcn(value);
}

std::optional<LosslessMode> ParseMode(std::string_view text) {
  if (text == "Observe") return LosslessMode::kObserve;
  if (text == "Apply") return LosslessMode::kApply;
  return std::nullopt;
}

std::optional<OnDrift> ParseOnDrift(std::string_view text) {
  if (text == "Report") return OnDrift::kReport;
  if (text == "Repair") return OnDrift::kRepair;
  return std::nullopt;
}

// Of an entry without settings: whether its NIC cannot have them.
std::optional<bool> ParseVerdict(std::string_view text) {
  if (text == "Refused") return true;
  if (text == "NotApplicable") return false;
  return std::nullopt;
}

constexpr std::array<std::string_view, 7> kStateNames{"Compliant", "Drifted",       "Pending", "Failed",
                                                      "Conflict",  "NotApplicable", "Unknown"};
constexpr std::string_view kStateWords =
    "Compliant, Drifted, Pending, Failed, Conflict, NotApplicable, Unknown";

std::optional<LosslessState> ParseState(std::string_view text) {
  const auto found = std::find(kStateNames.begin(), kStateNames.end(), text);
  if (found == kStateNames.end()) return std::nullopt;
  return LosslessState(found - kStateNames.begin());
}

// Reports speak of settings that hosts have.
Setting ReadSetting(const Field& field) {
  const Setting setting =
      field.Required().Word(lossless::ParseSetting, "the settings of a port", Setting::kDcbx);
  if (int(setting) >= lossless::kHostSettings) field.Refuse("is a setting of switches");
  return setting;
}

std::vector<std::string> ReadPorts(const Field& field) {
  auto ports = field.Required().Names(128, 72);
  if (ports.empty()) field.Refuse("names no port");
  std::sort(ports.begin(), ports.end());
  return ports;
}

}  // namespace

Json WriteSettings(const lossless::PortSettings& settings) {
  Json json = Json::object();
  lossless::ForEachHostSetting([&](Setting setting, auto member) {
    if (settings.*member) json[std::string(lossless::SettingName(setting))] = Write(*(settings.*member));
  });
  return json;
}

lossless::PortSettings ReadSettings(const Field& field) {
  lossless::PortSettings settings;
  field.CheckObject();
  lossless::ForEachHostSetting([&](Setting setting, auto member) {
    const Field value = field(lossless::SettingName(setting));
    if (value.present()) Read(value, setting, (settings.*member).emplace());
  });
  return settings;
}

Json WritePriorities(const lossless::PrioritySet& set) {
  return set.Members();
}

lossless::PrioritySet ReadPriorities(const Field& field) {
  lossless::PrioritySet set;
  for (const int priority : field.Ints<int>(kEight, 0, kPriorities - 1)) set.Insert(priority);
  return set;
}

lossless::PriorityTable ReadTable(const Field& field) {
  return ReadEight<lossless::PriorityTable>(field, kPriorities - 1);
}

lossless::Numbers ReadNumbers(const Field& field, std::int64_t max) {
  return ReadEight<lossless::Numbers>(field, max);
}

Json WriteDcqcn(const lossless::Dcqcn& dcqcn) {
  Json json = Json::object();
  for (const auto& [parameter, value] : dcqcn)
    json[std::string(lossless::DcqcnParameterName(parameter))] = value;
  return json;
}

lossless::Dcqcn ReadDcqcn(const Field& field) {
  lossless::Dcqcn dcqcn;
  field.CheckObject();
  for (int i = 0; i < lossless::kDcqcnParameters; ++i) {
    const auto parameter = lossless::DcqcnParameter(i);
    const Field value = field(lossless::DcqcnParameterName(parameter));
    if (value.present()) dcqcn[parameter] = value.Int(0, kMaxInt);
  }
  return dcqcn;
}

std::vector<int> ReadDscps(const Field& field) {
  const std::string text = field.Text(256);
  auto dscps = lossless::ParseDscpRanges(text);
  if (field.present() && !dscps) field.Refuse("\"" + text + "\" is no list of DSCPs as 26,48-50");
  if (field.present() && dscps && dscps->empty()) field.Refuse("names no DSCP");
  return dscps.value_or(std::vector<int>{});
}

Json WriteInfiniBand(const lossless::InfiniBand& infiniband) {
  Json json = Json::object();
  if (infiniband.service_level) json["serviceLevel"] = *infiniband.service_level;
  if (infiniband.adaptive_routing) json["adaptiveRouting"] = *infiniband.adaptive_routing;
  return json;
}

lossless::InfiniBand ReadInfiniBand(const Field& field) {
  lossless::InfiniBand infiniband;
  if (!field.present()) return infiniband;
  field.CheckObject();
  if (const Field level = field("serviceLevel"); level.present())
    infiniband.service_level = level.Int(0, lossless::kServiceLevels - 1);
  if (const Field adaptive = field("adaptiveRouting"); adaptive.present())
    infiniband.adaptive_routing = adaptive.Bool();
  return infiniband;
}

LosslessMode ReadMode(const Field& field) {
  return field.Word(ParseMode, "Observe, Apply", LosslessMode::kObserve);
}

OnDrift ReadOnDrift(const Field& field) {
  return field.Word(ParseOnDrift, "Report, Repair", OnDrift::kReport);
}

Json WriteWish(const LosslessWish& wish) {
  Json json{{"ports", TextList(wish.ports, 128, 72)},
            {"policies", TextList(wish.policies, 8, 253)},
            {"mode", LosslessModeName(wish.mode)},
            {"onDrift", OnDriftName(wish.on_drift)}};
  PutPositive(json, "generation", wish.generation);
  PutText(json, "policyUid", wish.policy_uid, kMaxUid);
  if (wish.settings) json["settings"] = WriteSettings(*wish.settings);
  PutText(json, "reason", wish.reason, kMaxKeptReason);
  if (wish.refused) json["verdict"] = "Refused";
  if (!wish.infiniband.empty()) json["infiniBand"] = WriteInfiniBand(wish.infiniband);
  return json;
}

void NoteUnknown(const Field& field, std::span<const std::string_view> known,
                 std::vector<std::string>& unknown) {
  for (const std::string& key : field.Keys()) {
    if (unknown.size() >= kMaxUnknown) return;
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string path = field.Path();
    unknown.push_back(Clean(path.empty() ? key : fmt::format("{}.{}", path, key), 200));
  }
}

LosslessWish ReadWishHead(const Field& field) {
  LosslessWish wish;
  wish.ports = ReadPorts(field("ports"));
  const Field policies = field("policies");
  wish.policies = policies.Required().Names(8, 253);
  if (wish.policies.empty()) policies.Refuse("names no policy");
  wish.generation = field("generation").Int64(0, kMaxInt64);
  wish.policy_uid = field("policyUid").Text(kMaxUid);
  return wish;
}

LosslessWish ReadWish(const Field& field) {
  static constexpr std::array<std::string_view, 10> kKeys{"ports",   "policies",  "generation", "policyUid",
                                                          "mode",    "onDrift",   "settings",   "reason",
                                                          "verdict", "infiniBand"};
  static constexpr std::array<std::string_view, 2> kInfiniBandKeys{"serviceLevel", "adaptiveRouting"};
  LosslessWish wish = ReadWishHead(field);
  NoteUnknown(field, kKeys, wish.not_understood);
  wish.mode = ReadMode(field("mode"));
  wish.on_drift = ReadOnDrift(field("onDrift"));
  if (const Field settings = field("settings"); settings.present()) {
    wish.settings = ReadSettings(settings);
    NoteUnknown(settings, lossless::SettingNames().first(lossless::kHostSettings), wish.not_understood);
    const Field dcqcn = settings("dcqcn");
    NoteUnknown(dcqcn, lossless::DcqcnParameterNames(), wish.not_understood);
  }
  wish.reason = field("reason").Text(kMaxKeptReason);
  wish.refused = field("verdict").Word(ParseVerdict, "NotApplicable, Refused", false);
  const Field infiniband = field("infiniBand");
  wish.infiniband = ReadInfiniBand(infiniband);
  NoteUnknown(infiniband, kInfiniBandKeys, wish.not_understood);
  return wish;
}

Json WriteReport(const LosslessReport& report) {
  Json json{{"ports", TextList(report.ports, 128, 72)},
            {"policy", Clean(report.edition.policy, 253)},
            {"state", LosslessStateName(report.state)}};
  PutPositive(json, "generation", report.edition.generation);
  PutText(json, "policyUid", report.edition.uid, kMaxUid);
  PutText(json, "reason", report.reason, kMaxKeptReason);
  if (report.have) json["have"] = WriteSettings(*report.have);
  if (report.fec) json["fec"] = lossless::FecName(*report.fec);
  PutList(json, "drift", WriteList(report.drift, lossless::kHostSettings, [](const PortDrift& drift) {
            Json item{{"setting", lossless::SettingName(drift.drift.setting)},
                      {"want", Clean(drift.drift.want, 256)},
                      {"have", Clean(drift.drift.have, 256)},
                      {"since", base::FormatTime(drift.since)}};
            PutText(item, "writer", drift.writer, 64);
            return item;
          }));
  PutList(json, "gaps", WriteList(report.gaps, lossless::kHostSettings, [](const lossless::Gap& gap) {
            return Json{{"setting", lossless::SettingName(gap.setting)}, {"reason", Clean(gap.reason, 256)}};
          }));
  return json;
}

LosslessReport ReadReport(const Field& field) {
  LosslessReport report;
  report.ports = ReadPorts(field("ports"));
  report.edition.policy = field("policy").Required().Text(253);
  report.edition.generation = field("generation").Int64(0, kMaxInt64);
  report.edition.uid = field("policyUid").Text(kMaxUid);
  report.state = field("state").Required().Word(ParseState, kStateWords, LosslessState::kUnknown);
  report.reason = field("reason").Text(kMaxKeptReason);
  if (const Field have = field("have"); have.present()) report.have = ReadSettings(have);
  if (const Field fec = field("fec"); fec.present())
    report.fec = fec.Word(lossless::ParseFec, "none, fc, rs", lossless::Fec::kNone);
  report.drift = field("drift").List(lossless::kHostSettings, [](const Field& item) {
    PortDrift drift;
    drift.drift.setting = ReadSetting(item("setting"));
    drift.drift.want = item("want").Required().Text(256);
    drift.drift.have = item("have").Required().Text(256);
    if (const auto since = item("since").Required().Time()) drift.since = *since;
    drift.writer = item("writer").Text(64);
    return drift;
  });
  report.gaps = field("gaps").List(lossless::kHostSettings, [](const Field& item) {
    return lossless::Gap{ReadSetting(item("setting")), item("reason").Required().Text(256)};
  });
  return report;
}

}  // namespace heddle::crds::codec

namespace heddle::crds {

std::string_view LosslessModeName(LosslessMode mode) {
  return mode == LosslessMode::kApply ? "Apply" : "Observe";
}

std::string_view OnDriftName(OnDrift on_drift) {
  return on_drift == OnDrift::kRepair ? "Repair" : "Report";
}

std::string_view LosslessStateName(LosslessState state) {
  return codec::kStateNames[std::size_t(state)];
}

Json ToJson(const lossless::PortSettings& settings) {
  return codec::WriteSettings(settings);
}

base::Result<lossless::PortSettings> PortSettingsFromJson(const Json& json) {
  codec::Problem problem;
  const codec::Field root(json, problem);
  lossless::PortSettings settings = codec::ReadSettings(root);
  if (problem.found()) return base::Fail(problem.error());
  return settings;
}

std::string LosslessSummary(const std::vector<LosslessReport>& reports) {
  if (reports.empty()) return "?";
  std::size_t good = 0, all = 0;
  for (const LosslessReport& report : reports) {
    if (report.state == LosslessState::kNotApplicable) continue;
    all += report.ports.size();
    if (report.state == LosslessState::kCompliant) good += report.ports.size();
  }
  return all == 0 ? "-" : std::to_string(good) + "/" + std::to_string(all);
}

}  // namespace heddle::crds
