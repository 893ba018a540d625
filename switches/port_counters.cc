#include "switches/port_counters.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <charconv>
#include <string_view>
#include <utility>

#include "base/kept_parser.h"
#include "switches/openconfig_ports.h"

namespace heddle::switches {
namespace {

namespace dom = simdjson::dom;
using crds::Json;

constexpr const char* kCounters = "COUNTERS";
constexpr const char* kEthernets = "Ethernet*";
constexpr const char* kQueues = "Queues";
constexpr const char* kWatchdog = "Pfcwd";
constexpr const char* kPortTable = "PORT_TABLE";
constexpr const char* kInterfaces = "INTERFACE_COUNTERS";
constexpr std::size_t kMaxName = 64;
constexpr std::uint64_t kMaxSpeedMbps = 10'000'000;

// Nothing where it is anything but decimal digits that fit.
std::optional<std::uint64_t> CountIn(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Of a JSON string or number.
std::optional<std::uint64_t> CountOf(const Json& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_number_integer() && value.get<std::int64_t>() >= 0)
    return std::uint64_t(value.get<std::int64_t>());
  return value.is_string() ? CountIn(value.get_ref<const std::string&>()) : std::nullopt;
}

std::optional<std::uint64_t> CountOf(dom::element value) {
  std::uint64_t number = 0;
  std::string_view text;
  if (value.get(number) == simdjson::SUCCESS) return number;
  return value.get(text) == simdjson::SUCCESS ? CountIn(text) : std::nullopt;
}

// Empty where it is no string.
std::string_view TextOf(dom::element value) {
  std::string_view text;
  return value.get(text) == simdjson::SUCCESS ? text : std::string_view();
}

std::optional<int> PriorityOf(std::string_view digits) {
  if (digits.size() != 1 || digits[0] < '0' || digits[0] >= '0' + kCountedPriorities) return std::nullopt;
  return digits[0] - '0';
}

// The counters of a sample by port, as many as there may be.
PortCounters* PortIn(CounterSample& sample, const std::string& name) {
  if (name.empty() || name.size() > kMaxName) return nullptr;
  const auto found = sample.ports.find(name);
  if (found != sample.ports.end()) return &found->second;
  if (sample.ports.size() >= kMaxCountedPorts) return nullptr;
  return &sample.ports[name];
}

// Where a counter that is named so goes; null where it is none that we want.
std::optional<std::uint64_t>* FieldOf(std::string_view name, PortCounters& port) {
  constexpr std::string_view kStat = "SAI_PORT_STAT_";
  if (!name.starts_with(kStat)) return nullptr;
  name.remove_prefix(kStat.size());
  if (name == "IF_IN_ERRORS") return &port.in_errors;
  if (name == "IF_IN_FEC_NOT_CORRECTABLE_FRAMES") return &port.uncorrected;
  if (name == "IF_IN_FEC_SYMBOL_ERRORS") return &port.fec_symbols;
  if (name == "IF_IN_DISCARDS") return &port.in_discards;
  if (name == "IF_OUT_DISCARDS") return &port.out_discards;
  if (name == "IF_IN_UCAST_PKTS") return &port.in_packets;
  if (name == "IF_OUT_UCAST_PKTS") return &port.out_packets;
  if (!name.starts_with("PFC_") || name.size() < 5) return nullptr;
  const std::optional<int> priority = PriorityOf(name.substr(4, 1));
  if (!priority) return nullptr;
  const std::string_view rest = name.substr(5);
  if (rest == "_RX_PKTS") return &port.pfc_received[std::size_t(*priority)];
  if (rest == "_TX_PKTS") return &port.pfc_sent[std::size_t(*priority)];
  return nullptr;
}

class Sonic {
 public:
  Sonic(const NamesByAlias& names, base::MonotonicTime at) : names_(names) { sample_.at = at; }

  CounterSample Run(const std::map<Steps, std::string>& answers) && {
    // First, since it says what the others call its ports.
    for (const auto& [steps, answer] : answers) {
      if (steps.empty() || steps[0] != kPortTable || steps.size() > 2) continue;
      Parse(answer, [this, &steps = steps](const dom::object& table) {
        if (steps.size() == 2) return ReadPort(steps[1], table);
        for (const auto [name, row] : table) {
          if (dom::object fields; row.get(fields) == simdjson::SUCCESS) ReadPort(name, fields);
        }
      });
    }
    for (const auto& [steps, answer] : answers) {
      if (steps.empty()) continue;
      const bool interfaces = steps[0] == kInterfaces && steps.size() == 1;
      if (!interfaces && (steps[0] != kCounters || steps.size() < 2)) continue;
      Parse(answer, [this, &steps = steps, interfaces](const dom::object& table) {
        if (interfaces) return ReadRows(table, true);
        ReadCounters(steps, table);
      });
    }
    return std::move(sample_);
  }

 private:
  // Nothing of what is no JSON object is read.
  template <class Read>
  static void Parse(const std::string& json, Read read) {
    base::KeptParser parser;
    dom::object object;
    if (parser.Parse(json).get(object) == simdjson::SUCCESS) read(object);
  }

