#pragma once

#include <algorithm>
#include <map>
#include <string>

namespace heddle::operators {

// Whether a Node has all of these labels; none = every Node.
inline bool SelectsNode(const std::map<std::string, std::string>& selector,
                        const std::map<std::string, std::string>& labels) {
  return std::all_of(selector.begin(), selector.end(), [&](const auto& wanted) {
    const auto found = labels.find(wanted.first);
    return found != labels.end() && found->second == wanted.second;
  });
}

}  // namespace heddle::operators
