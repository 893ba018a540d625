#pragma once

#include <set>
#include <string>
#include <vector>

#include "topology/fabric.h"
#include "topology/suspects.h"

namespace heddle::operators {

// `found`, and behind it what was suspected before and is not found any more, where that may be only because a switch
// at its far end has not been asked for long enough (SwitchWatch::Unprimed): a new operator does not know what its
// predecessor counted. Pure.
std::vector<topology::Suspect> WithKept(std::vector<topology::Suspect> found,
                                        const std::vector<topology::Suspect>& before,
                                        const topology::Fabric& fabric,
                                        const std::set<std::string>& unprimed);

}  // namespace heddle::operators