  void ReadCounters(const Steps& steps, const dom::object& answer) {
    const bool queues = steps.size() == 3 && (steps[2] == kQueues || steps[2] == kWatchdog);
    const bool all = steps[1] == kEthernets;
    if (queues) {
      ReadQueues(answer, !all);
    } else if (all) {
      ReadRows(answer, false);
    } else if (steps.size() == 2) {
      ReadRow(PortIn(sample_, steps[1]), answer);
    }
  }

  // PORT_TABLE has rows that are no ports: PortConfigDone, PortInitDone.
  void ReadPort(std::string_view name, const dom::object& row) {
    std::optional<dom::element> status, flaps, speed;
    std::string_view alias;
    for (const auto [field, value] : row) {
      if (field == "oper_status") status = value;
      if (field == "flap_count") flaps = value;
      if (field == "speed") speed = value;
      if (field == "alias") alias = TextOf(value);
    }
    if (!status && !flaps && !speed) return;
    PortCounters* port = PortIn(sample_, std::string(name));
    if (port == nullptr) return;
    const std::string_view state = status ? TextOf(*status) : std::string_view();
    if (state == "up" || state == "down") port->up = state == "up";
    if (flaps) port->state_changes = CountOf(*flaps);
    const auto mbps = speed ? CountOf(*speed) : std::nullopt;
    if (mbps && *mbps > 0 && *mbps <= kMaxSpeedMbps) port->speed_mbps = int(*mbps);
    if (!alias.empty()) said_[std::string(alias)] = name;
  }

  // A table of rows: by alias, or of INTERFACE_COUNTERS by name.
  void ReadRows(const dom::object& table, bool by_name) {
    std::size_t place = 0;
    for (const auto [key, row] : table) {
      dom::object fields;
      if (row.get(fields) != simdjson::SUCCESS) continue;
      ReadRow(by_name ? PortIn(sample_, std::string(key)) : PortAt(place++, key), fields);
    }
  }

  // Every table has the same aliases in the same order, so nearly always it is the one that stood there in the first.
  PortCounters* PortAt(std::size_t place, std::string_view alias) {
    if (place < order_.size() && order_[place].first == alias) return order_[place].second;
    PortCounters* port = PortIn(sample_, NameOf(alias));
    if (place == order_.size()) order_.emplace_back(alias, port);
    return port;
  }

  static void ReadRow(PortCounters* port, const dom::object& row) {
    if (port == nullptr) return;
    for (const auto [field, value] : row) {
      if (auto* counter = FieldOf(field, *port)) *counter = CountOf(value);
    }
  }

  // "etp1:3", and of a port that was asked for by its name "Ethernet0:3"; "etp1:3:periodic" counts nothing.
  void ReadQueues(const dom::object& table, bool by_name) {
    for (const auto [key, row] : table) {
      dom::object fields;
      const std::size_t colon = key.find(':');
      if (colon == std::string_view::npos || row.get(fields) != simdjson::SUCCESS) continue;
      const std::optional<int> queue = PriorityOf(key.substr(colon + 1));
      if (!queue) continue;
      const std::string_view alias = key.substr(0, colon);
      PortCounters* port = PortIn(sample_, by_name ? std::string(alias) : NameOf(alias));
      if (port != nullptr) ReadQueue(*queue, fields, *port);
    }
  }

  static void ReadQueue(int queue, const dom::object& row, PortCounters& port) {
    for (const auto [field, value] : row) {
      const auto take = [queue, value = value](std::map<int, std::uint64_t>& counts) {
        if (const auto count = CountOf(value)) counts[queue] = *count;
      };
      if (field == "SAI_QUEUE_STAT_DROPPED_PACKETS") take(port.queue_drops);
      if (field == "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS") take(port.ecn_marked);
      if (field == "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED") take(port.storms);
      if (field == "PFC_WD_STATUS" && TextOf(value) == "stormed") port.storming.insert(queue);
    }
  }

  // Empty where an alias is not known; many switches have none and say the name itself.
  std::string NameOf(std::string_view alias) const {
    for (const auto* names : {&said_, &names_}) {
      if (const auto found = names->find(alias); found != names->end()) return found->second;
    }
    return alias.starts_with("Ethernet") ? std::string(alias) : std::string();
  }

  std::vector<std::pair<std::string, PortCounters*>> order_;  // by place in a table; null = no port of ours
  const NamesByAlias& names_;
  NamesByAlias said_;  // by PORT_TABLE, likewise by alias
  CounterSample sample_;
};

// A tree of OpenConfig's models, or a branch of one.
class OpenConfig {
 public:
  explicit OpenConfig(base::MonotonicTime at) { sample_.at = at; }

  CounterSample Run(const std::map<Steps, Json>& answers) && {
    for (const auto& [steps, answer] : answers)
      Read(steps.empty() ? "" : WithoutModel(steps.back()), answer, {}, 0);
    return std::move(sample_);
  }

 private:
  static constexpr int kMaxDepth = 12;

  struct Place {
    std::string port;
    std::optional<int> queue;
    bool in_queue = false;
  };

