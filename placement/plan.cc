#include "placement/plan.h"

namespace heddle::placement {

std::span<const topology::NodeId> Substitutes::For(std::size_t pod) const {
  if (pod >= of_pod.size() || of_pod[pod] == topology::kNone) return {};
  return sets[std::size_t(of_pod[pod])];
}

std::string_view RefusalReasonName(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::kBadRequest:
      return "BadRequest";
    case RefusalReason::kTooLargeForDomain:
      return "TooLargeForDomain";
    case RefusalReason::kTooLargeForFabric:
      return "TooLargeForFabric";
    case RefusalReason::kNotEnoughFree:
      return "NotEnoughFree";
    case RefusalReason::kRequirement:
      return "Requirement";
    case RefusalReason::kNoAllowedNode:
      return "NoAllowedNode";
    case RefusalReason::kNotFoundInBudget:
      return "NotFoundInBudget";
  }
  return "";
}

}  // namespace heddle::placement
