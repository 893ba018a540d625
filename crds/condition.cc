#include "crds/condition.h"

#include <algorithm>

namespace heddle::crds {

const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type) {
  const auto found =
      std::find_if(conditions.begin(), conditions.end(), [&](const Condition& c) { return c.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}

bool IsTrue(const std::vector<Condition>& conditions, std::string_view type) {
  const Condition* condition = FindCondition(conditions, type);
  return condition != nullptr && condition->status == ConditionStatus::kTrue;
}

bool SetCondition(std::vector<Condition>& conditions, Condition condition) {
  const auto place =
      std::lower_bound(conditions.begin(), conditions.end(), condition.type,
                       [](const Condition& c, const std::string& type) { return c.type < type; });
  if (place == conditions.end() || place->type != condition.type) {
    conditions.insert(place, std::move(condition));
    return true;
  }
  if (place->status == condition.status) condition.last_transition = place->last_transition;
  if (*place == condition) return false;
  *place = std::move(condition);
  return true;
}

}  // namespace heddle::crds
