#include "placement/lanes.h"

#include <utility>

namespace heddle::placement {
namespace {

constexpr std::size_t kFirstSlots = 256;

std::size_t Spread(std::uint64_t pair, std::uint64_t way) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;  // Fibonacci hashing (Knuth, TAOCP 6.4)
  return std::size_t(((pair ^ way * kGolden) * kGolden) >> 32);
}

}  // namespace

using topology::kNone;
using topology::NodeId;

Lanes::Lanes(const DenseFabric& dense) : dense_(dense), slots_(kFirstSlots) {}

Lanes::Slot& Lanes::SlotFor(const Key& key) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = Spread(key.pair, key.way) & mask;
  while (slots_[at].row != nullptr && slots_[at].key != key) at = (at + 1) & mask;
  return slots_[at];
}

void Lanes::Grow() {
  std::vector<Slot> old(slots_.size() * 2);
  std::swap(old, slots_);
  for (const Slot& slot : old) {
    if (slot.row != nullptr) SlotFor(slot.key) = slot;
  }
}

Lanes::Row& Lanes::Between(NodeId from, NodeId to) {
  const topology::DomainId domain = dense_.domain(from);
  enum : std::uint64_t { kApart, kOneDomain, kOneNode };
  const std::uint64_t near = from == to                                       ? kOneNode
                             : domain != kNone && domain == dense_.domain(to) ? kOneDomain
                                                                              : kApart;
  const TorusWay way = dense_.WayBetween(from, to);
  const Key key{(std::uint64_t(std::uint32_t(dense_.pattern(from))) << 33) |
                    (std::uint64_t(std::uint32_t(dense_.pattern(to))) << 2) | near,
                (std::uint64_t(std::uint32_t(way.longest)) << 32) | std::uint32_t(way.links)};
  if (last_ != nullptr && key == last_key_) return *last_;
  Slot& slot = SlotFor(key);
  last_key_ = key;
  last_ = slot.row;
  if (last_ != nullptr) return *last_;
  Row& row = rows_.emplace_back();
  last_ = &row;
  row.from = from;
  row.to = to;
  row.hop = dense_.Between(dense_.port(from, 0), dense_.port(to, 0));
  const int count = dense_.gpus(from);
  for (int g = 1; g < count; ++g) {
    const Hop hop = dense_.Between(dense_.port(from, g), dense_.port(to, g));
    if (row.unlike.empty() && hop == row.hop) continue;
    if (row.unlike.empty()) row.unlike.assign(std::size_t(g), row.hop);
    row.unlike.push_back(hop);
  }
  slot = {key, &row};
  if (rows_.size() * 2 > slots_.size()) Grow();
  return row;
}

}  // namespace heddle::placement
