#include "kube/work_queue.h"

#include <algorithm>

namespace heddle::kube {

WorkQueue::WorkQueue(base::Clock& clock, WorkQueueOptions options) : clock_(clock), options_(options) {}

void WorkQueue::Add(const std::string& key) {
  const std::lock_guard lock(mutex_);
  AddLocked(key);
}

void WorkQueue::AddAfter(const std::string& key, std::chrono::nanoseconds delay) {
  const base::MonotonicTime due = clock_.Now() + delay;
  const std::lock_guard lock(mutex_);
  if (delay.count() <= 0) return AddLocked(key);
  const auto known = due_.find(key);
  if (known != due_.end() && known->second <= due) return;
  if (known != due_.end()) delayed_.erase({known->second, key});
  due_[key] = due;
  delayed_.emplace(due, key);
  WakeOneLocked();
}

void WorkQueue::AddRateLimited(const std::string& key) {
  std::chrono::nanoseconds delay;
  {
    const std::lock_guard lock(mutex_);
    const int failures = failures_[key]++;
    // 2^40 of any delay is over every cap, and shifting further would overflow.
    const double factor = double(std::int64_t{1} << std::min(failures, 40));
    const double wanted = double(options_.base_delay.count()) * factor;
    delay = wanted >= double(options_.max_delay.count()) ? options_.max_delay
                                                         : std::chrono::nanoseconds(std::int64_t(wanted));
  }
  AddAfter(key, delay);
}

void WorkQueue::Forget(const std::string& key) {
  const std::lock_guard lock(mutex_);
  failures_.erase(key);
}

int WorkQueue::Requeues(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = failures_.find(key);
  return found == failures_.end() ? 0 : found->second;
}

std::optional<std::string> WorkQueue::Get(std::stop_token stop) {
  while (!stop.stop_requested()) {
    std::stop_source wake;
    std::optional<base::MonotonicTime> due;
    {
      const std::lock_guard lock(mutex_);
      MoveDueLocked();
      if (auto key = TakeLocked()) return key;
      if (!delayed_.empty()) due = delayed_.begin()->first;
      waiters_.push_back(wake);
    }
    // A sleep that ends for three reasons: something became due, something was added, or stop.
    const std::stop_callback forward(stop, [&wake] { wake.request_stop(); });
    clock_.SleepUntil(due.value_or(base::MonotonicTime::max()), wake.get_token());
    const std::lock_guard lock(mutex_);
    std::erase(waiters_, wake);
  }
  // Somebody may have woken us for a key that another waiter should take now.
  const std::lock_guard lock(mutex_);
  if (!ready_.empty()) WakeOneLocked();
  return std::nullopt;
}

std::optional<std::string> WorkQueue::TryGet() {
  const std::lock_guard lock(mutex_);
  MoveDueLocked();
  return TakeLocked();
}

void WorkQueue::Done(const std::string& key) {
  const std::lock_guard lock(mutex_);
  processing_.erase(key);
  if (!dirty_.contains(key)) return;
  ready_.push_back(key);
  WakeOneLocked();
}

std::size_t WorkQueue::size() const {
  const std::lock_guard lock(mutex_);
  return ready_.size();
}

std::optional<base::MonotonicTime> WorkQueue::NextDue() const {
  const std::lock_guard lock(mutex_);
  if (delayed_.empty()) return std::nullopt;
  return delayed_.begin()->first;
}

void WorkQueue::AddLocked(const std::string& key) {
  if (!dirty_.insert(key).second || processing_.contains(key)) return;
  ready_.push_back(key);
  WakeOneLocked();
}

void WorkQueue::MoveDueLocked() {
  const base::MonotonicTime now = clock_.Now();
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    const std::string key = delayed_.begin()->second;
    delayed_.erase(delayed_.begin());
    due_.erase(key);
    AddLocked(key);
  }
}

std::optional<std::string> WorkQueue::TakeLocked() {
  if (ready_.empty()) return std::nullopt;
  std::string key = std::move(ready_.front());
  ready_.pop_front();
  dirty_.erase(key);
  processing_.insert(key);
  // What else became due in the same moment is for the others.
  if (!ready_.empty()) WakeOneLocked();
  return key;
}

void WorkQueue::WakeOneLocked() {
  if (waiters_.empty()) return;
  const std::stop_source waiter = waiters_.back();
  waiters_.pop_back();
  // Wakes a sleeper of the clock; it takes our lock only afterwards, on its own thread.
  std::stop_source(waiter).request_stop();
}

}  // namespace heddle::kube
