#include "formats/sonic_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "formats/json_bounds.h"
#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::formats {
namespace {

using base::Code;
using Json = nlohmann::json;
using lossless::kPriorities;
using lossless::PriorityTable;

constexpr std::size_t kMaxBytes = std::size_t{32} << 20;
constexpr std::size_t kMaxValues = 500'000;  // a chassis with 512 ports has some 60,000
constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxPorts = 4096;
constexpr std::size_t kMaxNotes = 20;

// Values are strings as a rule; some generators write numbers.
std::string TextOf(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_integer() ? value.dump() : std::string();
}

const Json& Member(const Json& object, std::string_view name) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(name);
  return found == object.end() ? kNothing : *found;
}

// "Ethernet4" before "Ethernet12".
std::pair<std::string, std::uint64_t> PortOrder(const std::string& name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  return {name.substr(0, digits), Number<std::uint64_t>(std::string_view(name).substr(digits)).value_or(0)};
}

class Reader {
 public:
  explicit Reader(const Json& root) : root_(root), whole_(Member(root, "PORT").is_object()) {}

  base::Result<SonicConfig> Read() {
    SonicConfig config;
    const Json& localhost = Member(Member(root_, "DEVICE_METADATA"), "localhost");
    config.hostname = Printable(TextOf(Member(localhost, "hostname")));
    TRY(ReadMarkings());
    const std::set<std::string> names = PortNames();
    if (names.size() > kMaxPorts) {
      return base::Fail(Code::kTooLarge,
                        fmt::format("it has {} ports, at most {} are read", names.size(), kMaxPorts));
    }
    const Json& qos = Member(root_, "PORT_QOS_MAP");
    std::size_t down = 0, without = 0;
    for (const std::string& name : names) {
      const Json& port = Member(Member(root_, "PORT"), name);
      if (TextOf(Member(port, "admin_status")) == "down") {
        ++down;
        continue;
      }
      const Json& map = Member(qos, name);
      if (!map.is_object() && HasPorts(qos)) {
        ++without;
        continue;
      }
      ASSIGN_OR_RETURN(lossless::PortSettings settings, Settings(name, port, map));
      config.ports.push_back({Printable(name), std::move(settings)});
    }
    if (down > 0) Note(config, fmt::format("{} ports are shut down and left out", down));
    if (without > 0) Note(config, fmt::format("{} ports have no PORT_QOS_MAP and are left out", without));
    std::stable_sort(config.ports.begin(), config.ports.end(), [](const SonicPort& a, const SonicPort& b) {
      return PortOrder(a.name) < PortOrder(b.name);
    });
    return config;
  }

 private:
  static bool HasPorts(const Json& qos) {
    return qos.is_object() && std::any_of(qos.items().begin(), qos.items().end(),
                                          [](const auto& entry) { return entry.key() != "global"; });
  }
  static void Note(SonicConfig& config, std::string note) {
    if (config.notes.size() < kMaxNotes) config.notes.push_back(std::move(note));
  }

  std::set<std::string> PortNames() const {
    std::set<std::string> names;
    for (const char* table : {"PORT", "PORT_QOS_MAP"}) {
      const Json& ports = Member(root_, table);
      if (!ports.is_object()) continue;
      for (const auto& [name, port] : ports.items()) {
        if (name != "global" && names.size() <= kMaxPorts) names.insert(name);
      }
    }
    return names;
  }

  // The map that `field` of a port names, found in `table`; null where the port names none.
  base::Result<const Json*> MapOf(std::string_view port, const Json& qos, std::string_view field,
                                  std::string_view table) const {
    std::string name = TextOf(Member(qos, field));
    if (name.empty()) return nullptr;
    const std::string bracket = fmt::format("[{}|", table);
    if (name.starts_with(bracket) && name.ends_with(']')) {
      name = name.substr(bracket.size(), name.size() - bracket.size() - 1);
    }
    const Json& map = Member(Member(root_, table), name);
    if (map.is_object()) return &map;
    return base::Fail(Code::kInvalid, fmt::format("PORT_QOS_MAP|{}: {} names {}, which is not in {}",
                                                  Printable(port, 40), field, Printable(name, 40), table));
  }

