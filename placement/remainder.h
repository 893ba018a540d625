#pragma once

#include <cstdint>
#include <vector>

#include "placement/gang.h"

namespace heddle::placement {

// What is left to place of a gang some of whose pods need no place any more.
struct Remainder {
  Parallelism parallelism;         // of the pods that are left; the gang's own where none are
  std::vector<std::int32_t> pods;  // that are left, by their numbers in the gang, ascending
  friend bool operator==(const Remainder&, const Remainder&) = default;
};

// Leaves out the pods that are `gone`, as far as the others can be laid out without them. No TP group is cut, nor a
// group of an axis that `require` or `prefer` names: one that is partly gone is left whole, with the pods that are
// gone. Of the outermost axis alone (the last of the order with more than one index) a group that is named may get
// smaller. The pods that are left keep their order. As many of the inner axes stay as they are as lose none of what
// can be left out; the others become one, dp where it is among them, so that what they send is priced as its traffic.
// Of an expert layout or a shard that no longer fits nothing is left. Every pod has `gpus_per_pod` ranks; where that
// does not make the world, or no layout fits, everything is left. Where all pods are gone, none is.
Remainder RemainderOf(const Parallelism& parallelism, const std::vector<Requirement>& require,
                      const std::vector<Requirement>& prefer, int gpus_per_pod,
                      const std::vector<bool>& gone);

}  // namespace heddle::placement
