#include "formats/sonic_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "formats/printable.h"
#include "formats/scanner.h"
#include "formats/sonic_queues.h"
#include "formats/sonic_tables.h"

namespace heddle::formats {
namespace {

using base::Code;
using lossless::kPriorities;
using lossless::PriorityTable;
using sonic::Entry;
using sonic::Json;
using sonic::kMaxPorts;
using sonic::Member;
using sonic::TextOf;

constexpr std::size_t kMaxNotes = 20;
// sonic-types.yang, tc_type; sonic-tc-queue-map.yang.
constexpr int kTcs = 16, kTcQueues = 16;

class Reader {
 public:
  explicit Reader(const Json& root)
      : root_(root), whole_(Member(root, "PORT").is_object()), channels_(sonic::PortChannels(root)) {}

  base::Result<SonicConfig> Read() {
    SonicConfig config;
    const Json& localhost = Entry(root_, "DEVICE_METADATA", "localhost");
    config.hostname = Printable(TextOf(Member(localhost, "hostname")));
    const sonic::Queues queues = sonic::ReadQueues(root_);
    faults_ = queues.faults;
    qos_ = sonic::PortQosMaps(root_, faults_);
    ReadMarkings();
    const std::set<std::string> names = PortNames();
    if (names.size() > kMaxPorts) {
      return base::Fail(Code::kTooLarge,
                        fmt::format("it has {} ports, at most {} are read", names.size(), kMaxPorts));
    }
    std::size_t down = 0, without = 0, unread = 0;
    std::string first;  // of those that cannot be read, why
    for (const std::string& name : names) {
      const Json& port = Member(Member(root_, "PORT"), name);
      SonicPort read{Printable(name),
                     {},
                     Printable(TextOf(Member(port, "alias"))),
                     Within(std::string_view(TextOf(Member(port, "speed"))), 1, 10'000'000),
                     Printable(TextOf(Member(port, "fec")), 16),
                     "",
                     Negotiates(port)};
      if (read.negotiates) read.fec = "auto";
      const Json& map = Member(qos_, name);
      if (TextOf(Member(port, "admin_status")) == "down") {
        ++down;
        read.bare = "is shut down";
      } else if (!map.is_object() && HasPorts(qos_)) {
        ++without;
        read.bare = "has no PORT_QOS_MAP";
      }
      if (!read.bare.empty()) {
        config.bare.push_back(std::move(read));
        continue;
      }
      base::Result<lossless::PortSettings> settings = Settings(name, port, map, queues);
      if (!settings) {
        if (++unread == 1) first = settings.error().message;
        read.bare = fmt::format("{} ({})", kCannotBeRead, settings.error().message);
        config.bare.push_back(std::move(read));
        continue;
      }
      read.settings = *std::move(settings);
      config.ports.push_back(std::move(read));
    }
    if (unread > 0 && config.ports.empty()) return base::Fail(Code::kInvalid, std::move(first));
    if (down > 0) {
      Note(config, down == 1 ? "1 port is shut down and left out"
                             : fmt::format("{} ports are shut down and left out", down));
    }
    if (without > 0) {
      Note(config, without == 1 ? "1 port has no PORT_QOS_MAP and is left out"
                                : fmt::format("{} ports have no PORT_QOS_MAP and are left out", without));
    }
    if (unread > 0) {
      Note(config, fmt::format("{} cannot be read and {} left out: {}",
                               unread == 1 ? "1 port" : fmt::format("{} ports", unread),
                               unread == 1 ? "is" : "are", first));
    }
    std::stable_sort(config.ports.begin(), config.ports.end(), [](const SonicPort& a, const SonicPort& b) {
      return sonic::PortOrder(a.name) < sonic::PortOrder(b.name);
    });
    return config;
  }

