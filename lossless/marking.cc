#include "lossless/marking.h"

namespace heddle::lossless {

PrioritySet UnmarkedOf(const PortSettings& port) {
  PrioritySet unmarked;
  if (!port.pfc || !port.ecn) return unmarked;
  for (const int priority : port.pfc->Members()) {
    if (!port.ecn->Contains(priority)) unmarked.Insert(priority);
  }
  return unmarked;
}

bool LeavesNoRoom(const EcnMarking& marking) {
  return marking.min_bytes >= marking.max_bytes || marking.probability_percent == 0;
}

}  // namespace heddle::lossless
