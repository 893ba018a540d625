#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/object.h"

namespace heddle::extender {

// The first constraint of a pod that the planner does not model, named by its field, with what to do about
// it. Gangs with one are refused: a plan that ignored it would be undone by the scheduler.
std::optional<std::string> UnmodelledConstraint(const kube::Json& pod);

// What the planner does not weigh and may leave out without harm: preferences. As sentences for the
// explanation.
std::vector<std::string> UnweighedPreferences(const kube::Json& pod);

// Claims whose volume may tie the pod to a place; the volumes themselves have to be looked up.
std::vector<std::string> ClaimNames(const kube::Json& pod);

}  // namespace heddle::extender
