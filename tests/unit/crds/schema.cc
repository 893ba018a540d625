#include "tests/unit/crds/schema.h"

#include <fmt/format.h>
#include <regex.h>
#include <yaml-cpp/yaml.h>

#include <functional>

#include "base/clock.h"

namespace heddle::crds::schema {
namespace {

// POSIX: std::regex trips gcc 12's -Wmaybe-uninitialized under the sanitizers.
bool Matches(const std::string& text, const std::string& pattern) {
  regex_t compiled;
  if (regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0) return false;
  const bool matches = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
  regfree(&compiled);
  return matches;
}

Json FromYaml(const YAML::Node& node) {
  if (node.IsMap()) {
    Json json = Json::object();
    for (const auto& entry : node) json[entry.first.Scalar()] = FromYaml(entry.second);
    return json;
  }
  if (node.IsSequence()) {
    Json json = Json::array();
    for (const auto& entry : node) json.push_back(FromYaml(entry));
    return json;
  }
  if (!node.IsScalar()) return nullptr;
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // quoted
  if (text == "true" || text == "false") return text == "true";
  if (Matches(text, "^-?[0-9]+$")) return std::stoll(text);
  return text;
}

bool HasType(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "boolean") return value.is_boolean();
  return false;
}

std::size_t Characters(const std::string& text) {
  return std::size_t(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string WhyBadScalar(const Json& schema, const Json& value) {
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
    return "is not in the enum";
  }
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (!schema.contains("maxLength") && !schema.contains("enum") && !schema.contains("pattern") &&
        !schema.contains("format")) {
      return "has no limit in the schema";
    }
    if (Characters(text) > schema.value("maxLength", std::size_t(1) << 20)) return "is too long";
    if (Characters(text) < schema.value("minLength", std::size_t(0))) return "is too short";
    if (schema.contains("pattern") && !Matches(text, schema["pattern"])) {
      return "does not match the pattern";
    }
    if (schema.value("format", "") == "date-time" && !base::ParseTime(text)) return "is no time";
  }
  if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    const bool wide = schema.value("format", "").starts_with("int");
    if (!schema.contains("maximum") && !wide) return "has no maximum in the schema";
    if (schema.contains("maximum") && number > schema["maximum"].get<std::int64_t>()) return "is too large";
    if (schema.contains("minimum") && number < schema["minimum"].get<std::int64_t>()) return "is too small";
  }
  return "";
}

void Walk(const Json& schema, const Json& value, const std::string& path, const std::string& field,
          std::set<std::string>& seen, std::vector<std::string>& violations) {
  const auto say = [&](std::string_view what) { violations.push_back(fmt::format("{} {}", path, what)); };
  seen.insert(field);
  if (!HasType(value, schema.at("type")))
    return say(fmt::format("is {}, not {}", value.type_name(), schema.at("type").dump()));
  if (value.is_array()) {
    if (!schema.contains("maxItems")) say("has no maxItems in the schema");
    if (value.size() > schema.value("maxItems", std::size_t(0))) say("has too many items");
    if (value.size() < schema.value("minItems", std::size_t(0))) say("has too few items");
    for (std::size_t i = 0; i < value.size(); ++i) {
      Walk(schema["items"], value[i], fmt::format("{}[{}]", path, i), field + "[]", seen, violations);
    }
  } else if (value.is_object()) {
    if (!schema.contains("properties")) return;  // metadata, and what is reserved
    for (const auto& key : schema.value("required", Json::array())) {
      if (!value.contains(key.get<std::string>())) say("lacks " + key.get<std::string>());
    }
    for (const auto& [key, child] : value.items()) {
      if (!schema["properties"].contains(key)) {
        say("has " + key + ", which is not in the schema");
        continue;
      }
      const std::string dot = path.empty() ? "" : ".";
      Walk(schema["properties"][key], child, path + dot + key, field + dot + key, seen, violations);
    }
  } else if (const std::string why = WhyBadScalar(schema, value);
             !why.empty() && path != "apiVersion" && path != "kind") {
    say(why);
  }
}

void Collect(const Json& schema, const std::string& field, std::set<std::string>& fields) {
  fields.insert(field);
  if (schema.contains("items")) Collect(schema["items"], field + "[]", fields);
  if (!schema.contains("properties")) return;
  for (const auto& [key, child] : schema["properties"].items()) {
    Collect(child, field + (field.empty() ? "" : ".") + key, fields);
  }
}

using Visit = std::function<void(const Json& schema, const Json& value, const Json::json_pointer& at,
                                 const std::string& path)>;
