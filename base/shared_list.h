#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace heddle::base {

// A list that stays as it was made, so that copies are free: they share what is in it. Two that share are known to be
// equal without a look at what is in them. Thread rule: as of a shared_ptr, one thread for each copy.
template <class T>
class SharedList {
 public:
  using value_type = T;
  using const_iterator = typename std::vector<T>::const_iterator;

  SharedList() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a list is a list
  SharedList(std::vector<T> items) : items_(std::make_shared<const std::vector<T>>(std::move(items))) {}
  SharedList(std::initializer_list<T> items) : SharedList(std::vector<T>(items)) {}

  const std::vector<T>& items() const { return items_ == nullptr ? Nothing() : *items_; }
  const_iterator begin() const { return items().begin(); }
  const_iterator end() const { return items().end(); }
  std::size_t size() const { return items().size(); }
  bool empty() const { return items().empty(); }
  const T& operator[](std::size_t index) const { return items()[index]; }

  // Another list, of those for which `leaves_out` is false.
  template <class Predicate>
  SharedList Without(Predicate leaves_out) const {
    std::vector<T> others;
    others.reserve(size());
    std::remove_copy_if(begin(), end(), std::back_inserter(others), leaves_out);
    return others;
  }
  // Where it is false they may still have the same in them.
  bool SharesWith(const SharedList& other) const { return items_ == other.items_; }

 private:
  static const std::vector<T>& Nothing() {
    static const std::vector<T> nothing;
    return nothing;
  }
  std::shared_ptr<const std::vector<T>> items_;
};

}  // namespace heddle::base
