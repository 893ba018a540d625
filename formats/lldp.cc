#include "formats/lldp.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "formats/json_bounds.h"
#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::formats {
namespace {

using Json = nlohmann::json;

// 64 interfaces that each hear 32 neighbours, lldpd's max-neighbors, make some 100,000 of them.
constexpr std::size_t kMaxValues = 200'000;
constexpr int kMaxDepth = 32;  // lldpd's own are about ten

// json0 wraps everything in arrays; json leaves out the array around a single entry.
const Json& First(const Json& value) {
  static const Json kNothing;
  if (!value.is_array()) return value;
  return value.empty() ? kNothing : value.front();
}

const Json& Member(const Json& object, const char* name) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(name);
  return found == object.end() ? kNothing : *found;
}

std::string Text(const Json& value) {
  const Json& first = First(value);
  const Json& inner = first.is_object() ? Member(first, "value") : first;
  if (inner.is_string()) return Printable(inner.get_ref<const std::string&>());
  return inner.is_number_integer() ? inner.dump() : std::string();
}

std::string TypeOf(const Json& id) {
  const Json& type = Member(First(id), "type");
  return type.is_string() ? Printable(type.get_ref<const std::string&>()) : std::string();
}

constexpr std::string_view kMac = "mac";  // as lldpd calls the type of a chassis id

const std::string& NameOf(const LldpNeighbour& neighbour) {
  return neighbour.system_name.empty() ? neighbour.chassis_id : neighbour.system_name;
}

// Only MACs tell: ids of two types are of two protocols, and of CDP and LLDP both may be local ones.
bool IsOther(const LldpNeighbour& a, const LldpNeighbour& b) {
  return a.chassis_type == kMac && b.chassis_type == kMac && !a.chassis_id.empty() && !b.chassis_id.empty() &&
         a.chassis_id != b.chassis_id;
}

// json takes the name out of an object, and makes it the key of all else that is in it: {"tor-1": {"id": …}} (lldpd,
// src/client/json_writer.c, json_element_cleanup). Null where it is no such object, as with json0.
const Json* RestOfNamed(const Json& chassis) {
  if (!chassis.is_object() || chassis.size() != 1) return nullptr;
  const Json& rest = *chassis.begin();
  return rest.is_object() && rest.contains("id") ? &rest : nullptr;
}

std::optional<LldpNeighbour> ParseNeighbour(const Json& interface) {
  const Json& said = First(Member(interface, "chassis"));
  const Json* const rest = RestOfNamed(said);
  const Json& chassis = rest != nullptr ? *rest : said;
  const Json& port = First(Member(interface, "port"));
  LldpNeighbour neighbour;
  neighbour.chassis_id = Text(Member(chassis, "id"));
  neighbour.chassis_type = TypeOf(Member(chassis, "id"));
  neighbour.system_name = rest != nullptr ? Printable(said.begin().key()) : Text(Member(chassis, "name"));
  neighbour.port_id = Text(Member(port, "id"));
  neighbour.port_type = TypeOf(Member(port, "id"));
  neighbour.port_description = Text(Member(port, "descr"));
  // lldpd 1.0 has the TTL in the port; older ones in the chassis.
  std::string ttl = Text(Member(port, "ttl"));
  if (ttl.empty()) ttl = Text(Member(chassis, "ttl"));
  if (!ttl.empty()) neighbour.ttl = std::chrono::seconds(Number<std::uint16_t>(ttl).value_or(120));
  const bool named = !neighbour.chassis_id.empty() || !neighbour.system_name.empty();
  if (!named || neighbour.port_id.empty() || neighbour.ttl.count() == 0) return std::nullopt;
  return neighbour;
}

}  // namespace

