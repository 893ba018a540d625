#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "placement/dense.h"

namespace heddle::placement {

// The hops between all GPUs of one whole node and the same GPUs of another, looked up at once: nodes of a
// unit are cabled alike, so a gang of 16,384 GPUs has a few hundred different pairs. Thread rule: one owner.
class Lanes {
 public:
  struct Row {
    topology::NodeId from = topology::kNone, to = topology::kNone;  // a sample
    Hop hop;                                                        // of every lane
    bool alike = true;             // false: the lanes differ, and `hop` says nothing
    std::int64_t uses = 0;         // for the caller to count with
    std::int64_t shared_mbps = 0;  // … and to remember what sharing left
  };
  explicit Lanes(const DenseFabric& dense) : dense_(dense) {}

  // Requires: both nodes have the same number of GPUs. The reference stays good.
  Row& Between(topology::NodeId from, topology::NodeId to);

 private:
  // Both patterns and whether NVLink joins them; on a torus also how far the nodes lie apart.
  using Key = std::pair<std::uint64_t, std::uint64_t>;

  const DenseFabric& dense_;
  std::deque<Row> rows_;
  std::map<Key, Row*> by_pair_;
  Key last_key_;
  Row* last_ = nullptr;
};

}  // namespace heddle::placement
