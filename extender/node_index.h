#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topology/fabric.h"

namespace heddle::extender {

// A fabric's nodes by name: the scheduler asks for thousands at once, in no order, and nearly all of a look-up is
// waiting for memory. So the names are copied to lie side by side, and what many look-ups need is fetched together.
// Thread rule: const members from any.
class NodeIndex {
 public:
  explicit NodeIndex(const topology::Fabric& fabric);

  topology::NodeId Find(std::string_view name) const { return Find(name, HashOf(name)); }
  // Each of them; kNone where it is not in this fabric. In a half of the time (verbs_bench).
  std::vector<topology::NodeId> FindAll(const std::vector<std::string_view>& names) const;
  // Has the processor fetch what Find will read first, and does not wait for it.
  void Prefetch(std::string_view name) const { __builtin_prefetch(&slots_[First(HashOf(name))]); }

 private:
  struct Slot {
    std::uint32_t tag = 0;  // of the name, so that hardly any other name is looked at
    topology::NodeId node = topology::kNone;
  };

  static std::uint64_t HashOf(std::string_view name);
  static std::uint32_t TagOf(std::uint64_t hash) { return std::uint32_t(hash >> 32); }
  std::size_t First(std::uint64_t hash) const { return hash & (slots_.size() - 1); }
  std::size_t Next(std::size_t slot) const { return (slot + 1) & (slots_.size() - 1); }
  topology::NodeId Find(std::string_view name, std::uint64_t hash) const;
  std::string_view NameOf(topology::NodeId node) const {
    const std::uint32_t first = begins_[std::size_t(node)];
    return {names_.data() + first, begins_[std::size_t(node) + 1] - first};
  }

  std::string names_;                  // in the order of the nodes
  std::vector<std::uint32_t> begins_;  // of each in there; one more at the end
  std::vector<Slot> slots_;  // a power of two of them, of which half or more are free: the next free one ends
};

}  // namespace heddle::extender
