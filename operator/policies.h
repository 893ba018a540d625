#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/store.h"

namespace heddle::operators {

// An object whose spec cannot be read.
struct Unreadable {
  kube::ObjectPtr object;
  base::Error why;  // which field, and what it says
};

// All policies of one kind: those that can be read, and the others by name.
template <class Policy>
struct Policies {
  std::vector<Policy> read;
  std::map<std::string, Unreadable> unreadable;
};

// A Node whose NodeTopology cannot be read: nobody knows what it has, nor how it stands to a policy that selects it.
struct UnreadNode {
  std::string name;
  std::map<std::string, std::string> labels;  // of the Node
  std::string why;                            // which field, and what it says
};

}  // namespace heddle::operators
