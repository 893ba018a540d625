#include "extender/node_index.h"

#include <cstddef>

namespace heddle::extender {

NodeIndex::NodeIndex(const topology::Fabric& fabric) {
  std::size_t bytes = 0;
  for (const topology::FabricNode& node : fabric.nodes) bytes += node.node.name.size();
  names_.reserve(bytes);  // or views of it would not last
  by_name_.reserve(fabric.nodes.size());
  for (std::size_t i = 0; i < fabric.nodes.size(); ++i) {
    const std::string& name = fabric.nodes[i].node.name;
    const std::size_t at = names_.size();
    names_ += name;
    by_name_.emplace(std::string_view(names_).substr(at, name.size()), topology::NodeId(i));
  }
}

}  // namespace heddle::extender
