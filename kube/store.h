#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/clock.h"
#include "base/shared_list.h"
#include "kube/object.h"

namespace heddle::kube {

using ObjectPtr = std::shared_ptr<const Json>;
using SortedObjects = base::SharedList<ObjectPtr>;  // by their keys

// What a reflector has seen: a cache, always some time behind the server. Objects are immutable and shared.
// Thread rule: every member may be called from any thread.
class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  ObjectPtr Get(const ObjectKey& key) const;  // null where there is none
  SortedObjects List() const;                 // the very list of the last call while nothing changes
  std::vector<ObjectKey> Keys() const;        // sorted
  std::size_t size() const;
  // Whether a first full state was seen. Stays true through later outages.
  bool synced() const;

  // Blocks until synced; false at the timeout or on stop.
  bool WaitForSync(base::Clock& clock, std::stop_token stop, std::chrono::nanoseconds timeout) const;

 private:
  friend class Reflector;
  ObjectPtr Put(const ObjectKey& key, ObjectPtr object);  // returns what was there
  ObjectPtr Erase(const ObjectKey& key);                  // returns what was there
  void MarkSynced();

  mutable std::mutex mutex_;
  std::map<ObjectKey, ObjectPtr> objects_;
  mutable std::optional<SortedObjects> listed_;  // nothing once something has changed
  bool synced_ = false;
  mutable std::vector<std::stop_source> waiters_;
};

}  // namespace heddle::kube
