#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::crds {

// Which state of a policy somebody speaks of: what a report answers, what was decided about a port, what is offered.
// A policy that was deleted and made anew counts its generations from 1 again; only by its UID is it another one.
struct PolicyEdition {
  std::string policy;           // its name; empty = nobody's policy
  std::int64_t generation = 0;  // 0 = not said, or of several policies in conflict
  std::string uid;              // whose generation that is; empty = by an operator or agent that said none
  friend bool operator==(const PolicyEdition&, const PolicyEdition&) = default;
};

// Of an entry in a spec: of the first of several policies that are in conflict.
template <class Wish>
PolicyEdition EditionOf(const Wish& wish) {
  return {wish.policies.empty() ? std::string() : wish.policies.front(), wish.generation, wish.policy_uid};
}

}  // namespace heddle::crds
