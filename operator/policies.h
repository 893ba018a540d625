#pragma once

#include <set>
#include <string>
#include <vector>

namespace heddle::operators {

// All policies of one kind: those that can be read, and the names of the others.
template <class Policy>
struct Policies {
  std::vector<Policy> read;
  std::set<std::string> unreadable;
};

}  // namespace heddle::operators