  // Calls put(key, value) for each entry of a map of numbers to 0 … 7.
  template <class Put>
  static base::Status EachEntry(const Json& map, std::string_view table, int keys, Put put) {
    for (const auto& [key, value] : map.items()) {
      const auto from = Within(std::string_view(key), 0, keys - 1);
      const auto to = Within(std::string_view(TextOf(value)), 0, kPriorities - 1);
      if (!from || !to) {
        return base::Fail(Code::kInvalid,
                          fmt::format("{}: \"{}\": \"{}\" is not 0 to {} with a value of 0 to 7", table,
                                      Printable(key, 20), Printable(TextOf(value), 20), keys - 1));
      }
      put(std::size_t(*from), std::int8_t(*to));
    }
    return {};
  }

  base::Status TableOf(std::string_view port, const Json& qos, std::string_view field, std::string_view table,
                       std::optional<PriorityTable>& into) const {
    ASSIGN_OR_RETURN(const Json* const map, MapOf(port, qos, field, table));
    if (map == nullptr) return {};
    into.emplace().fill(lossless::kNotSaid);
    return EachEntry(*map, table, kPriorities, [&](std::size_t from, std::int8_t to) { (*into)[from] = to; });
  }

  // "3,4"; empty is none.
  static base::Result<lossless::PrioritySet> Priorities(std::string_view port, std::string_view field,
                                                        const std::string& text) {
    lossless::PrioritySet set;
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t comma = rest.find(',');
      Scanner scan(rest.substr(0, comma));
      const auto priority = Within(scan.Word(), 0, kPriorities - 1);
      if (!priority || !scan.AtEnd()) {
        return base::Fail(Code::kInvalid,
                          fmt::format("PORT_QOS_MAP|{}: {} \"{}\" is no list of priorities 0 to 7",
                                      Printable(port, 40), field, Printable(text, 40)));
      }
      set.Insert(*priority);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    return set;
  }

  base::Result<lossless::PortSettings> Settings(const std::string& name, const Json& port,
                                                const Json& qos) const {
    lossless::PortSettings settings;
    TRY(ReadDscps(name, qos, settings));
    TRY(TableOf(name, qos, "tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP", settings.priority_to_group));
    TRY(TableOf(name, qos, "tc_to_queue_map", "TC_TO_QUEUE_MAP", settings.priority_to_queue));
    TRY(TableOf(name, qos, "pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE", settings.pause_to_queue));
    ASSIGN_OR_RETURN(settings.pfc, Priorities(name, "pfc_enable", TextOf(Member(qos, "pfc_enable"))));
    TRY(ReadWatchdog(name, qos, settings));
    PutMarking(name, settings);
    if (const Json& mtu = Member(port, "mtu"); !mtu.is_null()) {
      settings.mtu = Within(std::string_view(TextOf(mtu)), 68, 65535);
      if (!settings.mtu) {
        return base::Fail(Code::kInvalid, fmt::format("PORT|{}: mtu \"{}\" is not 68 to 65535",
                                                      Printable(name, 40), Printable(TextOf(mtu), 20)));
      }
    }
    return settings;
  }

