#include "operator/kept_suspects.h"

#include <algorithm>

namespace heddle::operators {
namespace {

using topology::Suspect;

// Whether what a switch at the far end counted may have been what speaks against it.
bool MayBeSeenFromAfar(const Suspect& suspect, const topology::Fabric& fabric,
                       const std::set<std::string>& unprimed) {
  if (!suspect.leaf.empty()) return unprimed.contains(suspect.leaf);
  const topology::NodeId id = fabric.FindNode(suspect.node);
  if (id == topology::kNone) return false;
  const std::vector<topology::Nic>& nics = fabric.nodes[std::size_t(id)].node.nics;
  return std::any_of(nics.begin(), nics.end(), [&](const topology::Nic& nic) {
    return std::any_of(nic.ports.begin(), nic.ports.end(), [&](const topology::NicPort& port) {
      return port.leaf_port && unprimed.contains(port.leaf_port->leaf);
    });
  });
}

}  // namespace

std::vector<Suspect> WithKept(std::vector<Suspect> found, const std::vector<Suspect>& before,
                              const topology::Fabric& fabric, const std::set<std::string>& unprimed) {
  if (unprimed.empty()) return found;
  const std::size_t fresh = found.size();
  for (const Suspect& suspect : before) {
    const bool again =
        std::any_of(found.begin(), found.begin() + std::ptrdiff_t(fresh),
                    [&](const Suspect& one) { return one.kind == suspect.kind && one.name == suspect.name; });
    if (again || !MayBeSeenFromAfar(suspect, fabric, unprimed)) continue;
    if (found.size() == topology::kMaxSuspects) break;
    found.push_back(suspect);
  }
  return found;
}

}  // namespace heddle::operators
