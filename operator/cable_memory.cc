#include "operator/cable_memory.h"

#include <set>
#include <string_view>

#include "crds/port_name.h"

namespace heddle::operators {
namespace {

using topology::Missing;

// Whoever says that there is no leaf, or that it could be one of two, knows more than what was.
bool MayStillEndThere(const topology::NicPort& port) {
  return port.leaf_port.missing() == Missing::kStale || port.leaf_port.missing() == Missing::kUnknown;
}

}  // namespace

void CableMemory::Restore(const std::vector<topology::Suspect>& published, base::MonotonicTime now) {
  for (const topology::Suspect& suspect : published) {
    const bool whole =
        !suspect.node.empty() && !suspect.port.empty() && !suspect.leaf.empty() && !suspect.leaf_port.empty();
    if (suspect.kind == topology::SuspectKind::kCable && whole)
      cables_.try_emplace({suspect.node, suspect.port}, Known{{suspect.leaf, suspect.leaf_port}, now});
  }
}

void CableMemory::Look(const topology::Fabric& fabric, base::MonotonicTime now) {
  std::set<std::pair<std::string_view, std::string_view>> taken;
  std::set<std::string_view> members;
  for (const topology::FabricNode& member : fabric.nodes) {
    members.insert(member.node.name);
    for (const topology::Nic& nic : member.node.nics) {
      if (nic.role != topology::NicRole::kCompute) continue;
      for (const topology::NicPort& port : nic.ports) {
        const std::pair key(member.node.name, crds::PortName(nic, port));
        if (port.leaf_port) {
          taken.emplace(port.leaf_port->leaf, port.leaf_port->port);
          cables_.insert_or_assign(key, Known{*port.leaf_port, now});
        } else if (!MayStillEndThere(port)) {
          cables_.erase(key);
        }
      }
    }
  }
  std::erase_if(cables_, [&](const auto& entry) {
    const Known& known = entry.second;
    // A leaf of another site may have the same name, and is another leaf.
    const bool moved = known.at != now && taken.contains({known.leaf.leaf, known.leaf.port}) &&
                       members.contains(entry.first.first);
    return moved || now - known.at > kKeep;
  });
}

const topology::LeafPort* CableMemory::Of(const std::string& node, const std::string& port) const {
  const auto found = cables_.find({node, port});
  return found == cables_.end() ? nullptr : &found->second.leaf;
}

}  // namespace heddle::operators
