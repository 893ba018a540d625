#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/shared_list.h"
#include "kube/store.h"

namespace heddle::extender {

// Values read from API objects, kept while the very same object stands in the cache: at 5,000 nodes reading
// them all anew takes longer than planning. Two lists in order are walked beside each other, in place of a look-up for
// each of 35,000. What cannot be read is null. Thread rule: every member may be called from any thread.
template <class T>
class Parsed {
 public:
  using Read = std::function<std::shared_ptr<const T>(const kube::Json& object)>;
  explicit Parsed(Read read) : read_(std::move(read)) {}

  // Those that could be read, in the objects' order; the very list of the last call where `objects` is that of the last
  // call. Forgets what is not among them. Requires: the objects in the order of their keys, as caches list them; in any
  // other, some are read again.
  base::SharedList<std::shared_ptr<const T>> All(const kube::SortedObjects& objects) {
    const std::lock_guard lock(mutex_);
    if (objects.SharesWith(read_from_)) return values_;
    std::vector<Reading> readings;
    readings.reserve(objects.size());
    std::vector<std::shared_ptr<const T>> values;
    values.reserve(objects.size());
    auto before = readings_.begin();
    for (const kube::ObjectPtr& object : objects) {
      if (before != readings_.end() && before->object != object)
        before = SkipTo(before, kube::KeyOf(*object));
      if (before != readings_.end() && before->object == object) {
        readings.push_back(std::move(*before++));
      } else {
        readings.push_back({object, read_(*object)});
      }
      if (readings.back().value != nullptr) values.push_back(readings.back().value);
    }
    readings_ = std::move(readings);
    values_ = std::move(values);
    read_from_ = objects;
    return values_;
  }

  // What was read of these when All was last called, null where it cannot be read; of what has changed since, read anew
  // and not kept. Forgets nothing. Requires: the objects in the order of their keys.
  std::vector<std::shared_ptr<const T>> Some(const std::vector<kube::ObjectPtr>& objects) {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<const T>> values;
    values.reserve(objects.size());
    auto before = readings_.begin();
    for (const kube::ObjectPtr& object : objects) {
      // Mostly they stand side by side.
      if (before == readings_.end() || before->object != object) before = Find(before, kube::KeyOf(*object));
      const bool known = before != readings_.end() && before->object == object;
      values.push_back(known ? before->value : read_(*object));
      if (known) ++before;
    }
    return values;
  }

 private:
  struct Reading {
    kube::ObjectPtr object;  // held, so that its address stays its own
    std::shared_ptr<const T> value;
  };
  using At = typename std::vector<Reading>::iterator;
  At Find(At from, const kube::ObjectKey& key) {
    return std::lower_bound(from, readings_.end(), key,
                            [](const Reading& reading, const kube::ObjectKey& other) {
                              return kube::KeyOf(*reading.object) < other;
                            });
  }
  At SkipTo(At from, const kube::ObjectKey& key) {
    while (from != readings_.end() && kube::KeyOf(*from->object) < key) ++from;
    return from;
  }

  const Read read_;
  std::mutex mutex_;
  std::vector<Reading> readings_;  // of the last call, in its order
  kube::SortedObjects read_from_;  // of it, and what it returned
  base::SharedList<std::shared_ptr<const T>> values_;
};

}  // namespace heddle::extender