  static std::string NameIn(const Json& object) {
    for (const auto& [key, value] : object.items()) {
      const std::string_view plain = WithoutModel(key);
      if ((plain == "name" || plain == "interface-id") && value.is_string()) return value.get<std::string>();
    }
    return "";
  }

  // What is on the way to a counter of a port; not subinterfaces, which count for themselves.
  static bool LeadsOn(std::string_view key) {
    for (const std::string_view known :
         {"interfaces", "interface", "state", "counters", "ethernet", "qos", "output", "queues", "queue"}) {
      if (key == known) return true;
    }
    return false;
  }

  void Read(std::string_view key, const Json& value, Place place, int depth) {
    if (depth > kMaxDepth) return;
    if (value.is_array()) {
      for (const Json& one : value) {
        if (one.is_object()) Read(key, one, place, depth + 1);
      }
      return;
    }
    if (!value.is_object()) return;
    const std::string name = NameIn(value);
    if (key == "queue") {
      place.in_queue = true;
      place.queue = PriorityOf(name);
    } else if (!name.empty() && !place.in_queue) {
      place.port = name;
    }
    for (const auto& [field, inner] : value.items()) {
      const std::string_view plain = WithoutModel(field);
      if (inner.is_structured()) {
        if (LeadsOn(plain)) Read(plain, inner, place, depth + 1);
      } else if (!place.port.empty()) {
        Take(plain, inner, place);
      }
    }
  }

  void Take(std::string_view field, const Json& value, const Place& place) {
    if (place.in_queue) return TakeOfQueue(field, value, place);
    const auto count = CountOf(value);
    if (field == "oper-status") {
      const bool up = value == "UP";
      if (up || value == "DOWN") Set(place, [&](PortCounters& port) { port.up = up; });
    } else if ((field == "port-speed" || field == "negotiated-port-speed") && value.is_string()) {
      const std::optional<int> speed = OpenConfigSpeed(value.get_ref<const std::string&>());
      const bool negotiated = field == "negotiated-port-speed";
      if (!speed) return;
      Set(place, [&](PortCounters& port) {
        port.speed_mbps = negotiated ? *speed : port.speed_mbps.value_or(*speed);
      });
    } else if (count) {
      Set(place, [&](PortCounters& port) {
        // carrier-transitions is what interface-transitions was called before 2024.
        if (field == "interface-transitions" || (field == "carrier-transitions" && !port.state_changes))
          port.state_changes = count;
        if (field == "in-errors") port.in_errors = count;
        if (field == "fec-uncorrectable-blocks") port.uncorrected = count;
        if (field == "in-discards") port.in_discards = count;
        if (field == "out-discards") port.out_discards = count;
        if (field == "in-unicast-pkts") port.in_packets = count;
        if (field == "out-unicast-pkts") port.out_packets = count;
      });
    }
  }

  void TakeOfQueue(std::string_view field, const Json& value, const Place& place) {
    const auto count = CountOf(value);
    if (!count || !place.queue) return;
    if (field == "dropped-pkts")
      Set(place, [&](PortCounters& port) { port.queue_drops[*place.queue] = *count; });
    if (field == "ecn-marked-pkts")
      Set(place, [&](PortCounters& port) { port.ecn_marked[*place.queue] = *count; });
  }

  template <class Change>
  void Set(const Place& place, Change change) {
    if (PortCounters* port = PortIn(sample_, place.port)) change(*port);
  }

  CounterSample sample_;
};

}  // namespace

FlapsBy FlapsSeenBy(const CounterSample& sample) {
  FlapsBy by = FlapsBy::kUnknown;
  for (const auto& [name, port] : sample.ports) {
    if (port.state_changes) return FlapsBy::kCounter;
    if (port.up == true) by = FlapsBy::kState;
  }
  return by;
}

std::vector<Steps> SonicCounterPaths(const lossless::PrioritySet& paused) {
  std::vector<Steps> paths;
  for (const char* field : {"IF_IN_ERRORS", "IF_IN_FEC_NOT_CORRECTABLE_FRAMES", "IF_IN_FEC_SYMBOL_ERRORS",
                            "IF_IN_DISCARDS", "IF_OUT_DISCARDS", "IF_IN_UCAST_PKTS", "IF_OUT_UCAST_PKTS"}) {
    paths.push_back({kCounters, kEthernets, fmt::format("SAI_PORT_STAT_{}", field)});
  }
  for (const int priority : paused.Members()) {
    for (const char* way : {"RX", "TX"})
      paths.push_back({kCounters, kEthernets, fmt::format("SAI_PORT_STAT_PFC_{}_{}_PKTS", priority, way)});
  }
  return paths;
}

CounterSample ReadSonicCounters(const std::map<Steps, std::string>& answers, const NamesByAlias& names,
                                base::MonotonicTime at) {
  return Sonic(names, at).Run(answers);
}

CounterSample ReadOpenConfigCounters(const std::map<Steps, Json>& answers, base::MonotonicTime at) {
  return OpenConfig(at).Run(answers);
}

}  // namespace heddle::switches
