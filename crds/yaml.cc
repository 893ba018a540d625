#include "crds/yaml.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "base/lower_case.h"

namespace heddle::crds {
namespace {

constexpr int kMaxDepth = 64;  // Kubernetes objects have a dozen levels; aliases could make any number

// A text that every YAML reader takes for a string without quotes.
bool Plain(std::string_view text) {
  constexpr std::array<std::string_view, 10> kWords{"true", "false", "yes", "no", "on",
                                                    "off",  "null",  "y",   "n",  "nan"};
  constexpr std::string_view kSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./ ";
  if (text.empty() || text.find_first_not_of(kSafe) != std::string_view::npos || text.back() == ' ')
    return false;
  if (!((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'))) return false;
  return std::find(kWords.begin(), kWords.end(), base::LowerCase(std::string(text))) == kWords.end();
}

// As deep as the object is: it is ours, a handful of levels.
void Emit(YAML::Emitter& out, const Json& json) {
  if (json.is_structured() && json.empty()) out << YAML::Flow;  // {} and [] behind their key
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
  } else if (json.is_null()) {
    out << YAML::Null;
  } else {
    out << json.dump();
  }
}

// YAML 1.2's core schema, as kubectl prints it.
Json ScalarOf(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // quoted
  if (text == "null" || text == "~" || text.empty()) return nullptr;
  if (text == "true" || text == "false") return text == "true";
  std::int64_t whole = 0;
  const char* end = text.data() + text.size();
  if (const auto [read, error] = std::from_chars(text.data(), end, whole);
      error == std::errc{} && read == end) {
    return whole;
  }
  double number = 0;
  if (const auto [read, error] = std::from_chars(text.data(), end, number);
      error == std::errc{} && read == end && std::isfinite(number)) {
    return number;
  }
  return text;
}

// Values are counted: an alias of an alias of an alias is a few bytes and a billion values.
base::Result<Json> FromNode(const YAML::Node& node, int depth, std::int64_t& left) {
  if (depth > kMaxDepth || --left < 0) {
    return base::Fail(base::Code::kTooLarge, "it nests too deep, or its aliases make too much of it");
  }
  if (node.IsMap()) {
    Json object = Json::object();
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return base::Fail(base::Code::kInvalid, "a key is not a word");
      ASSIGN_OR_RETURN(object[entry.first.Scalar()], FromNode(entry.second, depth + 1, left));
    }
    return object;
  }
  if (node.IsSequence()) {
    Json array = Json::array();
    for (const auto& item : node) {
      ASSIGN_OR_RETURN(Json value, FromNode(item, depth + 1, left));
      array.push_back(std::move(value));
    }
    return array;
  }
  return node.IsScalar() ? ScalarOf(node) : Json(nullptr);
}

}  // namespace

std::string ToYaml(const Json& json) {
  YAML::Emitter out;
  out.SetNullFormat(YAML::LowerNull);
  Emit(out, json);
  return std::string(out.c_str()) + "\n";
}

base::Result<Json> FromYaml(const std::string& text) {
  if (text.size() > kMaxYaml) {
    return base::Fail(base::Code::kTooLarge, "YAML of more than 32 MiB is not read; JSON is");
  }
  try {
    auto left = std::int64_t(text.size()) + 1;  // no value without aliases is shorter than a byte
    return FromNode(YAML::Load(text), 0, left);
  } catch (const YAML::Exception& failure) {
    return base::Fail(base::Code::kInvalid,
                      "line " + std::to_string(failure.mark.line + 1) + ": " + failure.msg);
  }
}

}  // namespace heddle::crds
