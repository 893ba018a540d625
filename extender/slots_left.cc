#include "extender/slots_left.h"

#include <algorithm>

namespace heddle::extender {

const SlotLeft* FindLeft(const SlotsLeftByNode& left, std::string_view node, const Snapshot& snapshot) {
  const auto on = left.find(node);
  if (on == left.end()) return nullptr;
  const auto stands = std::find_if(on->second.begin(), on->second.end(), [&snapshot](const SlotLeft& slot) {
    return snapshot.gangs.contains({slot.ns, slot.owner_uid});
  });
  return stands == on->second.end() ? nullptr : &*stands;
}

void SlotsLeft::Add(const PodFacts& pod) {
  const std::lock_guard lock(mutex_);
  all_.push_back({++number_, pod.node, {pod.key.ToString(), pod.gang.ns, pod.gang.owner_uid}});
  shown_.reset();
}

std::uint64_t SlotsLeft::Number() const {
  const std::lock_guard lock(mutex_);
  return number_;
}

void SlotsLeft::Forget(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto forgotten = std::erase_if(all_, [number](const Numbered& one) { return one.number <= number; });
  if (forgotten > 0) shown_.reset();
}

std::shared_ptr<const SlotsLeftByNode> SlotsLeft::current() const {
  const std::lock_guard lock(mutex_);
  if (shown_ == nullptr) {
    auto shown = std::make_shared<SlotsLeftByNode>();
    for (const Numbered& one : all_) (*shown)[one.node].push_back(one.slot);
    shown_ = std::move(shown);
  }
  return shown_;
}

}  // namespace heddle::extender
