#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "kube/store.h"

namespace heddle::extender {

// Values read from API objects, kept while the very same object stands in the cache: at 5,000 nodes reading
// them all anew takes longer than planning. What cannot be read is null. Thread rule: every member may be
// called from any thread.
template <class T>
class Parsed {
 public:
  using Read = std::function<std::shared_ptr<const T>(const kube::Json& object)>;
  explicit Parsed(Read read) : read_(std::move(read)) {}

  // Those that could be read, in the objects' order. Forgets what is not among them.
  std::vector<std::shared_ptr<const T>> All(const std::vector<kube::ObjectPtr>& objects) {
    const std::lock_guard lock(mutex_);
    std::map<const kube::Json*, Reading> kept;
    std::vector<std::shared_ptr<const T>> values;
    values.reserve(objects.size());
    for (const kube::ObjectPtr& object : objects) {
      const auto known = readings_.find(object.get());
      Reading reading = known != readings_.end() ? known->second : Reading{object, read_(*object)};
      if (reading.value != nullptr) values.push_back(reading.value);
      kept.emplace(object.get(), std::move(reading));
    }
    readings_ = std::move(kept);
    return values;
  }

 private:
  struct Reading {
    kube::ObjectPtr object;  // held, so that its address stays its own
    std::shared_ptr<const T> value;
  };
  const Read read_;
  std::mutex mutex_;
  std::map<const kube::Json*, Reading> readings_;
};

}  // namespace heddle::extender
