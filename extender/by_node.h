#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::extender {

// Something of each node, by its name and in the order of names. A copy shares what it has: of 5,000 nodes, to change
// one costs a list of addresses.
template <class T>
class ByNode {
 public:
  using Entry = std::pair<const std::string, T>;
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Entry;
    using difference_type = std::ptrdiff_t;
    using pointer = const Entry*;
    using reference = const Entry&;

    Iterator() = default;
    explicit Iterator(const std::shared_ptr<const Entry>* at) : at_(at) {}
    reference operator*() const { return **at_; }
    pointer operator->() const { return at_->get(); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const std::shared_ptr<const Entry>* at_ = nullptr;
  };

  ByNode() = default;
  // Requires: each name once, in any order.
  explicit ByNode(std::vector<std::pair<std::string, T>> entries) {
    const auto by_name = [](const auto& a, const auto& b) { return a.first < b.first; };
    if (!std::is_sorted(entries.begin(), entries.end(), by_name))
      std::sort(entries.begin(), entries.end(), by_name);
    entries_.reserve(entries.size());
    for (auto& [name, value] : entries)
      entries_.push_back(std::make_shared<const Entry>(std::move(name), std::move(value)));
  }

  ByNode(std::initializer_list<std::pair<std::string, T>> entries)
      : ByNode(std::vector<std::pair<std::string, T>>(entries)) {}

  Iterator begin() const { return Iterator(entries_.data()); }
  Iterator end() const { return Iterator(entries_.data() + entries_.size()); }
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }

  Iterator find(std::string_view name) const {
    const std::size_t at = Place(name);
    return Has(at, name) ? Iterator(entries_.data() + at) : end();
  }
  bool contains(std::string_view name) const { return Has(Place(name), name); }

  void Set(std::string_view name, T value) {
    const std::size_t at = Place(name);
    auto entry = std::make_shared<const Entry>(std::string(name), std::move(value));
    if (Has(at, name)) {
      entries_[at] = std::move(entry);
    } else {
      entries_.insert(entries_.begin() + std::ptrdiff_t(at), std::move(entry));
    }
  }
  void Erase(std::string_view name) {
    const std::size_t at = Place(name);
    if (Has(at, name)) entries_.erase(entries_.begin() + std::ptrdiff_t(at));
  }

  friend bool operator==(const ByNode& a, const ByNode& b) {
    return std::equal(a.entries_.begin(), a.entries_.end(), b.entries_.begin(), b.entries_.end(),
                      [](const auto& x, const auto& y) { return x == y || *x == *y; });
  }

 private:
  // Of the first whose name is not before this one.
  std::size_t Place(std::string_view name) const {
    const auto at =
        std::lower_bound(entries_.begin(), entries_.end(), name,
                         [](const auto& entry, std::string_view key) { return entry->first < key; });
    return std::size_t(at - entries_.begin());
  }
  bool Has(std::size_t at, std::string_view name) const {
    return at < entries_.size() && entries_[at]->first == name;
  }

  std::vector<std::shared_ptr<const Entry>> entries_;
};

}  // namespace heddle::extender
