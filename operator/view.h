#pragma once

#include "kube/store.h"

namespace heddle::operators {

// What a reconciler reads: a reflector's cache in the daemon, anything in tests. Always some time behind the
// server. Thread rule: every member may be called from any thread.
class View {
 public:
  View() = default;
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  virtual ~View() = default;

  virtual kube::ObjectPtr Get(const kube::ObjectKey& key) const = 0;  // null where there is none
  virtual kube::SortedObjects List() const = 0;
};

class StoreView final : public View {
 public:
  explicit StoreView(const kube::Store& store) : store_(store) {}
  kube::ObjectPtr Get(const kube::ObjectKey& key) const override { return store_.Get(key); }
  kube::SortedObjects List() const override { return store_.List(); }

 private:
  const kube::Store& store_;
};

}  // namespace heddle::operators