  base::Status ReadDscps(const std::string& name, const Json& qos, lossless::PortSettings& settings) const {
    ASSIGN_OR_RETURN(const Json* map, MapOf(name, qos, "dscp_to_tc_map", "DSCP_TO_TC_MAP"));
    if (map == nullptr && !TextOf(Member(qos, "dot1p_to_tc_map")).empty()) {
      settings.trust = lossless::Trust::kPcp;
      return {};
    }
    if (map == nullptr) {
      const Json& global = Member(Member(root_, "PORT_QOS_MAP"), "global");
      ASSIGN_OR_RETURN(map, MapOf("global", global, "dscp_to_tc_map", "DSCP_TO_TC_MAP"));
    }
    if (map == nullptr) return {};
    settings.trust = lossless::Trust::kDscp;
    settings.dscp_to_priority = lossless::AllDscps(lossless::kNotSaid);
    return EachEntry(*map, "DSCP_TO_TC_MAP", lossless::kDscps,
                     [&](std::size_t dscp, std::int8_t tc) { (*settings.dscp_to_priority)[dscp] = tc; });
  }

  // The software watchdog of a port runs where PFC_WD has an entry of it, on the queues of pfcwd_sw_enable,
  // which used to be those of pfc_enable (sonic-utilities, scripts/db_migrator.py).
  base::Status ReadWatchdog(const std::string& name, const Json& qos,
                            lossless::PortSettings& settings) const {
    const Json& entry = Member(Member(root_, "PFC_WD"), name);
    if (!entry.is_object()) {
      if (!whole_ && !Member(root_, "PFC_WD").is_object()) return {};
      settings.watched = lossless::PrioritySet{};
      settings.watchdog_ms = lossless::kWatchdogOff;
      return {};
    }
    const std::string time = TextOf(Member(entry, "detection_time"));
    settings.watchdog_ms = Within(std::string_view(time), 1, 65534);
    if (!settings.watchdog_ms) {
      return base::Fail(Code::kInvalid,
                        fmt::format("PFC_WD|{}: detection_time \"{}\" is no number of milliseconds",
                                    Printable(name, 40), Printable(time, 20)));
    }
    const Json& watched = Member(qos, "pfcwd_sw_enable");
    if (watched.is_null()) {
      settings.watched = settings.pfc;
    } else {
      ASSIGN_OR_RETURN(settings.watched, Priorities(name, "pfcwd_sw_enable", TextOf(watched)));
    }
    return {};
  }

  // QUEUE|Ethernet0|3-4, QUEUE|Ethernet0,Ethernet4|3, and on a chassis QUEUE|host|asic|Ethernet0|3.
  base::Status ReadMarkings() {
    const Json& queues = Member(root_, "QUEUE");
    if (!queues.is_object()) return {};
    for (const auto& [key, queue] : queues.items()) {
      std::string profile = TextOf(Member(queue, "wred_profile"));
      if (profile.empty()) continue;
      if (profile.starts_with("[WRED_PROFILE|") && profile.ends_with(']')) {
        profile = profile.substr(14, profile.size() - 15);
      }
      ASSIGN_OR_RETURN(const std::optional<lossless::EcnMarking> marking, MarkingOf(key, profile));
      if (!marking) continue;
      TRY(AddMarking(key, *marking));
    }
    return {};
  }

  base::Status AddMarking(const std::string& key, const lossless::EcnMarking& marking) {
    const auto bad = [&key] {
      return base::Fail(Code::kInvalid, fmt::format("QUEUE|{}: this is not PORT|QUEUE with queues 0 to 7",
                                                    Printable(key, 60)));
    };
    const std::size_t bar = key.rfind('|');
    if (bar == std::string::npos) return bad();
    const std::string_view range = std::string_view(key).substr(bar + 1);
    const std::size_t dash = range.find('-');
    // A chassis has up to 10 queues; those past the eighth carry no priority.
    const auto first = Within(range.substr(0, dash), 0, 63);
    const auto last = dash == std::string_view::npos ? first : Within(range.substr(dash + 1), 0, 63);
    if (!first || !last) return bad();
    std::string_view ports = std::string_view(key).substr(0, bar);
    if (const std::size_t inner = ports.rfind('|'); inner != std::string_view::npos)
      ports.remove_prefix(inner + 1);
    while (!ports.empty()) {
      const std::size_t comma = ports.find(',');
      auto& of_port = markings_[std::string(ports.substr(0, comma))];
      for (int queue = *first; queue <= std::min(*last, kPriorities - 1); ++queue) of_port[queue] = marking;
      if (comma == std::string_view::npos || markings_.size() > kMaxPorts) break;
      ports.remove_prefix(comma + 1);
    }
    return {};
  }

