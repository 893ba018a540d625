#include "formats/sonic_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/nearest_word.h"
#include "formats/json_bounds.h"
#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::formats::sonic {
namespace {

using base::Code;

constexpr std::size_t kMaxBytes = std::size_t{32} << 20;
constexpr std::size_t kMaxValues = 500'000;  // a chassis with 512 ports has some 60,000
constexpr int kMaxDepth = 16;
constexpr int kMaxQueue = 63;

}  // namespace

base::Result<Json> Parse(std::string_view json) {
  if (json.size() > kMaxBytes || !IsBounded(json, kMaxValues, kMaxDepth)) {
    return base::Fail(Code::kTooLarge,
                      fmt::format("over 32 MiB, {} values or {} levels: no config_db.json is as large",
                                  kMaxValues, kMaxDepth));
  }
  try {
    Json root = Json::parse(json);
    const bool known = Member(root, "PORT_QOS_MAP").is_object() || Member(root, "PORT").is_object();
    if (!known) {
      return base::Fail(Code::kInvalid,
                        "it is no SONiC config_db.json: it has neither PORT nor PORT_QOS_MAP");
    }
    return root;
  } catch (const Json::exception& failure) {
    const auto* const where = dynamic_cast<const Json::parse_error*>(&failure);
    return base::Fail(Code::kInvalid, fmt::format("line {}: this is no JSON",
                                                  where == nullptr ? 1 : LineOf(json, where->byte)));
  }
}

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

const Json& Entry(const Json& root, std::string_view table, std::string_view key) {
  return Member(Member(root, table), key);
}

std::pair<std::string, std::uint64_t> PortOrder(const std::string& name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  return {name.substr(0, digits), Number<std::uint64_t>(std::string_view(name).substr(digits)).value_or(0)};
}

std::string NameIn(std::string_view table, std::string reference) {
  const std::string bracket = fmt::format("[{}|", table);
  if (!reference.starts_with(bracket) || !reference.ends_with(']')) return reference;
  return reference.substr(bracket.size(), reference.size() - bracket.size() - 1);
}

bool RangeKey::Has(std::string_view port) const {
  return std::find(ports.begin(), ports.end(), port) != ports.end();
}

std::optional<RangeKey> ParseRangeKey(std::string_view key) {
  const std::size_t bar = key.rfind('|');
  if (bar == std::string_view::npos) return std::nullopt;
  const std::string_view range = key.substr(bar + 1);
  const std::size_t dash = range.find('-');
  const auto first = Within(range.substr(0, dash), 0, kMaxQueue);
  const auto last = dash == std::string_view::npos ? first : Within(range.substr(dash + 1), 0, kMaxQueue);
  if (!first || !last) return std::nullopt;
  const bool chassis = key.substr(0, bar).find('|') != std::string_view::npos;
  return RangeKey{PortsOfKey(key), *first, *last, chassis};
}

std::vector<std::string> PortsOfKey(std::string_view key) {
  const std::size_t bar = key.rfind('|');
  if (bar == std::string_view::npos) return {};
  std::string_view ports = key.substr(0, bar);
  if (const std::size_t inner = ports.rfind('|'); inner != std::string_view::npos)
    ports.remove_prefix(inner + 1);
  return PortsIn(ports);
}

std::vector<std::string> PortsIn(std::string_view ports) {
  std::vector<std::string> names;
  while (!ports.empty()) {
    const std::size_t comma = ports.find(',');
    names.emplace_back(ports.substr(0, comma));
    if (comma == std::string_view::npos || names.size() > kMaxPorts) break;
    ports.remove_prefix(comma + 1);
  }
  return names;
}

std::string RangeText(int first, int last) {
  return first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
}

Json PortQosMaps(const Json& root, std::map<std::string, std::string>& faults) {
  const Json& table = Member(root, "PORT_QOS_MAP");
  if (!table.is_object()) return Json();
  Json rows = Json::object();
  for (const auto& [key, fields] : table.items()) {
    for (const std::string& port : PortsIn(key)) {
      if (rows.size() > kMaxPorts) return rows;
      if (!rows.contains(port)) {
        rows[port] = fields;
        continue;
      }
      Json& row = rows[port];
      if (!row.is_object() || !fields.is_object()) continue;
      for (const auto& [field, value] : fields.items()) {
        const auto [at, fresh] = row.emplace(field, value);
        if (fresh || *at == value) continue;
        faults.emplace(port,
                       fmt::format("PORT_QOS_MAP|{}: two rows have this port, and {} differs: leave one",
                                   Printable(port, 40), Printable(field, 40)));
      }
    }
  }
  return rows;
}

std::map<std::string, std::string> PortChannels(const Json& root) {
  std::map<std::string, std::string> channels;
  const Json& members = Member(root, "PORTCHANNEL_MEMBER");
  if (!members.is_object()) return channels;
  for (const auto& [key, member] : members.items()) {
    const std::size_t bar = key.rfind('|');
    if (bar == std::string::npos) continue;
    const std::string channel = key.substr(0, bar);
    const auto [known, fresh] = channels.emplace(key.substr(bar + 1), channel);
    if (!fresh && known->second != channel) known->second.clear();
  }
  return channels;
}

std::string NoSuchPort(const Json& root, const std::string& wanted) {
  std::vector<std::string> names;
  const Json& ports = Member(root, "PORT");
  for (const auto& [name, row] : ports.items()) {
    if (TextOf(Member(row, "alias")) == wanted) {
      return fmt::format("{} is the alias of port {}: write that", Printable(wanted, 40),
                         Printable(name, 40));
    }
    names.push_back(name);
  }
  const std::string meant = base::NearestWord(wanted, names);
  const std::string one = meant.empty() && !names.empty() ? names.front() : meant;
  return fmt::format("the switch's table PORT has no {}{}", Printable(wanted, 40),
                     one.empty() ? ""
                                 : fmt::format("; it has {}, such as {}", base::Counted(names.size(), "port"),
                                               Printable(one, 40)));
}

}  // namespace heddle::formats::sonic
