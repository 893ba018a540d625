#include "extender/node_constraints.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "crds/gpu_indexes.h"
#include "crds/node_use.h"
#include "crds/quantity.h"
#include "extender/pod_facts.h"
#include "kube/packed.h"

namespace heddle::extender {
namespace {

constexpr const char* kNameField = "metadata.name";

std::optional<std::int64_t> ToInteger(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool Contains(const kube::Json& values, const std::string& wanted) {
  return std::any_of(values.begin(), values.end(),
                     [&wanted](const kube::Json& value) { return value.is_string() && value == wanted; });
}

// `present` is null where the node has no such label.
bool Matches(const kube::Json& requirement, const std::string* present) {
  const std::string op = kube::StringAt(requirement, {"operator"});
  const kube::Json& values = kube::ArrayAt(requirement, {"values"});
  if (op == "In") return present != nullptr && Contains(values, *present);
  if (op == "NotIn") return present == nullptr || !Contains(values, *present);
  if (op == "Exists") return present != nullptr;
  if (op == "DoesNotExist") return present == nullptr;
  if (op != "Gt" && op != "Lt") return false;
  if (present == nullptr || values.size() != 1 || !values[0].is_string()) return false;
  const auto have = ToInteger(*present), bound = ToInteger(values[0].get<std::string>());
  if (!have || !bound) return false;
  return op == "Gt" ? *have > *bound : *have < *bound;
}

bool TermMatches(const kube::Json& term, const NodeFacts& node) {
  const kube::Json& expressions = kube::ArrayAt(term, {"matchExpressions"});
  const kube::Json& fields = kube::ArrayAt(term, {"matchFields"});
  if (expressions.empty() && fields.empty()) return false;  // an empty term matches nothing
  for (const kube::Json& expression : expressions) {
    const auto label = node.labels.find(kube::StringAt(expression, {"key"}));
    if (!Matches(expression, label == node.labels.end() ? nullptr : &label->second)) return false;
  }
  return std::all_of(fields.begin(), fields.end(), [&node](const kube::Json& field) {
    return kube::StringAt(field, {"key"}) == kNameField && Matches(field, &node.name);
  });
}

// Names without which no node matches the term. All fields of a term must match, so those of any one will do.
std::optional<std::vector<std::string>> NamedBy(const kube::Json& term) {
  for (const kube::Json& field : kube::ArrayAt(term, {"matchFields"})) {
    if (kube::StringAt(field, {"key"}) != kNameField || kube::StringAt(field, {"operator"}) != "In") continue;
    std::vector<std::string> names;
    for (const kube::Json& value : kube::ArrayAt(field, {"values"})) {
      if (value.is_string()) names.push_back(value.get<std::string>());
    }
    return names;
  }
  return std::nullopt;
}

// Terms are alternatives: each has to name its nodes.
std::optional<std::vector<std::string>> NamedByAll(const kube::Json& required) {
  if (!required.is_object()) return std::nullopt;
  std::vector<std::string> names;
  for (const kube::Json& term : kube::ArrayAt(required, {"nodeSelectorTerms"})) {
    const auto more = NamedBy(term);
    if (!more) return std::nullopt;
    names.insert(names.end(), more->begin(), more->end());
  }
  return names;
}

kube::Json Copy(const kube::Json* value) {
  return value == nullptr ? kube::Json() : *value;
}

void ReadAllocatable(const kube::Json& node, NodeFacts& facts) {
  const kube::Json* allocatable = kube::Find(node, {"status", "allocatable"});
  if (allocatable == nullptr || !allocatable->is_object()) return;
  for (const auto& [name, value] : allocatable->items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    const std::int64_t amount = crds::ParseQuantity(text).value_or(0);
    if (name == "cpu") {
      facts.milli_cpu = crds::ParseMilliQuantity(text).value_or(0);
    } else if (name == "memory") {
      facts.memory_bytes = amount;
    } else if (name == "pods") {
      facts.pods = amount;
    } else if (name != "ephemeral-storage" && !crds::IsGpuResource(name)) {
      facts.extended.emplace_back(name, amount);
    }
  }
  if (auto offered = crds::OfferedGpusOf(node)) {
    facts.gpus = offered->count;
    facts.gpu_resource = std::move(offered->resource);
  }
}

}  // namespace

NodeFacts ReadNode(const kube::Json& node) {
  if (kube::IsPacked(node)) return ReadNode(kube::Unpacked(node));
  NodeFacts facts;
  facts.name = kube::Name(node);
  facts.labels = kube::Labels(node);
  for (const kube::Json& taint : kube::ArrayAt(node, {"spec", "taints"})) {
    facts.taints.push_back({kube::StringAt(taint, {"key"}), kube::StringAt(taint, {"value"}),
                            kube::StringAt(taint, {"effect"})});
  }
  facts.cordoned = kube::BoolAt(node, {"spec", "unschedulable"}).value_or(false);
  const kube::Json* ready = kube::Condition(node, "Ready");
  facts.ready = ready != nullptr && kube::StringAt(*ready, {"status"}) == "True";
  ReadAllocatable(node, facts);
  return facts;
}

PodConstraints::PodConstraints(const kube::Json& pod)
    : selector_(Copy(kube::Find(pod, {"spec", "nodeSelector"}))),
      required_(Copy(kube::Find(
          pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"}))),
      tolerations_(kube::ArrayAt(pod, {"spec", "tolerations"})),
      fingerprint_(selector_.dump() + '\n' + required_.dump() + '\n' + tolerations_.dump()),
      named_(NamedByAll(required_)) {}

bool PodConstraints::Tolerates(const Taint& taint) const {
  return std::any_of(tolerations_.begin(), tolerations_.end(), [&taint](const kube::Json& toleration) {
    const std::string effect = kube::StringAt(toleration, {"effect"});
    const std::string key = kube::StringAt(toleration, {"key"});
    const std::string op = kube::StringAt(toleration, {"operator"});
    if (!effect.empty() && effect != taint.effect) return false;
    if (!key.empty() && key != taint.key) return false;
    if (op == "Exists") return true;
    return (op.empty() || op == "Equal") && !key.empty() &&
           kube::StringAt(toleration, {"value"}) == taint.value;
  });
}

bool PodConstraints::Admit(const NodeFacts& node) const {
  if (selector_.is_object()) {
    for (const auto& [key, value] : selector_.items()) {
      const auto label = node.labels.find(key);
      if (label == node.labels.end() || value != label->second) return false;
    }
  }
  if (required_.is_object()) {
    const kube::Json& terms = kube::ArrayAt(required_, {"nodeSelectorTerms"});
    const bool any = std::any_of(terms.begin(), terms.end(),
                                 [&node](const kube::Json& term) { return TermMatches(term, node); });
    if (!any) return false;
  }
  return std::all_of(node.taints.begin(), node.taints.end(), [this](const Taint& taint) {
    return taint.effect == "PreferNoSchedule" || Tolerates(taint);
  });
}

}  // namespace heddle::extender
