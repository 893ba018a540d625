#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "extender/snapshot.h"

namespace heddle::extender {

// The claim of a pod.
Hold HoldOf(const PodFacts& pod, std::uint32_t gpus, Hold::Source source);

// GPUs that are promised to a pod which is on no node yet; none by number = the node's whole set.
struct Reservation {
  std::string node;
  Hold hold;
  friend bool operator==(const Reservation&, const Reservation&) = default;
};

// In the order in which they count on a node: the slots of gangs, and then what pods were told whose Gang is no more.
std::vector<Reservation> ReservationsOf(const SnapshotInputs& inputs);

}  // namespace heddle::extender
