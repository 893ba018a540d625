#include "formats/sonic_yang.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>

#include "formats/printable.h"
#include "formats/scanner.h"
#include "formats/sonic_tables.h"

namespace heddle::formats {
namespace {

using sonic::Entry;
using sonic::Json;
using sonic::Member;
using sonic::TextOf;

constexpr std::size_t kMaxFaults = 1000;
constexpr std::int64_t kAnything = std::int64_t{1} << 62;

// One row of a table with numbers as keys: DSCP_TO_TC_MAP and its like.
struct MapRules {
  std::string_view table;
  std::string_view model;
  std::int64_t keys;
  std::int64_t values;
};
// Traffic classes go to 15 (sonic-types.yang, tc_type), groups and queues of a PFC priority to 7.
constexpr std::array kMaps{
    MapRules{"DSCP_TO_TC_MAP", "sonic-dscp-tc-map.yang", 63, 15},
    MapRules{"TC_TO_PRIORITY_GROUP_MAP", "sonic-tc-priority-group-map.yang", 15, 7},
    MapRules{"TC_TO_QUEUE_MAP", "sonic-tc-queue-map.yang", 15, 15},
    MapRules{"MAP_PFC_PRIORITY_TO_QUEUE", "sonic-pfc-priority-queue-map.yang", 7, 7},
    MapRules{"PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", "sonic-pfc-priority-priority-group-map.yang", 7, 7}};

class Checker {
 public:
  explicit Checker(const Json& root) : root_(root) {}

  std::vector<SonicFault> Run() && {
    for (const MapRules& rules : kMaps) Map(rules);
    Ports();
    PortMaps();
    Schedulers();
    Wred();
    Queues();
    Pools();
    Buffers();
    Cables();
    Watchdogs();
    return std::move(faults_);
  }

 private:
  void Fault(const std::string& where, std::string what, std::string_view model) {
    if (faults_.size() < kMaxFaults)
      faults_.push_back({Printable(where, 120), std::move(what), std::string(model)});
  }
  // Calls each(key, entry) for the entries of a table.
  template <class Each>
  void InTable(std::string_view table, Each each) {
    const Json& entries = Member(root_, table);
    if (!entries.is_object()) return;
    for (const auto& [key, entry] : entries.items()) each(key, entry);
  }
  static std::string Quoted(const std::string& text) { return "\"" + Printable(text, 40) + "\""; }

  // A number of a field; nothing where it is absent or was found wrong.
  std::optional<std::int64_t> Range(const std::string& where, const Json& entry, std::string_view field,
                                    std::int64_t least, std::int64_t most, std::string_view model) {
    const Json& value = Member(entry, field);
    if (value.is_null()) return std::nullopt;
    const std::string text = TextOf(value);
    const auto number = Within(std::string_view(text), least, most);
    if (!number) {
      Fault(fmt::format("{} {}", where, field),
            most == kAnything ? fmt::format("{} is no number", Quoted(text))
                              : fmt::format("{} is not {} to {}", Quoted(text), least, most),
            model);
    }
    return number;
  }
  void Word(const std::string& where, const Json& entry, std::string_view field,
            std::initializer_list<std::string_view> words, std::string_view model) {
    const Json& value = Member(entry, field);
    const std::string text = TextOf(value);
    if (value.is_null() || std::find(words.begin(), words.end(), text) != words.end()) return;
    Fault(fmt::format("{} {}", where, field),
          fmt::format("{} is none of {}", Quoted(text), fmt::join(words.begin(), words.end(), ", ")), model);
  }
  void Reference(const std::string& where, const Json& entry, std::string_view field, std::string_view table,
                 std::string_view model, bool may_be_null = false) {
    const std::string name = sonic::NameIn(table, TextOf(Member(entry, field)));
    if (name.empty() || (may_be_null && name == "NULL") || Entry(root_, table, name).is_object()) return;
    Fault(fmt::format("{} {}", where, field), fmt::format("{} is not in {}", Quoted(name), table), model);
  }
  void PortThere(const std::string& where, const std::string& port, std::string_view model) {
    if (!Member(root_, "PORT").is_object() || Entry(root_, "PORT", port).is_object()) return;
    Fault(where, fmt::format("there is no port {}", Quoted(port)), model);
  }

  // [a-zA-Z0-9]{1}([-a-zA-Z0-9_]{0,31})
  void Name(const std::string& where, const std::string& name, std::string_view model) {
    constexpr std::string_view kFirst = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const bool good =
        !name.empty() && name.size() <= 32 && kFirst.find(name.front()) != std::string_view::npos &&
        std::all_of(name.begin(), name.end(),
                    [&](char c) { return kFirst.find(c) != std::string_view::npos || c == '-' || c == '_'; });
    if (!good) Fault(where, "a name is 1 to 32 letters, digits, - and _, and begins with no sign", model);
  }

