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

Lanes::Lanes(const DenseFabric& dense, bool tell_leaves)
    : dense_(dense), tell_leaves_(tell_leaves), slots_(kFirstSlots) {}

Lanes::Row*& Lanes::SlotFor(const Key& key) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = Spread(key.pair, key.way) & mask;
  while (slots_[at] != nullptr && slots_[at]->key != key) at = (at + 1) & mask;
  return slots_[at];
}

void Lanes::Grow() {
  std::vector<Row*> old(slots_.size() * 2);
  std::swap(old, slots_);
  for (Row* row : old) {
    if (row != nullptr) SlotFor(row->key) = row;
  }
}

Lanes::Key Lanes::KeyOf(NodeId from, NodeId to) const {
  enum : std::uint64_t { kApart, kOneNode, kOneDomain, kOneSetOfLeaves, kOtherLeaves };
  const topology::DomainId domain = dense_.domain(from);
  std::uint64_t near = kApart;
  std::int32_t one = dense_.pattern(from), other = dense_.pattern(to);
  if (from == to) {
    near = kOneNode;
  } else if (domain != kNone && domain == dense_.domain(to)) {
    near = kOneDomain;
  } else if (!tell_leaves_ && one == other) {
    near = kOneSetOfLeaves;
  } else if (!tell_leaves_ && dense_.UnderOtherLeaves(from, to)) {
    near = kOtherLeaves;
  }
  if (near == kOneSetOfLeaves || near == kOtherLeaves) {
    one = dense_.kind(from);
    other = dense_.kind(to);
  }
  const TorusWay way = dense_.WayBetween(from, to);
  return {(std::uint64_t(std::uint32_t(one)) << 34) | (std::uint64_t(std::uint32_t(other)) << 3) | near,
          (std::uint64_t(std::uint32_t(way.longest)) << 32) | std::uint32_t(way.links)};
}

Lanes::Row& Lanes::Between(NodeId from, NodeId to) {
  const Key key = KeyOf(from, to);
  for (Row* row : last_) {
    if (row != nullptr && row->key == key) return *row;
  }
  Row& row = RowOf(key, from, to);
  last_[next_] = &row;
  next_ = 1 - next_;
  return row;
}

Lanes::Row& Lanes::RowOf(const Key& key, NodeId from, NodeId to) {
  Row*& slot = SlotFor(key);
  if (slot != nullptr) return *slot;
  Row& row = rows_.emplace_back();
  row.key = key;
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
  slot = &row;
  if (rows_.size() * 2 > slots_.size()) Grow();
  return row;
}

}  // namespace heddle::placement
