#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace heddle::crds {

using Json = nlohmann::json;

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
  friend bool operator==(const OwnerReference&, const OwnerReference&) = default;
};

// What Heddle reads and writes of metadata. Everything else there (labels, annotations, finalizers) belongs
// to whoever wrote it and is not carried along, so a whole object of ours is only ever PUT to /status.
struct ObjectMeta {
  std::string name;
  std::string ns;  // empty on cluster-scoped objects
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;
  std::optional<base::WallTime> created_at;  // whole seconds
  std::optional<base::WallTime> deleted_at;  // set while a finalizer holds it
  std::vector<OwnerReference> owners;
  friend bool operator==(const ObjectMeta&, const ObjectMeta&) = default;
};

}  // namespace heddle::crds
