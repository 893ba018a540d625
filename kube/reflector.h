#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "kube/client.h"
#include "kube/store.h"

namespace heddle::kube {

enum class ChangeType : std::uint8_t { kAdded, kModified, kDeleted };

struct ReflectorOptions {
  std::string ns;  // "" = all
  std::string label_selector;
  std::string field_selector;
  // Drops what the cache need not hold; must keep metadata's name, namespace, uid and resourceVersion.
  std::function<Json(Json)> transform = DropManagedFields;
  Pruning pruning;  // what of an object is dropped while it is read, to spare the time
  // Called on Run's thread after the store has changed; must not block, so put the key into a queue and
  // return. old is null for kAdded. For kDeleted `current` is null and `old` the last state known, which may
  // be out of date.
  std::function<void(ChangeType type, const ObjectKey& key, const ObjectPtr& old, const ObjectPtr& current)>
      on_change;
  std::function<void()> on_synced;  // once, after the first full state
  bool use_watch_list = true;
  // Reads the first state in pages, consistently, and no WatchList: for thousands of objects. A server of Kubernetes
  // 1.34 takes half of a WatchList's CPU for it; an older one has to ask etcd.
  bool in_pages = false;
  Log log;
};

// Keeps a Store equal to a server's list, as client-go's reflector does (facts 6.2): WatchList where the
// server has it, else LIST (from the server's cache first, paged and consistent after a 410 and where one
// answer is too large) and WATCH with bookmarks; re-watches from the last resourceVersion after a normal
// end; lists again after 410; backs off 0.8 s doubling to 30 s with full jitter, back to the start after 2
// quiet minutes. An object that was deleted and made anew in a gap is reported as deleted and added, told by
// its uid. A replaced list reports what vanished. Thread rule: Run on one thread, the rest from any. Client
// and clock must outlive it.
class Reflector {
 public:
  Reflector(Client& client, base::Clock& clock, base::Random random, Resource resource,
            ReflectorOptions options);

  // Blocks until stop.
  void Run(std::stop_token stop);

  const Store& store() const { return store_; }
  bool WaitForSync(std::stop_token stop, std::chrono::nanoseconds timeout) const {
    return store_.WaitForSync(clock_, std::move(stop), timeout);
  }
  // Whether the last attempt worked. False means that the store grows old.
  bool healthy() const;
  std::optional<base::Error> last_error() const;  // of the last failed attempt since the last good one
  // When the server last said anything: a list, an event, or a bookmark, which comes about once a minute where nothing
  // changes. Nothing before the first time. What the store holds is at most this old.
  std::optional<base::MonotonicTime> heard_at() const;
  // The last resourceVersion seen from a list, a bookmark or a real event.
  std::string resource_version() const;

 private:
  enum class Next : std::uint8_t { kWatch, kList };

  Next ListAndReplace(const std::stop_token& stop);
  base::Result<ObjectList> ListOnce(const std::stop_token& stop);
  Next Stream(bool initial, const std::stop_token& stop);
  Next AfterFailedStart(const base::Status& ended, bool ran_out, const std::stop_token& stop);
  Next AfterWatch(const base::Status& ended, bool died_at_once, const std::stop_token& stop);
  WatchOptions MakeWatchOptions(bool initial);
  void Handle(WatchEvent&& event);
  void Replace(const std::map<ObjectKey, ObjectPtr>& fresh, const std::string& resource_version);
  void Upsert(const ObjectKey& key, const ObjectPtr& object);
  void Remove(const ObjectKey& key);
  void Notify(ChangeType type, const ObjectKey& key, const ObjectPtr& old, const ObjectPtr& current) const;
  ObjectPtr Prepare(Json&& object) const;
  void Advance(const std::string& resource_version);
  void Succeeded();
  void Failed(const base::Error& error);
  void BackOff(const std::stop_token& stop, std::optional<std::chrono::milliseconds> at_least = std::nullopt);
  void Say(const std::string& line) const;

  Client& client_;
  base::Clock& clock_;
  base::Random random_;
  const Resource resource_;
  const ReflectorOptions options_;
  Store store_;

  bool watch_list_works_ = true;
  bool in_pages_ = false;  // also where all at once turned out to be too large
  bool expired_ = false;   // the known resource version is gone: list consistently
  int internal_errors_ = 0;
  std::chrono::nanoseconds back_off_{0};
  base::MonotonicTime last_failure_{};

  mutable std::mutex mutex_;  // guards what follows
  std::string resource_version_;
  bool healthy_ = false;
  std::optional<base::MonotonicTime> heard_at_;
  std::optional<base::Error> last_error_;
};

}  // namespace heddle::kube
