#include "kube/object.h"

#include <fmt/format.h>

#include "kube/packed.h"

namespace heddle::kube {
namespace {

std::string Text(const Json* value) {
  const auto* text = value == nullptr ? nullptr : value->get_ptr<const std::string*>();
  return text == nullptr ? std::string() : *text;
}

std::optional<std::string> MapEntry(const Json& object, std::string_view map, std::string_view key) {
  if (IsPacked(object)) return EntryOfPacked(object, map, key);
  const Json* value = Find(object, {"metadata", map, key});
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return value->get_ref<const std::string&>();
}

}  // namespace

std::string Resource::ApiVersion() const {
  return group.empty() ? version : group + "/" + version;
}
std::string Resource::Title() const {
  return group.empty() ? plural : plural + "." + group;
}

std::string ObjectKey::ToString() const {
  return ns.empty() ? name : ns + "/" + name;
}

ObjectKey ObjectKey::Parse(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return ObjectKey{"", std::string(text)};
  return ObjectKey{std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

const Json* Find(const Json& object, Path path) {
  const Json* at = &object;
  for (const std::string_view step : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(step);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::string StringAt(const Json& object, Path path) {
  if (IsPacked(object)) return std::string(TextOfPacked(object, path));
  return Text(Find(object, path));
}

std::optional<std::int64_t> IntAt(const Json& object, Path path) {
  const Json* value = Find(object, path);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  return value->get<std::int64_t>();
}

std::optional<bool> BoolAt(const Json& object, Path path) {
  const Json* value = Find(object, path);
  if (value == nullptr || !value->is_boolean()) return std::nullopt;
  return value->get<bool>();
}

const Json& ArrayAt(const Json& object, Path path) {
  static const Json kNothing = Json::array();
  const Json* value = Find(object, path);
  return value == nullptr || !value->is_array() ? kNothing : *value;
}

std::map<std::string, std::string> StringMapAt(const Json& object, Path path) {
  std::map<std::string, std::string> entries;
  const Json* value = Find(object, path);
  if (value == nullptr || !value->is_object()) return entries;
  for (const auto& [key, entry] : value->items()) {
    if (entry.is_string()) entries.emplace(key, entry.get_ref<const std::string&>());
  }
  return entries;
}

std::string Name(const Json& object) {
  return StringAt(object, {"metadata", "name"});
}
std::string Namespace(const Json& object) {
  return StringAt(object, {"metadata", "namespace"});
}
ObjectKey KeyOf(const Json& object) {
  return ObjectKey{Namespace(object), Name(object)};
}
std::string Uid(const Json& object) {
  return StringAt(object, {"metadata", "uid"});
}
std::string ResourceVersion(const Json& object) {
  return StringAt(object, {"metadata", "resourceVersion"});
}
std::int64_t Generation(const Json& object) {
  return IntAt(object, {"metadata", "generation"}).value_or(0);
}
std::map<std::string, std::string> Labels(const Json& object) {
  return IsPacked(object) ? EntriesOfPacked(object, "labels") : StringMapAt(object, {"metadata", "labels"});
}
std::map<std::string, std::string> Annotations(const Json& object) {
  return IsPacked(object) ? EntriesOfPacked(object, "annotations")
                          : StringMapAt(object, {"metadata", "annotations"});
}
std::optional<std::string> Label(const Json& object, std::string_view key) {
  return MapEntry(object, "labels", key);
}
std::optional<std::string> Annotation(const Json& object, std::string_view key) {
  return MapEntry(object, "annotations", key);
}
std::optional<base::WallTime> CreationTimestamp(const Json& object) {
  return base::ParseTime(StringAt(object, {"metadata", "creationTimestamp"}));
}
std::optional<base::WallTime> DeletionTimestamp(const Json& object) {
  return base::ParseTime(StringAt(object, {"metadata", "deletionTimestamp"}));
}

std::optional<OwnerReference> ControllerOwner(const Json& object) {
  for (const Json& owner : ArrayAt(object, {"metadata", "ownerReferences"})) {
    if (!BoolAt(owner, {"controller"}).value_or(false)) continue;
    return OwnerReference{StringAt(owner, {"apiVersion"}), StringAt(owner, {"kind"}),
                          StringAt(owner, {"name"}), StringAt(owner, {"uid"}), true};
  }
  return std::nullopt;
}

Json ToJson(const OwnerReference& owner) {
  Json json{
      {"apiVersion", owner.api_version}, {"kind", owner.kind}, {"name", owner.name}, {"uid", owner.uid}};
  if (owner.controller) json["controller"] = true;
  return json;
}

const Json* Condition(const Json& object, std::string_view type) {
  for (const Json& condition : ArrayAt(object, {"status", "conditions"})) {
    if (StringAt(condition, {"type"}) == type) return &condition;
  }
  return nullptr;
}

bool SetCondition(Json& conditions, const ConditionValue& value, base::WallTime now) {
  if (!conditions.is_array()) conditions = Json::array();
  Json fresh{{"type", value.type},
             {"status", value.status},
             {"reason", value.reason},
             {"message", value.message},
             {"observedGeneration", value.observed_generation},
             {"lastTransitionTime", base::FormatTime(now)}};
  for (Json& condition : conditions) {
    if (StringAt(condition, {"type"}) != value.type) continue;
    const Json* since = Find(condition, {"lastTransitionTime"});
    if (since != nullptr && StringAt(condition, {"status"}) == value.status)
      fresh["lastTransitionTime"] = *since;
    if (condition == fresh) return false;
    condition = std::move(fresh);
    return true;
  }
  conditions.push_back(std::move(fresh));
  return true;
}

Json DropManagedFields(Json object) {
  if (!object.is_object()) return object;
  const auto metadata = object.find("metadata");
  if (metadata != object.end() && metadata->is_object()) metadata->erase("managedFields");
  return object;
}

Json NewObject(const Resource& resource, const ObjectKey& key) {
  Json object{
      {"apiVersion", resource.ApiVersion()}, {"kind", resource.kind}, {"metadata", {{"name", key.name}}}};
  if (!key.ns.empty()) object["metadata"]["namespace"] = key.ns;
  return object;
}

}  // namespace heddle::kube
