#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/consistent_read.h"
#include "kube/store.h"

namespace heddle::extender {

// A reflector's cache with what we know to be newer laid over it: the answers to our own writes and to
// consistent reads. The cache may run behind; without this, a plan that was just committed would look as if
// it had never been made.
//
// An entry goes when the cache has caught up. Resource versions are compared as numbers, which
// Kubernetes 1.35 promises, and for equality where they are none. What a lagging cache never settles is
// Overdue: the owner reads it again. Thread rule: every member may be called from any thread.
class FreshView {
 public:
  explicit FreshView(const kube::Store& store) : store_(store) {}
  FreshView(const FreshView&) = delete;
  FreshView& operator=(const FreshView&) = delete;

  kube::ObjectPtr Get(const kube::ObjectKey& key) const;
  kube::SortedObjects List() const;  // the very list of the last call while nothing changes

  // Passed over where something newer is known: a read may have been on its way while we wrote.
  void Saw(kube::Json object, base::MonotonicTime now);
  // The object of this uid is known to be gone.
  void Gone(const kube::ObjectKey& key, const std::string& uid, base::MonotonicTime now);
  // The cache has reported the deletion of this uid.
  void CacheLost(const kube::ObjectKey& key, const std::string& uid);
  // A consistent list: what it has is seen, and what is known from before it, and it has not, is gone. Returns those
  // that are gone and were never in the cache, which will not report their end.
  [[nodiscard]] std::vector<kube::ObjectPtr> SawAll(const kube::ObjectChanges& list, base::MonotonicTime now);

  // What was last written or read half a minute ago or longer, and the cache does not show.
  std::vector<kube::ObjectKey> Overdue(base::MonotonicTime now) const;
  // Whatever is laid over this key is dropped: a read has just shown that the cache may be trusted or the
  // write failed.
  void Forget(const kube::ObjectKey& key);

  const kube::Store& store() const { return store_; }

 private:
  struct Entry {
    kube::ObjectPtr object;  // null = gone
    std::string uid;
    base::MonotonicTime since{};
  };
  kube::SortedObjects Laid(const kube::SortedObjects& cached) const;  // over that list
  kube::ObjectPtr Merge(const kube::ObjectPtr& cached, const Entry& entry, bool& settled) const;

  const kube::Store& store_;
  mutable std::mutex mutex_;
  mutable std::map<kube::ObjectKey, Entry> newer_;
  // The last list and what it was laid over; whether something else has been laid since. What the cache has caught up
  // with is no such thing: then the cache itself has changed.
  mutable kube::SortedObjects listed_, listed_from_;
  mutable bool relaid_ = false;
  // Uids that the cache has lost of late: the answer to a write may come in after the deletion that followed
  // it.
  std::deque<std::string> lost_;
};

// Whether version `a` is at least as new as `b`.
bool AtLeastAsNew(const std::string& a, const std::string& b);

}  // namespace heddle::extender
