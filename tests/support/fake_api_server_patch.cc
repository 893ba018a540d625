#include "tests/support/fake_api_server_patch.h"

#include <algorithm>

namespace heddle::test {
namespace {

using kube::Json;

constexpr char kStep = '\x1f';  // separates the steps of a leaf; no field name has it

// The key by which a list of that field merges; "" where it is replaced as a whole.
std::string_view MergeKey(std::string_view field) {
  static const std::map<std::string_view, std::string_view> kKeys{
      {"conditions", "type"},      {"containers", "name"},
      {"initContainers", "name"},  {"env", "name"},
      {"volumes", "name"},         {"volumeMounts", "mountPath"},
      {"ports", "containerPort"},  {"ownerReferences", "uid"},
      {"schedulingGates", "name"}, {"imagePullSecrets", "name"}};
  const auto found = kKeys.find(field);
  return found == kKeys.end() ? "" : found->second;
}

bool MergesBy(const Json& list, std::string_view key) {
  return !key.empty() && list.is_array() && std::all_of(list.begin(), list.end(), [&](const Json& item) {
    return item.is_object() && item.contains(key);
  });
}

Json* ItemWith(Json& list, std::string_view key, const Json& value) {
  for (Json& item : list) {
    if (item.is_object() && item.contains(key) && item[std::string(key)] == value) return &item;
  }
  return nullptr;
}

Json MergeList(Json current, const Json& patch, std::string_view key) {
  for (const Json& item : patch) {
    Json* there = ItemWith(current, key, item[std::string(key)]);
    if (kube::StringAt(item, {"$patch"}) == "delete") {
      if (there != nullptr) current.erase(std::size_t(there - &current[0]));
    } else if (there != nullptr) {
      *there = StrategicMerge(*there, item);
    } else {
      current.push_back(item);
    }
  }
  return current;
}

std::string ItemStep(std::string_view key, const Json& item) {
  return "[" + std::string(key) + "=" + item[std::string(key)].dump() + "]";
}

void CollectLeaves(const Json& value, const std::string& prefix, std::string_view field,
                   std::set<std::string>& leaves) {
  const std::string_view key = MergeKey(field);
  if (value.is_object() && !value.empty()) {
    for (const auto& [name, entry] : value.items()) CollectLeaves(entry, prefix + kStep + name, name, leaves);
  } else if (MergesBy(value, key) && !value.empty()) {
    for (const Json& item : value) CollectLeaves(item, prefix + kStep + ItemStep(key, item), "", leaves);
  } else {
    leaves.insert(prefix);
  }
}

std::set<std::string> Leaves(Json object) {
  if (!object.is_object()) return {};
  for (const char* name : {"apiVersion", "kind"}) object.erase(name);
  if (object.contains("metadata")) {
    for (const char* name : {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
                             "managedFields", "generateName", "deletionTimestamp"}) {
      object["metadata"].erase(name);
    }
    if (object["metadata"].empty()) object.erase("metadata");
  }
  std::set<std::string> leaves;
  if (!object.empty()) CollectLeaves(object, "", "", leaves);
  return leaves;
}

std::vector<std::string> Steps(const std::string& leaf) {
  std::vector<std::string> steps;
  for (std::size_t at = 0; at < leaf.size();) {
    const auto end = std::min(leaf.find(kStep, at + 1), leaf.size());
    steps.push_back(leaf.substr(at + 1, end - at - 1));
    at = end;
  }
  return steps;
}

// Where one step leads from a value, as an index into its elements.
Json::iterator Enter(Json& value, const std::string& step) {
  if (value.is_object()) return value.find(step);
  if (!value.is_array() || step.empty() || step.front() != '[') return value.end();
  const std::string key = step.substr(1, step.find('=') - 1);
  return std::find_if(value.begin(), value.end(), [&](const Json& item) {
    return item.is_object() && item.contains(key) && ItemStep(key, item) == step;
  });
}

Json ValueAt(Json object, const std::string& leaf) {
  for (const std::string& step : Steps(leaf)) {
    const auto next = Enter(object, step);
    if (!object.is_structured() || next == object.end()) return {};
    object = Json(*next);
  }
  return object;
}

void Erase(Json& value, const std::vector<std::string>& steps, std::size_t at) {
  if (!value.is_structured()) return;
  const auto next = Enter(value, steps[at]);
  if (next == value.end()) return;
  if (at + 1 == steps.size()) {
    value.erase(next);
    return;
  }
  Erase(*next, steps, at + 1);
  if (next->empty()) value.erase(next);
}

std::string Readable(const std::string& leaf) {
  std::string text = leaf;
  std::replace(text.begin(), text.end(), kStep, '.');
  return text;
}

std::string Trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

// Splits at commas outside parentheses.
std::vector<std::string> Terms(std::string_view selector) {
  std::vector<std::string> terms(1);
  int depth = 0;
  for (const char c : selector) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  for (std::string& term : terms) term = Trimmed(term);
  std::erase(terms, "");
  return terms;
}

struct Comparison {
  std::string name, value;
  bool equal = true;
};
std::optional<Comparison> ParseComparison(const std::string& term) {
  const auto sign = term.find('=');
  if (sign == std::string::npos) return std::nullopt;
  const bool negated = sign > 0 && term[sign - 1] == '!';
  const auto value = term.find_first_not_of('=', sign);
  return Comparison{Trimmed(term.substr(0, negated ? sign - 1 : sign)),
                    value == std::string::npos ? "" : Trimmed(term.substr(value)), !negated};
}

bool MatchesTerm(const std::map<std::string, std::string>& labels, const std::string& term) {
  const auto value_of = [&](const std::string& key) -> std::optional<std::string> {
    const auto found = labels.find(key);
    return found == labels.end() ? std::nullopt : std::optional(found->second);
  };
  for (const bool wanted : {false, true}) {
    const auto at = term.find(wanted ? " in (" : " notin (");
    if (at == std::string::npos) continue;
    const auto open = term.find('(');
    const auto values = Terms(std::string_view(term).substr(open + 1, term.rfind(')') - open - 1));
    const auto value = value_of(Trimmed(term.substr(0, at)));
    return (value && std::find(values.begin(), values.end(), *value) != values.end()) == wanted;
  }
  if (const auto comparison = ParseComparison(term)) {
    return (value_of(comparison->name) == comparison->value) == comparison->equal;
  }
  return term.front() == '!' ? !value_of(Trimmed(term.substr(1))) : value_of(term).has_value();
}

}  // namespace

Json StrategicMerge(Json current, const Json& patch) {
  if (!patch.is_object()) return patch;
  if (!current.is_object()) current = Json::object();
  for (const auto& [name, value] : patch.items()) {
    if (value.is_null()) {
      current.erase(name);
    } else if (current.contains(name) && MergesBy(value, MergeKey(name)) &&
               MergesBy(current[name], MergeKey(name))) {
      current[name] = MergeList(current[name], value, MergeKey(name));
    } else if (value.is_object()) {
      current[name] = StrategicMerge(current.contains(name) ? current[name] : Json::object(), value);
    } else {
      current[name] = value;
    }
  }
  return current;
}

AppliedObject ServerSideApply(const Json& current, FieldOwners owners, const std::string& manager,
                              const Json& wanted, bool force) {
  const std::set<std::string> leaves = Leaves(wanted);
  AppliedObject applied{current, owners, {}};
  for (auto& [other, owned] : applied.owners) {
    if (other == manager) continue;
    for (const std::string& leaf : leaves) {
      if (!owned.contains(leaf) || ValueAt(current, leaf) == ValueAt(wanted, leaf)) continue;
      if (force) {
        owned.erase(leaf);
      } else {
        applied.conflicts.push_back("conflict with \"" + other + "\": " + Readable(leaf));
      }
    }
  }
  if (!applied.conflicts.empty()) return applied;
  applied.object = StrategicMerge(current, wanted);
  for (const std::string& leaf : owners[manager]) {
    const bool shared = std::any_of(owners.begin(), owners.end(), [&](const auto& other) {
      return other.first != manager && other.second.contains(leaf);
    });
    if (!leaves.contains(leaf) && !shared) Erase(applied.object, Steps(leaf), 0);
  }
  applied.owners[manager] = leaves;
  return applied;
}

void TakeOwnership(FieldOwners& owners, const std::string& manager, const Json& before, const Json& after) {
  std::set<std::string> mine;
  for (const std::string& leaf : Leaves(after)) {
    if (ValueAt(before, leaf) == ValueAt(after, leaf)) continue;
    mine.insert(leaf);
    for (auto& [other, owned] : owners) owned.erase(leaf);
  }
  owners[manager].merge(mine);
}

bool MatchesLabels(const Json& object, std::string_view selector) {
  const auto labels = kube::Labels(object);
  const auto terms = Terms(selector);
  return std::all_of(terms.begin(), terms.end(),
                     [&](const std::string& term) { return MatchesTerm(labels, term); });
}

bool MatchesFields(const Json& object, std::string_view selector) {
  for (const std::string& term : Terms(selector)) {
    const auto comparison = ParseComparison(term);
    if (!comparison) return false;
    const Json* value = &object;
    std::string_view rest = comparison->name;
    while (!rest.empty() && value != nullptr) {
      const auto dot = std::min(rest.find('.'), rest.size());
      value = kube::Find(*value, {rest.substr(0, dot)});
      rest.remove_prefix(std::min(dot + 1, rest.size()));
    }
    const std::string actual = value == nullptr     ? ""
                               : value->is_string() ? value->get<std::string>()
                                                    : value->dump();
    if ((actual == comparison->value) != comparison->equal) return false;
  }
  return true;
}

}  // namespace heddle::test