  void Map(const MapRules& rules) {
    InTable(rules.table, [&](const std::string& name, const Json& map) {
      const std::string where = fmt::format("{}|{}", rules.table, name);
      Name(where, name, rules.model);
      if (!map.is_object()) return Fault(where, "is no map", rules.model);
      for (const auto& [key, value] : map.items()) {
        if (!Within(std::string_view(key), std::int64_t{0}, rules.keys))
          Fault(where, fmt::format("{} is not 0 to {}", Quoted(key), rules.keys), rules.model);
        Range(where, map, key, 0, rules.values, rules.model);
      }
    });
  }

  void Ports() {
    constexpr std::string_view kModel = "sonic-port.yang";
    InTable("PORT", [&](const std::string& port, const Json& entry) {
      const std::string where = "PORT|" + port;
      Range(where, entry, "mtu", 68, 9216, kModel);
      // Mb/s; older models stop at 800000.
      Range(where, entry, "speed", 1, 1'600'000, kModel);
      Word(where, entry, "fec", {"rs", "fc", "none", "auto"}, kModel);
      Word(where, entry, "admin_status", {"up", "down"}, kModel);
    });
  }

  // ([0-7](,[0-7])*)?
  static bool IsList(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (i % 2 == 0 ? text[i] < '0' || text[i] > '7' : text[i] != ',') return false;
    }
    return text.size() % 2 == 1 || text.empty();
  }

