#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/synthetic_line.h"

namespace heddle::topology {

// What the nodes of a line are called, without making them: "node-07", or "rack-1-tray-02".
class SyntheticNames {
 public:
  // `tree` must outlive it.
  SyntheticNames(const SyntheticLine& line, const SyntheticTree& tree);

  std::string Of(const HostGroup& group, int host) const;
  // Requires: 0 <= node < tree.nodes.
  std::string Of(int node) const;
  const HostGroup& GroupOf(int node) const;
  // The node's number; leading zeros may be left out.
  std::optional<int> Find(std::string_view name) const;

  // At least two digits, and as many as the last of `count` numbers has, so that names sort as numbers do.
  static std::string Padded(int number, int count);

 private:
  const std::vector<HostGroup>& groups_;
  bool racks_;
  int nodes_;
  int most_hosts_ = 1;  // in one rack
};

}  // namespace heddle::topology
