#include "topology/fabric.h"

#include <algorithm>
#include <cstdlib>

namespace heddle::topology {
namespace {

using Indexes = std::vector<std::int32_t>;  // sorted

bool Meet(const Indexes& a, const Indexes& b) {
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    if (*x == *y) return true;
    *x < *y ? ++x : ++y;
  }
  return false;
}

Indexes Above(const std::vector<Spine>& spines, const Indexes& from) {
  Indexes above;
  for (const std::int32_t spine : from) {
    const Indexes& up = spines[std::size_t(spine)].uplinks;
    above.insert(above.end(), up.begin(), up.end());
  }
  std::sort(above.begin(), above.end());
  above.erase(std::unique(above.begin(), above.end()), above.end());
  return above;
}

}  // namespace

NodeId Fabric::FindNode(std::string_view name) const {
  const auto found =
      std::lower_bound(nodes.begin(), nodes.end(), name,
                       [](const FabricNode& node, std::string_view key) { return node.node.name < key; });
  return found != nodes.end() && found->node.name == name ? NodeId(found - nodes.begin()) : kNone;
}

LeafId Fabric::FindLeaf(std::string_view name) const {
  const auto found = std::lower_bound(leaves.begin(), leaves.end(), name,
                                      [](const Leaf& leaf, std::string_view key) { return leaf.name < key; });
  return found != leaves.end() && found->name == name ? LeafId(found - leaves.begin()) : kNone;
}

int Fabric::gpu_count() const {
  std::size_t count = 0;
  for (const FabricNode& node : nodes) count += node.node.gpus.size();
  return int(count);
}

int Fabric::Hops(LeafId a, LeafId b) const {
  if (a < 0 || b < 0 || std::size_t(a) >= leaves.size() || std::size_t(b) >= leaves.size()) return kNone;
  if (a == b) return 0;
  const Leaf &from = leaves[std::size_t(a)], &to = leaves[std::size_t(b)];
  if (shape == Shape::kDragonfly) return from.group != kNone && from.group == to.group ? 2 : 4;
  if (from.spines.empty() || to.spines.empty()) {
    if (from.up_gbps == 0 || to.up_gbps == 0) return kNone;
    const int top = spines.empty() ? 2 : spines.back().tier;  // sorted by tier
    return 2 * (top - 1);
  }
  if (Meet(from.spines, to.spines)) return 2;
  Indexes above_from = Above(spines, from.spines), above_to = Above(spines, to.spines);
  for (int hops = 4; !above_from.empty() && !above_to.empty(); hops += 2) {
    if (Meet(above_from, above_to)) return hops;
    above_from = Above(spines, above_from);
    above_to = Above(spines, above_to);
  }
  return kNone;
}

int Fabric::TorusHops(NodeId a, NodeId b) const {
  if (a < 0 || b < 0 || std::size_t(a) >= nodes.size() || std::size_t(b) >= nodes.size()) return kNone;
  int hops = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const int from = nodes[std::size_t(a)].torus[i], to = nodes[std::size_t(b)].torus[i];
    if (from == kNone || to == kNone) return kNone;
    const int apart = std::abs(from - to);
    hops += std::min(apart, declaration.torus_size[i] - apart);
  }
  return hops;
}

}  // namespace heddle::topology
