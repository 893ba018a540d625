#include "switches/openconfig_ports.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <system_error>

#include "formats/printable.h"

namespace heddle::switches {
namespace {

using crds::Json;

constexpr int kMaxDepth = 12;
constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxWord = 255;  // IEEE 802.1AB: of each of them
constexpr int kMaxMtu = 65535;

// The text of a member, whatever model it names; empty where there is none.
std::string TextIn(const Json& object, std::string_view name) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_string() && WithoutModel(key) == name) return value.get<std::string>();
  }
  return "";
}

bool IsOneOf(std::string_view key, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), key) != names.end();
}

// As SONiC calls them; empty where it says none, or leaves it to the ends.
std::string_view FecOf(std::string_view mode) {
  mode = WithoutModel(mode);
  if (mode == "FEC_DISABLED") return "none";
  if (mode == "FEC_FC") return "fc";
  return mode.starts_with("FEC_RS") ? "rs" : "";
}

// Where an object lies: the two last steps to it, and the interface; each empty where it is not known.
struct Place {
  std::string_view above, key;
  std::string port;
};

Place PlaceOf(const Steps& steps) {
  const std::size_t depth = steps.size();
  return {depth < 2 ? "" : WithoutModel(steps[depth - 2]), depth < 1 ? "" : WithoutModel(steps[depth - 1]),
          ""};
}

// One walk through a tree: calls take(place, object) for every object on the way that is named `way`.
template <class Take>
void Walk(const Place& place, const Json& value, int depth, std::initializer_list<std::string_view> way,
          const Take& take) {
  if (depth > kMaxDepth) return;
  if (value.is_array()) {
    for (const Json& one : value) {
      if (one.is_object()) Walk(place, one, depth + 1, way, take);
    }
    return;
  }
  if (!value.is_object()) return;
  Place here = place;
  if (here.port.empty() && IsOneOf(here.key, {"interface", "state"})) here.port = TextIn(value, "name");
  if (here.port.size() > kMaxName) return;
  take(here, value);
  for (const auto& [field, inner] : value.items()) {
    const std::string_view plain = WithoutModel(field);
    if (inner.is_structured() && IsOneOf(plain, way))
      Walk({here.key, plain, here.port}, inner, depth + 1, way, take);
  }
}

// What one port says, as it comes.
struct Line {
  std::optional<int> speed_mbps, negotiated_mbps, mtu;
  std::string fec;
  std::string aggregate;  // that it is a member of; empty = none
};
using Lines = std::map<std::string, Line>;

void ReadLine(const Json& state, Line& line) {
  for (const auto& [key, value] : state.items()) {
    const std::string_view field = WithoutModel(key);
    if (field == "mtu" && value.is_number_integer()) {
      const auto mtu = value.get<std::int64_t>();
      if (mtu > 0 && mtu <= kMaxMtu) line.mtu = int(mtu);
    }
    if (!value.is_string()) continue;
    const std::string& text = value.get_ref<const std::string&>();
    if (field == "port-speed") line.speed_mbps = OpenConfigSpeed(text);
    if (field == "negotiated-port-speed") line.negotiated_mbps = OpenConfigSpeed(text);
    if (field == "fec-mode") line.fec = FecOf(text);
    if (field == "aggregate-id") line.aggregate = formats::Printable(text, kMaxName);
  }
}

// A member's frames are as long as its aggregate lets them, whatever is set at the member.
std::optional<int> MtuOf(const Lines& lines, const Line& line) {
  if (line.aggregate.empty()) return line.mtu;
  const auto found = lines.find(line.aggregate);
  return found == lines.end() ? std::nullopt : found->second.mtu;
}

// What a port hears: one neighbour, or, as nothing, several.
using Heard = std::map<std::string, std::optional<Neighbour>>;

void ReadNeighbour(const Json& state, const std::string& port, Heard& heard) {
  const auto word = [&](std::string_view name) { return formats::Printable(TextIn(state, name), kMaxWord); };
  Neighbour one{word("system-name"), word("chassis-id"), word("port-id"), word("port-description")};
  if (one == Neighbour{} || (heard.size() >= kMaxCountedPorts && !heard.contains(port))) return;
  const auto [known, fresh] = heard.try_emplace(port, one);
  if (!fresh && known->second != one) known->second.reset();
}

}  // namespace

std::string_view WithoutModel(std::string_view key) {
  return key.substr(key.rfind(':') + 1);
}

std::optional<int> OpenConfigSpeed(std::string_view text) {
  constexpr std::string_view kSpeed = "SPEED_";
  constexpr int kMost = 10'000;  // of either unit
  text = WithoutModel(text);
  if (!text.starts_with(kSpeed) || text.size() < kSpeed.size() + 3) return std::nullopt;
  const std::string_view unit = text.substr(text.size() - 2);
  const std::string_view digits = text.substr(kSpeed.size(), text.size() - kSpeed.size() - 2);
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number <= 0 || number > kMost)
    return std::nullopt;
  if (unit == "GB") return number * 1000;
  return unit == "MB" ? std::optional(number) : std::nullopt;
}

std::vector<formats::SonicPort> ReadOpenConfigPorts(const std::map<Steps, Json>& answers) {
  Lines lines;
  for (const auto& [steps, answer] : answers) {
    Walk(PlaceOf(steps), answer, 0, {"interfaces", "interface", "state", "ethernet"},
         [&lines](const Place& place, const Json& object) {
           if (place.key != "state" || place.port.empty()) return;
           if (lines.size() >= kMaxCountedPorts && !lines.contains(place.port)) return;
           ReadLine(object, lines[place.port]);
         });
  }
  std::vector<formats::SonicPort> ports;
  for (const auto& [name, line] : lines) {
    formats::SonicPort port{
        .name = formats::Printable(name), .fec = line.fec, .bare = std::string(kNoPfcPath)};
    port.speed_mbps = line.negotiated_mbps ? line.negotiated_mbps : line.speed_mbps;
    port.settings.mtu = MtuOf(lines, line);
    if (port.speed_mbps || line.mtu || !line.fec.empty()) ports.push_back(std::move(port));
  }
  return ports;
}

OpenConfigLldp ReadOpenConfigLldp(const std::vector<std::pair<Steps, Json>>& answers) {
  OpenConfigLldp lldp;
  Heard heard;
  for (const auto& [steps, answer] : answers) {
    Walk(PlaceOf(steps), answer, 0, {"lldp", "state", "interfaces", "interface", "neighbors", "neighbor"},
         [&lldp, &heard](const Place& place, const Json& object) {
           if (place.key != "state") return;
           if (place.above == "neighbor" && !place.port.empty()) ReadNeighbour(object, place.port, heard);
           if (place.above != "lldp") return;
           std::string name = formats::Printable(TextIn(object, "system-name"), kMaxWord);
           if (!name.empty()) lldp.system_name = std::move(name);
         });
  }
  for (auto& [port, one] : heard) {
    if (one) lldp.neighbours.emplace(formats::Printable(port), std::move(*one));
  }
  return lldp;
}

}  // namespace heddle::switches
