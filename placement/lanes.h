#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "placement/dense.h"

namespace heddle::placement {

// The hops between all GPUs of one whole node and the same GPUs of another, looked up at once: nodes of a
// unit are cabled alike and units are like each other, so a gang of 16,384 GPUs has a handful of different pairs, or
// a few hundred where leaves are told apart. Thread rule: one owner.
class Lanes {
 public:
  // Both patterns or kinds and how near they are; on a torus also how far the nodes lie apart.
  struct Key {
    std::uint64_t pair = 0, way = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Row {
    Key key;
    topology::NodeId from = topology::kNone, to = topology::kNone;  // a sample
    Hop hop;                                                        // of every lane, where they are alike
    std::vector<Hop> unlike;                                        // by lane, where they are not; else empty
    // For the caller to count with, and to remember what sharing left.
    bool listed = false;
    std::int64_t uses = 0;
    std::size_t first_flow = 0;
    Hop At(int lane) const { return unlike.empty() ? hop : unlike[std::size_t(lane)]; }
  };
  // `tell_leaves`: nodes of a row also have the sample's leaves.
  Lanes(const DenseFabric& dense, bool tell_leaves);

  // Requires: both nodes have the same number of GPUs. The reference stays good.
  Row& Between(topology::NodeId from, topology::NodeId to);

 private:
  Key KeyOf(topology::NodeId from, topology::NodeId to) const;
  Row& RowOf(const Key& key, topology::NodeId from, topology::NodeId to);
  Row*& SlotFor(const Key& key);
  void Grow();

  const DenseFabric& dense_;
  const bool tell_leaves_;
  std::deque<Row> rows_;
  std::vector<Row*> slots_;     // open addressing, null = empty; a power of two, at most half full
  std::array<Row*, 2> last_{};  // asked for last: rings go to and fro between near and far
  std::size_t next_ = 0;        // of last_ to replace
};

}  // namespace heddle::placement
