#include "extender/node_index.h"

#include <absl/hash/hash.h>

#include <algorithm>
#include <array>
#include <bit>

namespace heddle::extender {

std::uint64_t NodeIndex::HashOf(std::string_view name) {
  return absl::Hash<std::string_view>()(name);
}

NodeIndex::NodeIndex(const topology::Fabric& fabric)
    : slots_(std::bit_ceil(2 * std::max<std::size_t>(1, fabric.nodes.size()))) {
  std::size_t bytes = 0;
  for (const topology::FabricNode& node : fabric.nodes) bytes += node.node.name.size();
  names_.reserve(bytes);
  begins_.reserve(fabric.nodes.size() + 1);
  begins_.push_back(0);
  for (std::size_t i = 0; i < fabric.nodes.size(); ++i) {
    const std::string& name = fabric.nodes[i].node.name;
    names_ += name;
    begins_.push_back(std::uint32_t(names_.size()));
    const std::uint64_t hash = HashOf(name);
    std::size_t slot = First(hash);
    while (slots_[slot].node != topology::kNone) slot = Next(slot);
    slots_[slot] = {TagOf(hash), topology::NodeId(i)};
  }
}

topology::NodeId NodeIndex::Find(std::string_view name, std::uint64_t hash) const {
  for (std::size_t slot = First(hash); slots_[slot].node != topology::kNone; slot = Next(slot)) {
    if (slots_[slot].tag == TagOf(hash) && NameOf(slots_[slot].node) == name) return slots_[slot].node;
  }
  return topology::kNone;
}

// In blocks: the slots of all names are on their way before the first of them is read, and so are the names of the
// nodes in them.
std::vector<topology::NodeId> NodeIndex::FindAll(const std::vector<std::string_view>& names) const {
  constexpr std::size_t kBlock = 16;
  std::vector<topology::NodeId> nodes(names.size());
  std::array<std::uint64_t, kBlock> hashes{};
  for (std::size_t begin = 0; begin < names.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, names.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      hashes[i] = HashOf(names[begin + i]);
      __builtin_prefetch(&slots_[First(hashes[i])]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const topology::NodeId likely = slots_[First(hashes[i])].node;
      if (likely != topology::kNone) __builtin_prefetch(NameOf(likely).data());
    }
    for (std::size_t i = 0; i < count; ++i) nodes[begin + i] = Find(names[begin + i], hashes[i]);
  }
  return nodes;
}

}  // namespace heddle::extender
