#pragma once

#include <map>
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

// A Node whose NodeTopology cannot be read: nobody knows what it has, nor how it stands to a policy that selects it.
struct UnreadNode {
  std::string name;
  std::map<std::string, std::string> labels;  // of the Node
  std::string why;                            // which field, and what it says
};

}  // namespace heddle::operators
