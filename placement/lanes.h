#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "placement/dense.h"

namespace heddle::placement {

// The hops between all GPUs of one whole node and the same GPUs of another, looked up at once: nodes of a
// unit are cabled alike, so a gang of 16,384 GPUs has a few hundred different pairs. Thread rule: one owner.
class Lanes {
 public:
  struct Row {
    topology::NodeId from = topology::kNone, to = topology::kNone;  // a sample
    Hop hop;                                                        // of every lane, where they are alike
    std::vector<Hop> unlike;                                        // by lane, where they are not; else empty
    // For the caller to count with, and to remember what sharing left.
    bool listed = false;
    std::int64_t uses = 0;
    std::size_t first_flow = 0;
    Hop At(int lane) const { return unlike.empty() ? hop : unlike[std::size_t(lane)]; }
  };
  explicit Lanes(const DenseFabric& dense);

  // Requires: both nodes have the same number of GPUs. The reference stays good.
  Row& Between(topology::NodeId from, topology::NodeId to);

 private:
  // Both patterns and whether NVLink joins them; on a torus also how far the nodes lie apart.
  struct Key {
    std::uint64_t pair = 0, way = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Slot {
    Key key;
    Row* row = nullptr;  // null = empty
  };
  Slot& SlotFor(const Key& key);
  void Grow();

  const DenseFabric& dense_;
  std::deque<Row> rows_;
  std::vector<Slot> slots_;  // open addressing; a power of two, at most half full
  Key last_key_;
  Row* last_ = nullptr;
};

}  // namespace heddle::placement
