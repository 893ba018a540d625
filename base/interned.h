#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

namespace heddle::base {

// Keeps equal values once: Of gives the one of them that somebody holds already. What nobody holds any more goes with a
// later call, so that there are never many more than twice those that are held. Requires of T: an order by operator<.
// Thread rule: every member may be called from any thread.
template <class T>
class Interned {
 public:
  using Value = std::shared_ptr<const T>;

  // Requires: value is not null.
  Value Of(Value value) {
    const std::lock_guard lock(mutex_);
    if (values_.size() >= sweep_at_) {
      std::erase_if(values_, [](const Value& one) { return one.use_count() == 1; });
      sweep_at_ = std::max(kFew, 2 * values_.size());
    }
    return *values_.insert(std::move(value)).first;
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }

 private:
  static constexpr std::size_t kFew = 64;  // are not worth a sweep
  struct ByContent {
    bool operator()(const Value& a, const Value& b) const { return *a < *b; }
  };

  mutable std::mutex mutex_;
  std::set<Value, ByContent> values_;
  std::size_t sweep_at_ = kFew;
};

}  // namespace heddle::base
