#include "nodeagent/report.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>

#include "nodeagent/conditions.h"

namespace heddle::nodeagent {
namespace {

// A text that every YAML reader takes for a string without quotes.
bool Plain(std::string_view text) {
  constexpr std::array<std::string_view, 10> kWords{"true", "false", "yes", "no", "on",
                                                    "off",  "null",  "y",   "n",  "nan"};
  constexpr std::string_view kSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./ ";
  if (text.empty() || text.find_first_not_of(kSafe) != std::string_view::npos || text.back() == ' ')
    return false;
  if (!((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'))) return false;
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return std::find(kWords.begin(), kWords.end(), lower) == kWords.end();
}

// As deep as the object is: it is ours, a handful of levels.
void Emit(YAML::Emitter& out, const nlohmann::json& json) {
  if (json.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, value] : json.items()) {
      out << YAML::Key << key << YAML::Value;
      Emit(out, value);
    }
    out << YAML::EndMap;
  } else if (json.is_array()) {
    out << YAML::BeginSeq;
    for (const auto& value : json) Emit(out, value);
    out << YAML::EndSeq;
  } else if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    if (!Plain(text)) out << YAML::DoubleQuoted;
    out << text;
  } else {
    out << json.dump();
  }
}

}  // namespace

crds::NodeTopology Report(const crds::NodeTopology& current, const Observation& observation,
                          base::WallTime now) {
  now = std::chrono::floor<std::chrono::seconds>(now);
  crds::NodeTopology next = current;
  crds::NodeTopologyStatus& status = next.status;
  const std::string hash = topology::ContentHash(observation.node);
  if (status.hash != hash || !status.observed_at) status.observed_at = now;
  status.hash = hash;
  status.node = observation.node;
  status.observed_generation = current.generation;
  status.agent_version = std::string(kAgentVersion);
  std::vector<crds::Condition> conditions;
  for (crds::Condition& condition : ConditionsOf(observation)) {
    if (const auto* old = crds::FindCondition(current.status.conditions, condition.type))
      conditions.push_back(*old);
    condition.observed_generation = current.generation;
    condition.last_transition = now;
    crds::SetCondition(conditions, condition);
  }
  status.conditions = std::move(conditions);
  return next;
}

std::string ToYaml(const nlohmann::json& json) {
  YAML::Emitter out;
  Emit(out, json);
  return std::string(out.c_str()) + "\n";
}

}  // namespace heddle::nodeagent
