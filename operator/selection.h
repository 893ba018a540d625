#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "topology/node.h"

namespace heddle::operators {

// Whether a Node has all of these labels; none = every Node.
inline bool SelectsNode(const std::map<std::string, std::string>& selector,
                        const std::map<std::string, std::string>& labels) {
  return std::all_of(selector.begin(), selector.end(), [&](const auto& wanted) {
    const auto found = labels.find(wanted.first);
    return found != labels.end() && found->second == wanted.second;
  });
}

// "mlx5_0:1", as the resources call a port.
inline std::string PortName(const topology::Nic& nic, const topology::NicPort& port) {
  return fmt::format("{}:{}", nic.name, port.number);
}

}  // namespace heddle::operators
