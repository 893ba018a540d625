#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "extender/gang_decision.h"

namespace heddle::extender {

// Slots where a gang's pods cannot start although the scheduler finds room there: the kubelet of the node did not admit
// pods of the rank (PodFacts::not_admitted). Nothing of it is kept: it is read of the failed pods of the present Gang
// that still stand. A Job keeps them; whoever deletes them takes their word back, and of an owner that deletes them
// itself nothing is known. A slot is closed once two of its pods were refused, and for 15 minutes after the last.
// Requires: the input has a Gang. The input's members outlive this.
class RefusedPods {
 public:
  explicit RefusedPods(const GangInput& input);

  // Why the rank is not to be given this node now, as a part of a sentence; nothing where it may be.
  std::optional<std::string> Trouble(int rank, const std::string& node) const;
  // The nodes that these ranks are not to be given now.
  BarredNodes Barred(const std::vector<int>& ranks) const;

 private:
  struct Slot {
    int pods = 0;
    base::WallTime at;               // of the last refusal
    const PodFacts* last = nullptr;  // the pod that it was of
  };
  std::map<std::pair<int, std::string>, Slot> closed_;  // by rank and node
};

}  // namespace heddle::extender
