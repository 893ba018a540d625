#include "crds/codec.h"
#include "crds/kept_text.h"

namespace heddle::crds::codec {
namespace {

std::string_view ConditionStatusName(ConditionStatus status) {
  switch (status) {
    case ConditionStatus::kTrue:
      return "True";
    case ConditionStatus::kFalse:
      return "False";
    case ConditionStatus::kUnknown:
      break;
  }
  return "Unknown";
}

Json WriteOwners(const std::vector<OwnerReference>& owners) {
  return WriteList(owners, owners.size(), [](const OwnerReference& owner) {
    return Json{{"apiVersion", Clean(owner.api_version, 253)},
                {"kind", Clean(owner.kind, 253)},
                {"name", Clean(owner.name, 253)},
                {"uid", Clean(owner.uid, 253)},
                {"controller", owner.controller}};
  });
}

}  // namespace

std::string Clean(std::string_view text, std::size_t max_length) {
  return KeptText(text, max_length);
}

void PutText(Json& json, std::string_view key, std::string_view text, std::size_t max_length) {
  if (!text.empty()) json[std::string(key)] = Clean(text, max_length);
}

void PutPositive(Json& json, std::string_view key, std::int64_t value) {
  if (value != 0) json[std::string(key)] = value;
}

void PutTime(Json& json, std::string_view key, const std::optional<base::WallTime>& time) {
  if (time) json[std::string(key)] = base::FormatTime(*time);
}

void PutFact(Json& json, std::string_view key, std::string_view missing_key,
             const topology::Fact<int>& fact) {
  if (fact) {
    json[std::string(key)] = *fact;
  } else {
    json[std::string(missing_key)] = topology::MissingName(fact.missing());
  }
}

void PutList(Json& json, std::string_view key, Json list) {
  if (!list.empty()) json[std::string(key)] = std::move(list);
}

Json TextList(const std::vector<std::string>& texts, std::size_t max_items, std::size_t max_length) {
  return WriteList(texts, max_items, [&](const std::string& text) { return Clean(text, max_length); });
}

Json WriteHead(std::string_view kind, const ObjectMeta& meta) {
  Json json = ApplyHead(kind, meta, true);
  Json& metadata = json["metadata"];
  PutText(metadata, "resourceVersion", meta.resource_version, 253);
  PutPositive(metadata, "generation", meta.generation);
  PutTime(metadata, "creationTimestamp", meta.created_at);
  PutTime(metadata, "deletionTimestamp", meta.deleted_at);
  return json;
}

Json ApplyHead(std::string_view kind, const ObjectMeta& meta, bool with_owners) {
  Json metadata = Json::object();
  PutText(metadata, "name", meta.name, 253);
  PutText(metadata, "namespace", meta.ns, 63);
  PutText(metadata, "uid", meta.uid, 253);
  if (with_owners) PutList(metadata, "ownerReferences", WriteOwners(meta.owners));
  return Json{{"apiVersion", keys::kApiVersion}, {"kind", kind}, {"metadata", std::move(metadata)}};
}

Json WriteConditions(const std::vector<Condition>& conditions, std::size_t max) {
  return WriteList(conditions, max, [](const Condition& condition) {
    Json json{{"type", Clean(condition.type, 64)},
              {"status", ConditionStatusName(condition.status)},
              // The API server refuses an empty reason; the type at least says what it is about.
              {"reason", Clean(condition.reason.empty() ? condition.type : condition.reason, 64)},
              {"message", Clean(condition.message, 1024)},
              {"lastTransitionTime", base::FormatTime(condition.last_transition)}};
    PutPositive(json, "observedGeneration", condition.observed_generation);
    return json;
  });
}

}  // namespace heddle::crds::codec