  void PortMaps() {
    constexpr std::string_view kModel = "sonic-port-qos-map.yang";
    InTable("PORT_QOS_MAP", [&](const std::string& port, const Json& entry) {
      const std::string where = "PORT_QOS_MAP|" + port;
      if (port.find(',') != std::string::npos) {
        Fault(where, "names several ports, and a row is of one", kModel);
      } else if (port != "global") {
        PortThere(where, port, kModel);
      }
      for (const auto& [field, table] : {std::pair{"dscp_to_tc_map", "DSCP_TO_TC_MAP"},
                                         std::pair{"tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP"},
                                         std::pair{"tc_to_queue_map", "TC_TO_QUEUE_MAP"},
                                         std::pair{"pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE"},
                                         std::pair{"scheduler", "SCHEDULER"}}) {
        Reference(where, entry, field, table, kModel);
      }
      // Tables that no lossless setting stands in, and that a switch over gNMI is not asked for.
      for (const auto& [field, table] : {std::pair{"dot1p_to_tc_map", "DOT1P_TO_TC_MAP"},
                                         std::pair{"pfc_to_pg_map", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"}}) {
        if (Member(root_, table).is_object()) Reference(where, entry, field, table, kModel);
      }
      for (const char* field : {"pfc_enable", "pfcwd_sw_enable"}) {
        const std::string text = TextOf(Member(entry, field));
        if (!IsList(text))
          Fault(fmt::format("{} {}", where, field), Quoted(text) + " is no list as 3,4, without spaces",
                kModel);
      }
    });
  }

  void Schedulers() {
    constexpr std::string_view kModel = "sonic-scheduler.yang";
    InTable("SCHEDULER", [&](const std::string& name, const Json& entry) {
      const std::string where = "SCHEDULER|" + name;
      Word(where, entry, "type", {"DWRR", "WRR", "STRICT"}, kModel);
      Range(where, entry, "weight", 1, 100, kModel);
    });
  }

  void Wred() {
    constexpr std::string_view kModel = "sonic-wred-profile.yang";
    InTable("WRED_PROFILE", [&](const std::string& name, const Json& entry) {
      const std::string where = "WRED_PROFILE|" + name;
      Name(where, name, kModel);
      Word(where, entry, "ecn",
           {"ecn_none", "ecn_green", "ecn_yellow", "ecn_red", "ecn_green_yellow", "ecn_green_red",
            "ecn_yellow_red", "ecn_all"},
           kModel);
      for (const std::string colour : {"green", "yellow", "red"}) {
        Word(where, entry, "wred_" + colour + "_enable", {"true", "false"}, kModel);
        Range(where, entry, colour + "_drop_probability", 0, 100, kModel);
        Range(where, entry, "ecn_" + colour + "_mark_probability", 0, 100, kModel);
        for (const std::string prefix : {"", "ecn_"}) {
          const std::string most = prefix + colour + "_max_threshold";
          const auto max = Range(where, entry, most, 0, kAnything, kModel);
          const auto min = Range(where, entry, prefix + colour + "_min_threshold", 0, kAnything, kModel);
          if (max && min && *max < *min)
            Fault(fmt::format("{} {}", where, most),
                  fmt::format("{} is less than where it begins, {}", *max, *min), kModel);
        }
      }
    });
  }

  void Queues() {
    constexpr std::string_view kModel = "sonic-queue.yang";
    InTable("QUEUE", [&](const std::string& key, const Json& entry) {
      const std::string where = "QUEUE|" + key;
      const auto range = sonic::ParseRangeKey(key);
      if (!range || range->first > range->last)
        return Fault(where, "is not PORT|QUEUE or PORT|FROM-TO", kModel);
      for (const std::string& port : range->ports) {
        if (port != "CPU" && !range->chassis) PortThere(where, port, kModel);
      }
      Reference(where, entry, "scheduler", "SCHEDULER", kModel);
      Reference(where, entry, "wred_profile", "WRED_PROFILE", kModel);
    });
  }

  void Pools() {
    constexpr std::string_view kModel = "sonic-buffer-pool.yang";
    InTable("BUFFER_POOL", [&](const std::string& name, const Json& entry) {
      const std::string where = "BUFFER_POOL|" + name;
      for (const char* field : {"type", "mode"}) {
        if (Member(entry, field).is_null())
          Fault(fmt::format("{} {}", where, field), "is missing, and a pool must have it", kModel);
      }
      Word(where, entry, "type", {"ingress", "egress", "both"}, kModel);
      Word(where, entry, "mode", {"static", "dynamic"}, kModel);
      for (const char* field : {"size", "xoff"}) Range(where, entry, field, 0, kAnything, kModel);
      Range(where, entry, "percentage", 0, 255, kModel);
      if (Member(entry, "percentage").is_null()) return;
      if (!Member(entry, "size").is_null())
        Fault(where + " percentage", "stands beside a size, and a pool has one of both", kModel);
      if (TextOf(Member(Entry(root_, "DEVICE_METADATA", "localhost"), "buffer_model")) != "dynamic")
        Fault(where + " percentage", "is for switches that size buffers themselves (buffer_model dynamic)",
              kModel);
    });
  }

  // [0-9]+m; later models have None, too, of a port without a cable.
  static bool IsLength(std::string_view text) {
    if (text == "None") return true;
    return text.size() > 1 && text.back() == 'm' &&
           std::all_of(text.begin(), text.end() - 1, [](char c) { return c >= '0' && c <= '9'; });
  }

  void Cables() {
    constexpr std::string_view kModel = "sonic-cable-length.yang";
    InTable("CABLE_LENGTH", [&](const std::string& name, const Json& lengths) {
      const std::string where = "CABLE_LENGTH|" + name;
      Name(where, name, kModel);
      if (!lengths.is_object()) return Fault(where, "is no list of ports and lengths", kModel);
      for (const auto& [port, length] : lengths.items()) {
        const std::string of_port = fmt::format("{} {}", where, port);
        PortThere(of_port, port, kModel);
        if (!IsLength(TextOf(length)))
          Fault(of_port, Quoted(TextOf(length)) + " is no length as 5m, in metres", kModel);
      }
    });
  }

  void Buffers() {
    InTable("BUFFER_PROFILE", [&](const std::string& name, const Json& entry) {
      constexpr std::string_view kModel = "sonic-buffer-profile.yang";
      const std::string where = "BUFFER_PROFILE|" + name;
      if (Member(root_, "BUFFER_POOL").is_object()) Reference(where, entry, "pool", "BUFFER_POOL", kModel);
      for (const char* field : {"size", "xon", "xoff", "xon_offset", "static_th"})
        Range(where, entry, field, 0, kAnything, kModel);
      // As SAI takes it: a power of two of what is free.
      Range(where, entry, "dynamic_th", -8, 7, kModel);
    });
    for (const auto& [table, model, most] : {std::tuple{"BUFFER_PG", "sonic-buffer-pg.yang", 7},
                                             std::tuple{"BUFFER_QUEUE", "sonic-buffer-queue.yang", 63}}) {
      InTable(table,
              [&, table = table, model = model, most = most](const std::string& key, const Json& entry) {
                const std::string where = fmt::format("{}|{}", table, key);
                const auto range = sonic::ParseRangeKey(key);
                if (!range || range->first > range->last || range->last > most)
                  return Fault(where, fmt::format("is not PORT|N or PORT|FROM-TO with 0 to {}", most), model);
                for (const std::string& port : range->ports) {
                  if (!range->chassis) PortThere(where, port, model);
                }
                if (Member(root_, "BUFFER_PROFILE").is_object())
                  Reference(where, entry, "profile", "BUFFER_PROFILE", model, true);
              });
    }
  }

  void Watchdogs() {
    constexpr std::string_view kModel = "sonic-pfcwd.yang";
    const Json& global = Entry(root_, "PFC_WD", "GLOBAL");
    const auto poll = Range("PFC_WD|GLOBAL", global, "POLL_INTERVAL", 100, 1000, kModel);
    InTable("PFC_WD", [&](const std::string& port, const Json& entry) {
      if (port == "GLOBAL") return;
      const std::string where = "PFC_WD|" + port;
      PortThere(where, port, kModel);
      Word(where, entry, "action", {"drop", "forward", "alert"}, kModel);
      for (const auto& [field, most] :
           {std::pair{"detection_time", 5000}, std::pair{"restoration_time", 60'000}}) {
        const auto time = Range(where, entry, field, 100, most, kModel);
        if (time && poll && *time < *poll)
          Fault(fmt::format("{} {}", where, field),
                fmt::format("{} is less than the POLL_INTERVAL of {}", *time, *poll), kModel);
      }
    });
  }

  const Json& root_;
  std::vector<SonicFault> faults_;
};

}  // namespace

base::Result<std::vector<SonicFault>> CheckSonic(std::string_view config) {
  ASSIGN_OR_RETURN(const Json root, sonic::Parse(config));
  return Checker(root).Run();
}

}  // namespace heddle::formats
