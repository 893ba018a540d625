#include "switches/port_index.h"

#include <algorithm>

namespace heddle::switches {

PortIndex::PortIndex(const formats::SonicConfig& config) : config_(config) {
  by_name_.reserve(size());
  by_alias_.reserve(size());
  for (int number = 0; number < int(size()); ++number) {
    const formats::SonicPort& port = (*this)[number];
    by_name_.emplace_back(port.name, number);
    if (!port.alias.empty()) by_alias_.emplace_back(port.alias, number);
  }
  std::sort(by_name_.begin(), by_name_.end());
  std::sort(by_alias_.begin(), by_alias_.end());
  ranks_.resize(size());
  for (std::size_t rank = 0; rank < by_name_.size(); ++rank)
    ranks_[std::size_t(by_name_[rank].second)] = int(rank);
}

const formats::SonicPort& PortIndex::operator[](int number) const {
  const std::size_t at = std::size_t(number), ports = config_.ports.size();
  return at < ports ? config_.ports[at] : config_.bare[at - ports];
}

// Of several that are called so, the first.
int PortIndex::In(const Numbers& numbers, std::string_view name) {
  const auto found = std::lower_bound(numbers.begin(), numbers.end(), std::pair(name, 0));
  return found == numbers.end() || found->first != name ? kNone : found->second;
}

int PortIndex::NumberOf(std::string_view name) const {
  const int number = In(by_name_, name);
  return number == kNone ? In(by_alias_, name) : number;
}

bool PortIndex::IsAmbiguous(std::string_view called) const {
  const int number = In(by_name_, called);
  if (number == kNone) return false;
  auto alias = std::lower_bound(by_alias_.begin(), by_alias_.end(), std::pair(called, 0));
  for (; alias != by_alias_.end() && alias->first == called; ++alias) {
    if (alias->second != number) return true;
  }
  return false;
}

int PortIndex::NumberSeen(std::string_view called) const {
  return called.empty() || IsAmbiguous(called) ? kNone : NumberOf(called);
}

const formats::SonicPort* PortIndex::Find(std::string_view name) const {
  const int number = NumberOf(name);
  return number == kNone ? nullptr : &(*this)[number];
}

}  // namespace heddle::switches
