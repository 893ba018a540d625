#include "placement/plan.h"

namespace heddle::placement {

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
