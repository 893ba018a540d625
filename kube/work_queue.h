#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"

namespace heddle::kube {

struct WorkQueueOptions {
  // client-go's DefaultTypedControllerRateLimiter: 5 ms doubling to 1000 s; the cap here is what a person
  // would wait.
  std::chrono::nanoseconds base_delay = std::chrono::milliseconds(5);
  std::chrono::nanoseconds max_delay = std::chrono::seconds(60);
};

// Keys of objects that want a look; never objects, since they would be old by the time they are looked at.
// A key is held once however often it is added; a key added while it is being worked on comes again after
// Done, so one key is never worked on by two threads. First in, first out. Thread rule: every member may be
// called from any thread. The clock must outlive the queue.
class WorkQueue {
 public:
  explicit WorkQueue(base::Clock& clock, WorkQueueOptions options = {});
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void Add(const std::string& key);
  // The earliest of several pending times counts.
  void AddAfter(const std::string& key, std::chrono::nanoseconds delay);
  // After base_delay, doubling with each call until Forget.
  void AddRateLimited(const std::string& key);
  void Forget(const std::string& key);
  int Requeues(const std::string& key) const;  // AddRateLimited calls since Forget

  // Blocks for a key; nothing once stop is asked. Each key that is returned needs a Done.
  std::optional<std::string> Get(std::stop_token stop);
  // The same without waiting.
  std::optional<std::string> TryGet();
  void Done(const std::string& key);

  std::size_t size() const;                            // ready now, without the delayed ones
  std::optional<base::MonotonicTime> NextDue() const;  // of the delayed ones

 private:
  void AddLocked(const std::string& key);
  void MoveDueLocked();
  std::optional<std::string> TakeLocked();
  void WakeOneLocked();

  base::Clock& clock_;
  const WorkQueueOptions options_;
  mutable std::mutex mutex_;
  std::deque<std::string> ready_;
  std::set<std::string> dirty_;       // wants work
  std::set<std::string> processing_;  // between Get and Done
  std::map<std::string, base::MonotonicTime> due_;
  std::set<std::pair<base::MonotonicTime, std::string>> delayed_;
  std::map<std::string, int> failures_;
  std::vector<std::stop_source> waiters_;
};

}  // namespace heddle::kube