base::Result<LldpNeighbours> ParseLldp(std::string_view json0) {
  if (!IsBounded(json0, kMaxValues, kMaxDepth)) {
    return base::Fail(
        base::Code::kTooLarge,
        fmt::format("over {} values or {} levels: more than lldpd has to say", kMaxValues, kMaxDepth));
  }
  const Json document = Json::parse(json0, nullptr, false);
  const Json& root = First(Member(document, "lldp"));
  if (document.is_discarded() || !root.is_object()) {
    return base::Fail(base::Code::kInvalid,
                      "not what `lldpcli -f json0 show neighbors` prints: no JSON object with \"lldp\"");
  }
  const Json& listed = Member(root, "interface");
  LldpNeighbours neighbours;
  const auto hear = [&neighbours](const std::string& name, const Json& interface) {
    std::string key = Printable(name);
    if (key.empty()) return;
    if (auto found = ParseNeighbour(interface)) neighbours[std::move(key)].push_back(*std::move(found));
  };
  const auto add = [&hear](const Json& interface) {
    if (const Json& name = Member(interface, "name"); name.is_string())
      return hear(name.get_ref<const std::string&>(), interface);
    if (!interface.is_object()) return;
    for (const auto& [name, rest] : interface.items()) hear(name, rest);  // as json has them: {"eth1": {…}}
  };
  if (listed.is_array()) {
    std::for_each(listed.begin(), listed.end(), add);
  } else {
    add(listed);
  }
  return neighbours;
}

std::string FormatLldp(const LldpNeighbours& neighbours) {
  const auto value = [](const std::string& text) { return Json::array({{{"value", text}}}); };
  Json interfaces = Json::array();
  for (const auto& [name, heard] : neighbours) {
    for (const LldpNeighbour& one : heard) {
      Json chassis = {{"id", Json::array({{{"type", one.chassis_type}, {"value", one.chassis_id}}})}};
      if (!one.system_name.empty()) chassis["name"] = value(one.system_name);
      Json port = {{"id", Json::array({{{"type", one.port_type}, {"value", one.port_id}}})},
                   {"ttl", value(std::to_string(one.ttl.count()))}};
      if (!one.port_description.empty()) port["descr"] = value(one.port_description);
      interfaces.push_back(
          {{"name", name}, {"chassis", Json::array({chassis})}, {"port", Json::array({port})}});
    }
  }
  const Json root = Json::array({{{"interface", interfaces}}});
  return Json{{"lldp", root}}.dump(1) + "\n";
}

topology::Fact<topology::LeafPort> LeafOf(const std::vector<LldpNeighbour>& neighbours) {
  const LldpNeighbour* kept = nullptr;  // whose chassis id is said
  for (const LldpNeighbour& neighbour : neighbours) {
    if (kept == nullptr) {
      kept = &neighbour;
      continue;
    }
    if (NameOf(*kept) != NameOf(neighbour) || kept->port_id != neighbour.port_id || IsOther(*kept, neighbour))
      return topology::Missing::kAmbiguous;
    if (kept->chassis_id.empty() || (kept->chassis_type != kMac && neighbour.chassis_type == kMac))
      kept = &neighbour;
  }
  if (kept == nullptr) return topology::Missing::kUnknown;
  return topology::LeafPort{NameOf(*kept), kept->port_id, kept->chassis_id};
}

std::map<std::string, SharedName> SharedNames(const LldpNeighbours& neighbours) {
  struct End {
    std::string interface, chassis_id;
  };
  std::map<std::tuple<std::string, std::string, std::string>, End> ends;  // by name, port, type of chassis id
  std::map<std::string, SharedName> shared;
  for (const auto& [interface, heard] : neighbours) {
    for (const LldpNeighbour& one : heard) {
      if (one.system_name.empty() || one.chassis_id.empty()) continue;
      const auto [found, fresh] = ends.try_emplace(std::tuple(one.system_name, one.port_id, one.chassis_type),
                                                   End{interface, one.chassis_id});
      const End& end = found->second;
      if (fresh || end.interface == interface || end.chassis_id == one.chassis_id) continue;
      shared.try_emplace(one.system_name,
                         SharedName{one.port_id, end.interface, end.chassis_id, interface, one.chassis_id});
    }
  }
  return shared;
}

}  // namespace heddle::formats