void ForEach(const Json& schema, const Json& value, const Json::json_pointer& at, const std::string& path,
             const Visit& visit) {
  visit(schema, value, at, path);
  if (value.is_array() && !value.empty()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      ForEach(schema["items"], value[i], at / i, fmt::format("{}[{}]", path, i), visit);
    }
  }
  if (!value.is_object() || !schema.contains("properties")) return;
  for (const auto& [key, child] : value.items()) {
    if (path.empty() && key != "spec" && key != "status") continue;
    ForEach(schema["properties"][key], child, at / key, path.empty() ? key : path + "." + key, visit);
  }
}

}  // namespace

Json LoadYaml(const std::string& path) {
  return FromYaml(YAML::LoadFile(path));
}

std::vector<Json> LoadYamlDocuments(const std::string& path) {
  std::vector<Json> documents;
  for (const YAML::Node& node : YAML::LoadAllFromFile(path)) documents.push_back(FromYaml(node));
  return documents;
}

Json AtPath(const std::string& path) {
  if (path.empty()) return nullptr;
  if (path.starts_with("[]")) return Json::array({AtPath(path.substr(path.starts_with("[].") ? 3 : 2))});
  const std::size_t end = path.find_first_of(".[");
  const std::string rest = end == std::string::npos ? "" : path.substr(path[end] == '.' ? end + 1 : end);
  Json object = Json::object();
  object[path.substr(0, end)] = AtPath(rest);
  return object;
}

Json LoadSchema(std::string_view plural) {
  const Json crd = LoadYaml(fmt::format("{}/crds/{}.yaml", HEDDLE_SOURCE_DIR, plural));
  return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
}

std::vector<std::string> Violations(const Json& schema, const Json& value, std::set<std::string>& seen) {
  std::vector<std::string> violations;
  Walk(schema, value, "", "", seen, violations);
  return violations;
}

std::set<std::string> AllFields(const Json& schema) {
  std::set<std::string> fields;
  Collect(schema, "", fields);
  return fields;
}

std::vector<Mutation> Forbidden(const Json& schema, const Json& value) {
  std::vector<Mutation> mutations;
  ForEach(schema, value, Json::json_pointer(), "",
          [&](const Json& field, const Json& old, const auto& at, const std::string& path) {
            if (path.empty()) return;
            const auto put = [&](std::string_view what, Json fresh) {
              Json changed = value;
              changed[at] = std::move(fresh);
              mutations.push_back({path, std::string(what), std::move(changed)});
            };
            put("of another type", old.is_string() ? Json(7) : Json("seven"));
            if (!old.is_boolean()) put("a truth value", true);
            if (field.contains("enum")) put("outside the enum", "Bogus");
            if (field.contains("maxLength"))
              put("too long", std::string(field["maxLength"].get<std::size_t>() + 1, 'x'));
            if (field.value("minLength", 0) > 0) put("empty", "");
            if (field.contains("pattern")) put("against the pattern", "~");
            if (field.value("format", "") == "date-time") put("no time", "yesterday");
            if (field.contains("maximum")) put("too large", field["maximum"].get<std::int64_t>() + 1);
            if (field.contains("minimum")) put("too small", field["minimum"].get<std::int64_t>() - 1);
            if (old.is_number_integer()) put("a fraction", 1.5);
            if (old.is_array() && !old.empty()) {
              put("too many items",
                  Json(std::vector<Json>(field["maxItems"].get<std::size_t>() + 1, old[0])));
              if (field.value("minItems", 0) > 0) put("no items", Json::array());
            }
            for (const auto& key : field.value("required", Json::array())) {
              Json without = old;
              without.erase(key.get<std::string>());
              put("without " + key.get<std::string>(), std::move(without));
            }
          });
  return mutations;
}

std::vector<Mutation> JustAllowed(const Json& schema, const Json& value) {
  std::vector<Mutation> mutations;
  ForEach(schema, value, Json::json_pointer(), "",
          [&](const Json& field, const Json&, const auto& at, const std::string& path) {
            const auto put = [&](std::string_view what, Json fresh) {
              Json changed = value;
              changed[at] = std::move(fresh);
              mutations.push_back({path, std::string(what), std::move(changed)});
            };
            for (const auto& word : field.value("enum", Json::array())) put("another word", word);
            if (field.contains("maxLength") && !field.contains("pattern")) {
              std::string longest;
              for (std::size_t i = field["maxLength"].get<std::size_t>(); i > 0; --i) longest += "é";
              put("longest", longest);
            }
            if (field.contains("maximum")) put("largest", field["maximum"]);
            if (field.contains("minimum")) put("smallest", field["minimum"]);
          });
  return mutations;
}

}  // namespace heddle::crds::schema