 private:
  static bool HasPorts(const Json& qos) {
    return qos.is_object() && std::any_of(qos.items().begin(), qos.items().end(),
                                          [](const auto& entry) { return entry.key() != "global"; });
  }
  // "1" in older configurations (sonic-net/SONiC, doc/port_auto_neg).
  static bool Negotiates(const Json& port) {
    const std::string autoneg = TextOf(Member(port, "autoneg"));
    return autoneg == "on" || autoneg == "1";
  }
  static void Note(SonicConfig& config, std::string note) {
    if (config.notes.size() < kMaxNotes) config.notes.push_back(std::move(note));
  }

  std::set<std::string> PortNames() const {
    std::set<std::string> names;
    for (const Json* table : {&Member(root_, "PORT"), &qos_}) {
      if (!table->is_object()) continue;
      for (const auto& [name, port] : table->items()) {
        if (name != "global" && names.size() <= kMaxPorts) names.insert(name);
      }
    }
    return names;
  }

  // The map that `field` of a port names, found in `table`; null where the port names none.
  base::Result<const Json*> MapOf(std::string_view port, const Json& qos, std::string_view field,
                                  std::string_view table) const {
    const std::string name = sonic::NameIn(table, TextOf(Member(qos, field)));
    if (name.empty()) return nullptr;
    const Json& map = Member(Member(root_, table), name);
    if (map.is_object()) return &map;
    return base::Fail(Code::kInvalid, fmt::format("PORT_QOS_MAP|{}: {} names {}, which is not in {}",
                                                  Printable(port, 40), field, Printable(name, 40), table));
  }

  // Calls put(key, value) for each entry of a map of numbers; a value past the eighth is kNotSaid. A TC may be one of
  // 16, and so may a queue of a TC.
  template <class Put>
  static base::Status EachEntry(const Json& map, std::string_view table, int keys, int values, Put put) {
    for (const auto& [key, value] : map.items()) {
      const auto from = Within(std::string_view(key), 0, keys - 1);
      const auto to = Within(std::string_view(TextOf(value)), 0, values - 1);
      if (!from || !to) {
        return base::Fail(
            Code::kInvalid,
            fmt::format("{}: \"{}\": \"{}\" is not 0 to {} with a value of 0 to {}", table,
                        Printable(key, 20), Printable(TextOf(value), 20), keys - 1, values - 1));
      }
      put(std::size_t(*from), std::int8_t(*to < kPriorities ? *to : lossless::kNotSaid));
    }
    return {};
  }

