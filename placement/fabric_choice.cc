#include "placement/fabric_choice.h"

namespace heddle::placement {

bool IsBetter(const FabricAnswer& one, const FabricAnswer& other) {
  if (one.step_micros.has_value() != other.step_micros.has_value()) return one.step_micros.has_value();
  return one.step_micros ? *one.step_micros < *other.step_micros : one.gpus > other.gpus;
}

}  // namespace heddle::placement
