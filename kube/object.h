#pragma once

#include <compare>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace heddle::kube {

// API objects stay JSON at the wire; whoever knows a kind turns it into a struct at the edge (crds/).
using Json = nlohmann::json;

// Where a kind is served.
struct Resource {
  std::string group;  // "" is the core group
  std::string version;
  std::string plural;
  std::string kind;
  bool namespaced = true;

  std::string ApiVersion() const;  // "v1", "batch/v1"
  std::string Title() const;       // "pods", "jobs.batch": how kubectl and error texts call it
  friend bool operator==(const Resource&, const Resource&) = default;
};

inline const Resource kPods{"", "v1", "pods", "Pod", true};
inline const Resource kNodes{"", "v1", "nodes", "Node", false};
inline const Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};
inline const Resource kEvents{"", "v1", "events", "Event", true};
inline const Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap", true};
inline const Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease", true};
inline const Resource kJobs{"batch", "v1", "jobs", "Job", true};

inline Resource CustomResource(std::string group, std::string version, std::string plural, std::string kind,
                               bool namespaced) {
  return Resource{std::move(group), std::move(version), std::move(plural), std::move(kind), namespaced};
}

// Ordered by namespace, then name. Cluster-scoped objects have an empty namespace.
struct ObjectKey {
  std::string ns;
  std::string name;

  std::string ToString() const;  // "ns/name", or "name" for cluster-scoped objects
  static ObjectKey Parse(std::string_view text);
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 in it for a pointer
  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

// Accessors never throw and never insert: what is missing or of another type is empty.
using Path = std::initializer_list<std::string_view>;
const Json* Find(const Json& object, Path path);  // null where any step is missing or not an object
std::string StringAt(const Json& object, Path path);
std::optional<std::int64_t> IntAt(const Json& object, Path path);
std::optional<bool> BoolAt(const Json& object, Path path);
const Json& ArrayAt(const Json& object, Path path);  // an empty array where there is none
std::map<std::string, std::string> StringMapAt(const Json& object, Path path);

std::string Name(const Json& object);
std::string Namespace(const Json& object);
ObjectKey KeyOf(const Json& object);
std::string Uid(const Json& object);
std::string ResourceVersion(const Json& object);  // opaque: compare for equality only
std::int64_t Generation(const Json& object);      // 0 where there is none
std::map<std::string, std::string> Labels(const Json& object);
std::map<std::string, std::string> Annotations(const Json& object);
std::optional<std::string> Label(const Json& object, std::string_view key);
std::optional<std::string> Annotation(const Json& object, std::string_view key);
std::optional<base::WallTime> CreationTimestamp(const Json& object);
std::optional<base::WallTime> DeletionTimestamp(const Json& object);

struct OwnerReference {
  std::string api_version, kind, name, uid;
  bool controller = false;
  friend bool operator==(const OwnerReference&, const OwnerReference&) = default;
};
// The owner that is marked as controller; there is at most one.
std::optional<OwnerReference> ControllerOwner(const Json& object);
Json ToJson(const OwnerReference& owner);

// The condition of that type in status.conditions; null where there is none.
const Json* Condition(const Json& object, std::string_view type);
// Sets or replaces a condition in `conditions` (an array) by type. lastTransitionTime moves only with the
// status. Returns whether anything changed.
struct ConditionValue {
  std::string type, status, reason, message;
  std::int64_t observed_generation = 0;
};
bool SetCondition(Json& conditions, const ConditionValue& value, base::WallTime now);

// Drops what the cache never reads (metadata.managedFields); a ready-made reflector transform.
Json DropManagedFields(Json object);

// {"apiVersion":…,"kind":…,"metadata":{"name":…,"namespace":…}}
Json NewObject(const Resource& resource, const ObjectKey& key);

}  // namespace heddle::kube
