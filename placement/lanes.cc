#include "placement/lanes.h"

namespace heddle::placement {

using topology::kNone;
using topology::NodeId;

Lanes::Row& Lanes::Between(NodeId from, NodeId to) {
  const std::int32_t domain = dense_.port(from, 0).domain;
  enum : std::uint64_t { kApart, kOneDomain, kOneNode };
  const std::uint64_t near = from == to                                               ? kOneNode
                             : domain != kNone && domain == dense_.port(to, 0).domain ? kOneDomain
                                                                                      : kApart;
  const TorusWay way = dense_.WayBetween(from, to);
  const Key key{(std::uint64_t(std::uint32_t(dense_.pattern(from))) << 33) |
                    (std::uint64_t(std::uint32_t(dense_.pattern(to))) << 2) | near,
                (std::uint64_t(std::uint32_t(way.longest)) << 32) | std::uint32_t(way.links)};
  if (last_ != nullptr && key == last_key_) return *last_;
  const auto [entry, fresh] = by_pair_.try_emplace(key, nullptr);
  if (fresh) {
    Row& row = rows_.emplace_back();
    row.from = from;
    row.to = to;
    row.hop = dense_.Between(dense_.port(from, 0), dense_.port(to, 0));
    for (int g = 1; g < dense_.gpus(from) && row.alike; ++g) {
      row.alike = dense_.Between(dense_.port(from, g), dense_.port(to, g)) == row.hop;
    }
    entry->second = &row;
  }
  last_key_ = key;
  last_ = entry->second;
  return *last_;
}

}  // namespace heddle::placement