  base::Status TableOf(std::string_view port, const Json& qos, std::string_view field, std::string_view table,
                       std::optional<PriorityTable>& into) const {
    ASSIGN_OR_RETURN(const Json* const map, MapOf(port, qos, field, table));
    if (map == nullptr) return {};
    into.emplace().fill(lossless::kNotSaid);
    const int keys = table.starts_with("TC_") ? kTcs : kPriorities;
    const int values = table == "TC_TO_QUEUE_MAP" ? kTcQueues : kPriorities;
    return EachEntry(*map, table, keys, values, [&](std::size_t from, std::int8_t to) {
      if (from < into->size()) (*into)[from] = to;
    });
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

  base::Result<lossless::PortSettings> Settings(const std::string& name, const Json& port, const Json& qos,
                                                const sonic::Queues& queues) const {
    if (const auto fault = faults_.find(name); fault != faults_.end())
      return base::Fail(Code::kInvalid, fault->second);
    lossless::PortSettings settings;
    TRY(ReadDscps(name, qos, settings));
    ASSIGN_OR_RETURN(settings.pfc, Priorities(name, "pfc_enable", TextOf(Member(qos, "pfc_enable"))));
    // A port without a map puts all in TC 0 (SAI, saiport.h: SAI_PORT_ATTR_QOS_DEFAULT_TC). Without PFC none of it is
    // lossless either way, and nobody asked for a map.
    if (whole_ && !settings.trust && !settings.pfc->empty())
      settings.dscp_to_priority = lossless::AllDscps(0);
    TRY(TableOf(name, qos, "tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP", settings.priority_to_group));
    TRY(TableOf(name, qos, "tc_to_queue_map", "TC_TO_QUEUE_MAP", settings.priority_to_queue));
    TRY(TableOf(name, qos, "pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE", settings.pause_to_queue));
    std::optional<PriorityTable> groups;  // by the priority of a pause
    TRY(TableOf(name, qos, "pfc_to_pg_map", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", groups));
    const PriorityTable pauses = groups ? PausesOf(*groups, *settings.pfc) : lossless::Identity();
    if (settings.priority_to_group) {
      for (std::int8_t& group : *settings.priority_to_group) {
        if (group != lossless::kNotSaid) group = pauses[std::size_t(group)];
      }
    }
    TRY(ReadWatchdog(name, qos, settings));
    PutMarking(name, settings);
    ASSIGN_OR_RETURN(settings.mtu, MtuOf(name, port));
    sonic::PutQueues(queues, name, pauses, settings);
    return settings;
  }

  // By group, of which priority the pause is that it asks for: of the one that the map has for it, of several one with
  // PFC, and of these the one of its own number. A priority that the map leaves out is the group's of its own number,
  // where the map has none for that: the template names the lossless ones alone (sonic-buildimage, qos_config.j2).
  static PriorityTable PausesOf(const PriorityTable& groups, const lossless::PrioritySet& pfc) {
    PriorityTable pauses;
    pauses.fill(lossless::kNotSaid);
    for (int priority = 0; priority < kPriorities; ++priority) {
      const int group = groups[std::size_t(priority)];
      if (group == lossless::kNotSaid) continue;
      const auto rank = [&pfc, group](int one) { return std::pair(pfc.Contains(one), one == group); };
      std::int8_t& pause = pauses[std::size_t(group)];
      if (pause == lossless::kNotSaid || rank(priority) > rank(pause)) pause = std::int8_t(priority);
    }
    for (int own = 0; own < kPriorities; ++own) {
      if (groups[std::size_t(own)] == lossless::kNotSaid && pauses[std::size_t(own)] == lossless::kNotSaid)
        pauses[std::size_t(own)] = std::int8_t(own);
    }
    return pauses;
  }

  // Of a port in a port channel that of the port channel; nothing where nobody says it.
  base::Result<std::optional<int>> MtuOf(const std::string& name, const Json& port) const {
    const auto channel = channels_.find(name);
    const bool member = channel != channels_.end();
    const Json& mtu = Member(member ? Entry(root_, "PORTCHANNEL", channel->second) : port, "mtu");
    if (mtu.is_null()) return std::nullopt;
    const std::string text = TextOf(mtu);
    const std::optional<int> bytes = Within(std::string_view(text), 68, 65535);
    if (bytes) return bytes;
    return base::Fail(Code::kInvalid,
                      fmt::format("{}|{}: mtu \"{}\" is not 68 to 65535", member ? "PORTCHANNEL" : "PORT",
                                  Printable(member ? channel->second : name, 40), Printable(text, 20)));
  }

  base::Status ReadDscps(const std::string& name, const Json& qos, lossless::PortSettings& settings) const {
    ASSIGN_OR_RETURN(const Json* map, MapOf(name, qos, "dscp_to_tc_map", "DSCP_TO_TC_MAP"));
    if (map == nullptr && !TextOf(Member(qos, "dot1p_to_tc_map")).empty()) {
      settings.trust = lossless::Trust::kPcp;
      return {};
    }
    if (map == nullptr) {
      const Json& global = Member(qos_, "global");
      ASSIGN_OR_RETURN(map, MapOf("global", global, "dscp_to_tc_map", "DSCP_TO_TC_MAP"));
    }
    if (map == nullptr) return {};
    settings.trust = lossless::Trust::kDscp;
    settings.dscp_to_priority = lossless::AllDscps(lossless::kNotSaid);
    return EachEntry(*map, "DSCP_TO_TC_MAP", lossless::kDscps, kTcs,
                     [&](std::size_t dscp, std::int8_t tc) { (*settings.dscp_to_priority)[dscp] = tc; });
  }

  // The software watchdog of a port runs where PFC_WD has an entry of it, on the queues of pfcwd_sw_enable. Before
  // 202205 there was no such field, and those of pfc_enable were watched (sonic-utilities, scripts/db_migrator.py);
  // since then a port without it has none that is (sonic-swss, orchagent/qosorch.cpp). No table that is read says how
  // old SONiC is, so nobody knows what is watched there.
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
    // Without one it is drop (sonic-swss, orchagent/pfcwdorch.cpp). Both drop and forward end the pause.
    const std::string action = TextOf(Member(entry, "action"));
    if (action == "alert") {
      settings.watchdog_ms = lossless::kWatchdogAlerts;
    } else if (!action.empty() && action != "drop" && action != "forward") {
      return base::Fail(Code::kInvalid,
                        fmt::format("PFC_WD|{}: action \"{}\" is none of drop, forward and alert",
                                    Printable(name, 40), Printable(action, 20)));
    }
    const Json& watched = Member(qos, "pfcwd_sw_enable");
    if (watched.is_null()) {
      if (settings.pfc && settings.pfc->empty()) settings.watched = lossless::PrioritySet{};
    } else {
      ASSIGN_OR_RETURN(settings.watched, Priorities(name, "pfcwd_sw_enable", TextOf(watched)));
    }
    return {};
  }

  // QUEUE|Ethernet0|3-4, QUEUE|Ethernet0,Ethernet4|3, and on a chassis QUEUE|host|asic|Ethernet0|3.
  void ReadMarkings() {
    const Json& queues = Member(root_, "QUEUE");
    if (!queues.is_object()) return;
    for (const auto& [key, queue] : queues.items()) {
      const std::string profile = sonic::NameIn("WRED_PROFILE", TextOf(Member(queue, "wred_profile")));
      if (profile.empty()) continue;
      const auto marking = sonic::MarkingOf(root_, key, profile);
      if (!marking) {
        sonic::Blame(key, marking.error().message, faults_);
      } else if (*marking) {
        AddMarking(key, **marking);
      }
    }
  }

  // Of two rows that mark one queue from elsewhere nobody knows which holds (sonic_queues.cc, PutCell): that it marks
  // is known, and from where is not.
  static void PutMarkingOf(int queue, const lossless::EcnMarking& marking,
                           std::map<int, std::optional<lossless::EcnMarking>>& of_port) {
    const auto [at, fresh] = of_port.try_emplace(queue, marking);
    if (!fresh && at->second != marking) at->second.reset();
  }

  void AddMarking(const std::string& key, const lossless::EcnMarking& marking) {
    const auto range = sonic::ParseRangeKey(key);
    if (!range) {
      return sonic::Blame(
          key, fmt::format("QUEUE|{}: this is not PORT|QUEUE with queues 0 to 63", Printable(key, 60)),
          faults_);
    }
    for (const std::string& port : range->ports) {
      auto& of_port = markings_[port];
      // A chassis has up to 10 queues; those past the eighth carry no priority.
      for (int queue = range->first; queue <= std::min(range->last, kPriorities - 1); ++queue)
        PutMarkingOf(queue, marking, of_port);
      if (markings_.size() > kMaxPorts) break;
    }
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
      if (marking->second) settings.marking->emplace(priority, *marking->second);
    }
  }

  const Json& root_;
  Json qos_;                                           // PORT_QOS_MAP, by port
  const bool whole_;                                   // with PORT: what it lacks is off
  const std::map<std::string, std::string> channels_;  // by port
  std::map<std::string, std::map<int, std::optional<lossless::EcnMarking>>> markings_;  // by port and queue
  std::map<std::string, std::string> faults_;                                           // of queues, by port
};

}  // namespace

base::Result<SonicConfig> ParseSonicConfig(std::string_view json) {
  ASSIGN_OR_RETURN(const Json root, sonic::Parse(json));
  return Reader(root).Read();
}

base::Result<nlohmann::json> ParseSonicTables(std::string_view json) {
  return sonic::Parse(json);
}

base::Result<SonicConfig> ReadSonicTables(const nlohmann::json& tables) {
  return Reader(tables).Read();
}

}  // namespace heddle::formats
