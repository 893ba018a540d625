#pragma once

#include <absl/container/flat_hash_map.h>

#include <string>
#include <string_view>

#include "topology/fabric.h"

namespace heddle::extender {

// A fabric's nodes by name: the scheduler asks for thousands at once, in no order, and nearly all of a look-up is
// waiting for memory. So the names are copied to lie side by side, and one can say in advance what will be asked for.
// Thread rule: const members from any.
class NodeIndex {
 public:
  explicit NodeIndex(const topology::Fabric& fabric);
  NodeIndex(const NodeIndex&) = delete;
  NodeIndex& operator=(const NodeIndex&) = delete;

  topology::NodeId Find(std::string_view name) const {  // kNone where it is not in this fabric
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? topology::kNone : found->second;
  }
  // Has the processor fetch what Find will read, and does not wait for it.
  void Prefetch(std::string_view name) const { by_name_.prefetch(name); }

 private:
  std::string names_;
  absl::flat_hash_map<std::string_view, topology::NodeId> by_name_;
};

}  // namespace heddle::extender
