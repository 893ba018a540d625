#include "kube/store.h"

#include <algorithm>

namespace heddle::kube {

ObjectPtr Store::Get(const ObjectKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : found->second;
}

SortedObjects Store::List() const {
  const std::lock_guard lock(mutex_);
  if (!listed_) {
    std::vector<ObjectPtr> objects;
    objects.reserve(objects_.size());
    for (const auto& [key, object] : objects_) objects.push_back(object);
    listed_ = std::move(objects);
  }
  return *listed_;
}

std::vector<ObjectKey> Store::Keys() const {
  const std::lock_guard lock(mutex_);
  std::vector<ObjectKey> keys;
  keys.reserve(objects_.size());
  for (const auto& [key, object] : objects_) keys.push_back(key);
  return keys;
}

std::size_t Store::size() const {
  const std::lock_guard lock(mutex_);
  return objects_.size();
}

bool Store::synced() const {
  const std::lock_guard lock(mutex_);
  return synced_;
}

bool Store::WaitForSync(base::Clock& clock, std::stop_token stop, std::chrono::nanoseconds timeout) const {
  std::stop_source wake;
  {
    const std::lock_guard lock(mutex_);
    if (synced_) return true;
    waiters_.push_back(wake);
  }
  {
    const std::stop_callback forward(stop, [&wake] { wake.request_stop(); });
    clock.SleepFor(timeout, wake.get_token());
  }
  const std::lock_guard lock(mutex_);
  std::erase(waiters_, wake);
  return synced_;
}

ObjectPtr Store::Put(const ObjectKey& key, ObjectPtr object) {
  const std::lock_guard lock(mutex_);
  listed_.reset();
  return std::exchange(objects_[key], std::move(object));
}

ObjectPtr Store::Erase(const ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return nullptr;
  listed_.reset();
  ObjectPtr old = std::move(found->second);
  objects_.erase(found);
  return old;
}

void Store::MarkSynced() {
  std::vector<std::stop_source> waiters;
  {
    const std::lock_guard lock(mutex_);
    synced_ = true;
    waiters.swap(waiters_);
  }
  for (std::stop_source& waiter : waiters) waiter.request_stop();
}

}  // namespace heddle::kube