  // Nothing where the profile marks no green packets, which RDMA's are.
  base::Result<std::optional<lossless::EcnMarking>> MarkingOf(const std::string& queue,
                                                              const std::string& profile) const {
    const Json& found = Member(Member(root_, "WRED_PROFILE"), profile);
    if (!found.is_object()) {
      return base::Fail(Code::kInvalid,
                        fmt::format("QUEUE|{}: wred_profile names {}, which is not in WRED_PROFILE",
                                    Printable(queue, 60), Printable(profile, 40)));
    }
    const std::string ecn = TextOf(Member(found, "ecn"));
    if (ecn != "ecn_all" && ecn.find("green") == std::string::npos) return std::nullopt;
    lossless::EcnMarking marking;
    for (const auto& [field, into, most] :
         {std::tuple{"green_min_threshold", &marking.min_bytes, 2'000'000'000},
          std::tuple{"green_max_threshold", &marking.max_bytes, 2'000'000'000},
          std::tuple{"green_drop_probability", &marking.probability_percent, 100}}) {
      const std::string text = TextOf(Member(found, field));
      const auto number = Within(std::string_view(text), 0, most);
      if (!number) {
        return base::Fail(Code::kInvalid,
                          fmt::format("WRED_PROFILE|{}: {} \"{}\" is not 0 to {}", Printable(profile, 40),
                                      field, Printable(text, 20), most));
      }
      *into = *number;
    }
    return marking;
  }

  // A queue's marking belongs to the priority whose pause stops that queue.
  void PutMarking(const std::string& name, lossless::PortSettings& settings) const {
    const auto found = markings_.find(name);
    if (found == markings_.end() && !whole_ && !Member(root_, "QUEUE").is_object()) return;
    settings.ecn = lossless::PrioritySet{};
    settings.marking = lossless::EcnMarkings{};
    if (found == markings_.end()) return;
    const PriorityTable queues = settings.pause_to_queue.value_or(lossless::Identity());
    for (int priority = 0; priority < kPriorities; ++priority) {
      const auto marking = found->second.find(queues[std::size_t(priority)]);
      if (marking == found->second.end()) continue;
      settings.ecn->Insert(priority);
      settings.marking->emplace(priority, marking->second);
    }
  }

  const Json& root_;
  const bool whole_;                                                     // with PORT: what it lacks is off
  std::map<std::string, std::map<int, lossless::EcnMarking>> markings_;  // by port and queue
};

}  // namespace

base::Result<SonicConfig> ParseSonicConfig(std::string_view json) {
  if (json.size() > kMaxBytes || !IsBounded(json, kMaxValues, kMaxDepth)) {
    return base::Fail(Code::kTooLarge,
                      fmt::format("over 32 MiB, {} values or {} levels: no config_db.json is as large",
                                  kMaxValues, kMaxDepth));
  }
  try {
    const Json root = Json::parse(json);
    const bool known = Member(root, "PORT_QOS_MAP").is_object() || Member(root, "PORT").is_object();
    if (!known) {
      return base::Fail(Code::kInvalid,
                        "it is no SONiC config_db.json: it has neither PORT nor PORT_QOS_MAP");
    }
    return Reader(root).Read();
  } catch (const Json::exception& failure) {
    const auto* const where = dynamic_cast<const Json::parse_error*>(&failure);
    return base::Fail(Code::kInvalid, fmt::format("line {}: this is no JSON",
                                                  where == nullptr ? 1 : LineOf(json, where->byte)));
  }
}

}  // namespace heddle::formats
