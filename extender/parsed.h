#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
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
    ++round_;
    std::vector<std::shared_ptr<const T>> values;
    values.reserve(objects.size());
    for (const kube::ObjectPtr& object : objects) {
      const auto [reading, fresh] = readings_.try_emplace(object.get());
      if (fresh) reading->second = {object, read_(*object), round_};
      reading->second.round = round_;
      if (reading->second.value != nullptr) values.push_back(reading->second.value);
    }
    if (readings_.size() > objects.size()) {
      std::erase_if(readings_, [this](const auto& entry) { return entry.second.round != round_; });
    }
    return values;
  }

 private:
  struct Reading {
    kube::ObjectPtr object;  // held, so that its address stays its own
    std::shared_ptr<const T> value;
    std::uint64_t round = 0;  // of the last call that had it
  };
  const Read read_;
  std::mutex mutex_;
  std::uint64_t round_ = 0;
  std::unordered_map<const kube::Json*, Reading> readings_;
};

}  // namespace heddle::extender
