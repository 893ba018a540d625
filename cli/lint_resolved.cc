#include "cli/lint_resolved.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "cli/advice.h"
#include "cli/lint_file.h"
#include "crds/lossless_policy.h"

namespace heddle::cli {
namespace {

struct Value {
  std::string field;  // as the resource calls it: "rdma.dscp"
  Json value;         // as it would stand there; null = the NIC has none
  std::string source;
};

struct Resolved {
  std::string name;
  std::string profile;
  bool named = false;  // by the policy
  std::vector<Value> values;
};

// The value of "rdma.dscp" in a spec; null = there is none.
Json ValueAt(const Json& spec, std::string_view field) {
  const Json* at = &spec;
  while (true) {
    const std::size_t dot = field.find('.');
    const auto found = at->find(std::string(field.substr(0, dot)));
    if (found == at->end()) return nullptr;
    at = &*found;
    if (dot == std::string_view::npos) return *at;
    field.remove_prefix(dot + 1);
  }
}

Resolved ResolvedOf(const LintPolicy& policy) {
  Resolved resolved{policy.name, policy.resolved.profile, !policy.spec.policy.profile.empty(), {}};
  crds::LosslessPolicy filled;
  filled.spec.policy = policy.resolved.policy;
  const Json spec = crds::ToJson(filled).at("spec");
  for (const lossless::Provenance& one : policy.resolved.provenance)
    resolved.values.push_back({one.field, ValueAt(spec, one.field), one.source});
  if (!policy.resolved.policy.watchdog_ms && !policy.resolved.no_watchdog.empty()) {
    resolved.values.push_back(
        {"watchdog", nullptr, fmt::format("{}: {}", policy.resolved.profile, policy.resolved.no_watchdog)});
  }
  return resolved;
}

std::string TextOf(const Json& value) {
  if (value.is_null()) return "none";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_structured()) return value.dump();
  std::string text;
  for (const auto& [key, part] : value.items()) {
    text += text.empty() ? "" : value.is_object() ? ", " : ",";
    text += value.is_object() ? key + " " + TextOf(part) : TextOf(part);
  }
  return text.empty() ? "none" : text;
}

std::string TableOf(const Resolved& resolved, const Style& style) {
  std::vector<AdviceRow> rows;
  for (const Value& value : resolved.values) {
    const bool list = value.value.is_array() && !value.value.empty() && value.value.front().is_object();
    if (!list) rows.push_back({{value.field, TextOf(value.value)}, value.source});
    // A class or a share has a row of its own.
    for (std::size_t i = 0; list && i < value.value.size(); ++i)
      rows.push_back({{fmt::format("{}[{}]", value.field, i), TextOf(value.value[i])}, value.source});
  }
  return SentenceText(fmt::format("LosslessPolicy {} with profile {}{}", resolved.name, resolved.profile,
                                  resolved.named ? "" : ", as it names none"),
                      style) +
         "\n" + AdviceText({"FIELD", "VALUE", "SOURCE"}, rows, style);
}

Json JsonOf(const std::vector<Resolved>& all) {
  Json policies = Json::array();
  for (const Resolved& one : all) {
    Json values = Json::array();
    for (const Value& value : one.values)
      values.push_back({{"field", value.field}, {"value", value.value}, {"source", value.source}});
    policies.push_back({{"policy", one.name}, {"profile", one.profile}, {"values", std::move(values)}});
  }
  return {{"policies", std::move(policies)}};
}

}  // namespace

Output LintResolved(const LintOptions& options, const ReadFile& read, const OutputOptions& look) {
  Output output;
  std::vector<Resolved> all;
  const LintFiles files = ReadLintFiles(options.files, read);
  for (const UnreadFile& one : files.unread) output.err += "Error: " + WithoutControls(one.why) + "\n";
  for (const LintFile& file : files.read) {
    for (const LintPolicy& policy : file.policies) all.push_back(ResolvedOf(policy));
    if (file.policies.empty())
      output.err += "Note: " + WithoutControls(file.path + ": there is no LosslessPolicy in it") + "\n";
  }
  const bool unread = !files.unread.empty();
  if (all.empty() && !unread) {
    return FailureOfInput({base::Code::kInvalid,
                           "--resolved takes FILEs with a LosslessPolicy, and there is none", std::nullopt});
  }
  if (look.format != Format::kText) {
    output.out = Printed(JsonOf(all), look.format);
  } else {
    for (const Resolved& one : all) output.out += (output.out.empty() ? "" : "\n") + TableOf(one, look.style);
  }
  if (unread) output.exit_code = Output::kUsage;
  return output;
}

}  // namespace heddle::cli
