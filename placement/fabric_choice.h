#pragma once

#include <cstdint>
#include <optional>

namespace heddle::placement {

// Of a gang that several fabrics were asked about: one fabric's answer, as far as answers are compared.
struct FabricAnswer {
  std::optional<double> step_micros;  // predicted, of the plan; nothing = refused
  std::int64_t gpus = 0;              // of the fabric
};

// A plan before a refusal and the shorter step before the longer; of refusals the larger fabric's, which is the
// one to act on. Of equals neither is better: the first that was asked stays.
bool IsBetter(const FabricAnswer& one, const FabricAnswer& other);

}  // namespace heddle::placement
