#include "switches/ufm.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "crds/object_meta.h"
#include "formats/json_bounds.h"
#include "formats/printable.h"

namespace heddle::switches {
namespace {

using base::Code;
using base::Fail;
using crds::Json;

constexpr int kPortsPerPage = 1000;
constexpr std::size_t kMaxName = 128;  // as topology has it of a leaf
constexpr std::size_t kMaxDescription = 256;
constexpr int kMaxNumber = 255;  // of an InfiniBand port
constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxPageValues = 1'000'000;
// A port has some forty counters.
constexpr std::size_t kMaxCounterValues = kMaxUfmPorts * 64;
constexpr std::string_view kSwitchPort = "Switch";  // "Switch IB Port", beside "Computer IB Port"

// Where one counter goes.
using Counter = std::optional<std::uint64_t> PortCounters::*;
struct Named {
  std::string_view name;
  Counter to;
};
// "Monitoring REST API", possible attribute values.
constexpr auto kCounters = std::to_array<Named>({
    {"Infiniband_LinkDowned", &PortCounters::link_downs},
    {"Infiniband_SymbolErrors", &PortCounters::symbol_errors},
    {"Infiniband_LinkRecovers", &PortCounters::link_recoveries},
    {"Infiniband_LinkIntegrityErrors", &PortCounters::integrity_errors},
    {"Infiniband_ExcBufOverrunErrors", &PortCounters::buffer_overruns},
    {"Infiniband_RcvErrors", &PortCounters::in_errors},
    {"Infiniband_XmitWait", &PortCounters::wait_ticks},
    {"Infiniband_PckIn", &PortCounters::in_packets},
    {"Infiniband_PckOut", &PortCounters::out_packets},
});

const Named* FindCounter(std::string_view name) {
  for (const Named& one : kCounters) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

// Numbers, and the texts of numbers that older versions write.
std::optional<std::uint64_t> CountOf(const Json& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_number_float()) {
    constexpr double kExact = 9007199254740992.0;  // 2^53: above it a double skips numbers
    const double number = value.get<double>();
    if (!(number >= 0 && number <= kExact) || std::floor(number) != number) return std::nullopt;
    return std::uint64_t(number);
  }
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.get_ref<const std::string&>();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string TextAt(const Json& object, const char* key, std::size_t most) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return "";
  std::string text = formats::Printable(found->get_ref<const std::string&>(), most);
  return text == "N/A" || text == "NA" || text == "None" ? "" : text;
}

int NumberAt(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return 0;
  const std::optional<std::uint64_t> number = CountOf(*found);
  return number && *number <= std::uint64_t(kMaxNumber) ? int(*number) : 0;
}

bool IsGuid(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Nothing where it is no port that can be named.
std::optional<UfmPort> ReadPort(const Json& object) {
  if (!object.is_object()) return std::nullopt;
  UfmPort port;
  port.name = TextAt(object, "name", kMaxName);
  const std::size_t line = port.name.find('_');
  port.guid = port.name.substr(0, line);
  if (line == std::string::npos || !IsGuid(port.guid)) return std::nullopt;
  port.number = NumberAt(object, "number");
  if (port.number == 0 || port.name.substr(line + 1) != std::to_string(port.number)) return std::nullopt;
  port.system = TextAt(object, "system_name", kMaxName);
  if (port.system.empty()) port.system = port.guid;
  port.peer = TextAt(object, "peer", kMaxName);
  port.peer_system = TextAt(object, "peer_node_name", kMaxName);
  port.peer_description = TextAt(object, "peer_node_description", kMaxDescription);
  return port;
}

bool IsOfSwitch(const Json& object) {
  return TextAt(object, "description", kMaxName).starts_with(kSwitchPort);
}

base::Result<UfmPortPage> ReadList(const Json& list) {
  UfmPortPage page;
  page.entries = list.size();
  for (const Json& object : list) {
    std::optional<UfmPort> port = ReadPort(object);
    if (!port) {
      ++page.unread;
    } else if (IsOfSwitch(object)) {
      page.ports.push_back(*std::move(port));
    }
  }
  if (page.entries > 0 && page.unread == page.entries)
    return Fail(Code::kInvalid, "UFM's ports: none of them has a name and a number");
  return page;
}

// Keeps of the counters those that are read: a port has forty, and there are as many ports as a fabric has.
bool IsKept(int depth, Json::parse_event_t event, Json& parsed) {
  if (event != Json::parse_event_t::key) return true;
  const std::string& key = parsed.get_ref<const std::string&>();
  if (depth == 4) return key == "statistics";
  return depth != 5 || FindCounter(key) != nullptr;
}

// Whether there was any.
bool ReadStatistics(const Json& statistics, PortCounters& port) {
  bool any = false;
  for (const auto& [name, value] : statistics.items()) {
    const Named* counter = FindCounter(name);
    const std::optional<std::uint64_t> count = counter == nullptr ? std::nullopt : CountOf(value);
    if (!count) continue;
    port.*(counter->to) = count;
    any = true;
  }
  return any;
}

}  // namespace

std::string UfmPortsTarget(int page) {
  return fmt::format("{}?page_number={}&rpp={}", kUfmPorts, page, kPortsPerPage);
}

base::Result<UfmPortPage> ReadUfmPorts(std::string_view body, int page) {
  if (!formats::IsBounded(body, kMaxPageValues * kMaxDepth, kMaxDepth))
    return Fail(Code::kTooLarge, "UFM's ports: too deep, or too many");
  const Json json = Json::parse(body, nullptr, false);
  if (json.is_discarded()) return Fail(Code::kInvalid, "UFM's ports: no JSON");
  if (json.is_array()) return ReadList(json);
  const auto data = json.is_object() ? json.find("data") : json.end();
  if (!json.is_object() || data == json.end() || !data->is_array())
    return Fail(Code::kInvalid, "UFM's ports: neither a list nor a page of one");
  ASSIGN_OR_RETURN(UfmPortPage read, ReadList(*data));
  const auto all = json.find("filtered_resources");
  const std::optional<std::uint64_t> count = all == json.end() ? std::nullopt : CountOf(*all);
  const std::uint64_t seen = std::uint64_t(page) * kPortsPerPage;
  read.more = read.entries > 0 && (count ? seen < *count : read.entries >= std::size_t(kPortsPerPage));
  return read;
}

base::Result<UfmCounters> ReadUfmCounters(std::string_view body) {
  if (!formats::IsBounded(body, kMaxCounterValues, kMaxDepth))
    return Fail(Code::kTooLarge, "UFM's counters: too deep, or too many");
  const Json json = Json::parse(body, IsKept, false);
  if (json.is_discarded()) return Fail(Code::kInvalid, "UFM's counters: no JSON");
  if (!json.is_object() || json.empty())
    return Fail(Code::kInvalid, "UFM's counters: no object of times; does its monitoring run?");
  const auto last = std::prev(json.end());
  UfmCounters counters;
  counters.taken = formats::Printable(last.key(), kMaxName);
  if (!last->is_object()) return Fail(Code::kInvalid, "UFM's counters: nothing is in their time");
  for (const Json& of_class : *last) {
    if (!of_class.is_object()) continue;
    for (const auto& [name, entry] : of_class.items()) {
      const auto statistics = entry.is_object() ? entry.find("statistics") : entry.end();
      PortCounters port;
      const bool any = entry.is_object() && statistics != entry.end() && statistics->is_object() &&
                       ReadStatistics(*statistics, port);
      if (!any) ++counters.unread;
      if (any && counters.ports.size() < kMaxUfmPorts) counters.ports.emplace(name, std::move(port));
    }
  }
  if (counters.ports.empty()) return Fail(Code::kInvalid, "UFM's counters: no port has one that can be read");
  return counters;
}

std::map<std::string, CounterSample> SamplesOf(const std::vector<UfmPort>& ports, UfmCounters counters,
                                               base::MonotonicTime at) {
  std::map<std::string, CounterSample> samples;
  for (const UfmPort& port : ports) {
    const auto found = counters.ports.find(port.name);
    if (found == counters.ports.end()) continue;
    CounterSample& sample = samples[port.guid];
    sample.at = at;
    sample.ports.emplace(std::to_string(port.number), std::move(found->second));
  }
  return samples;
}

}  // namespace heddle::switches
