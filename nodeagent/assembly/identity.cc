#include "nodeagent/assembly/identity.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>

#include "formats/printable.h"

namespace heddle::nodeagent {
namespace {

constexpr std::size_t kMaxBytes = 64 << 10;
constexpr std::size_t kMaxNamed = 16 << 10;  // 128 patterns of 64 characters take half of it

std::string Text(const YAML::Node& document, const char* key, std::size_t most = 128) {
  const YAML::Node value = document[key];
  return value.IsDefined() && value.IsScalar() ? formats::Printable(value.Scalar(), most) : std::string();
}

std::vector<std::string> Strangers(const YAML::Node& document) {
  constexpr std::size_t kMost = 8;
  constexpr std::array<std::string_view, 5> kKeys{"name", "hostname", "site", "uncabled", "storage"};
  std::vector<std::string> strangers;
  for (const auto& entry : document) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : std::string("(no word)");
    if (std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end()) continue;
    if (strangers.size() < kMost) strangers.push_back(formats::Printable(key, 64));
  }
  return strangers;
}

bool LowerOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

}  // namespace

base::Result<Identity> ParseMachineYaml(std::string_view yaml) {
  if (yaml.size() > kMaxBytes)
    return base::Fail(base::Code::kTooLarge, fmt::format("machine.yaml: over {} bytes", kMaxBytes));
  try {
    const YAML::Node document = YAML::Load(std::string(yaml));
    if (!document.IsMap())
      return base::Fail(base::Code::kInvalid, "machine.yaml is no map of name, hostname and site");
    return Identity{Text(document, "hostname"),
                    Text(document, "name"),
                    Text(document, "site"),
                    Text(document, "uncabled", kMaxNamed),
                    Text(document, "storage", kMaxNamed),
                    Strangers(document)};
  } catch (const std::exception& error) {
    return base::Fail(base::Code::kInvalid,
                      fmt::format("machine.yaml is not YAML ({})", formats::Printable(error.what(), 120)));
  }
}

std::string FormatMachineYaml(const Identity& identity) {
  YAML::Emitter out;
  out << YAML::BeginMap << YAML::Key << "name" << YAML::Value << YAML::DoubleQuoted << identity.product;
  out << YAML::Key << "hostname" << YAML::Value << YAML::DoubleQuoted << identity.node;
  if (!identity.site.empty())
    out << YAML::Key << "site" << YAML::Value << YAML::DoubleQuoted << identity.site;
  if (!identity.uncabled.empty())
    out << YAML::Key << "uncabled" << YAML::Value << YAML::DoubleQuoted << identity.uncabled;
  if (!identity.storage.empty())
    out << YAML::Key << "storage" << YAML::Value << YAML::DoubleQuoted << identity.storage;
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

std::string WhyNotNodeName(std::string_view name) {
  if (name.empty()) return "it is empty";
  if (name.size() > 253) return "it has more than 253 characters";
  if (!LowerOrDigit(name.front()) || !LowerOrDigit(name.back()))
    return "it must begin and end with a-z or 0-9";
  for (const char c : name) {
    if (!LowerOrDigit(c) && c != '-' && c != '.')
      return fmt::format("'{}' is not of a-z, 0-9, '-' and '.'", formats::Printable({&c, 1}));
  }
  return {};
}

}  // namespace heddle::nodeagent
