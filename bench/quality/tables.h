#pragma once

#include <vector>

#include "bench/quality/cases.h"

namespace heddle::quality {

// Markdown on stdout. Means are over the states on which all policies found a place.
void PrintByGang(const std::vector<Case>& cases);
void PrintNetworkTime(const std::vector<Case>& cases);  // by oversubscription and by fill
void PrintSplitGroups(const std::vector<Case>& cases);  // tp groups broken, of gangs with small pods
void PrintWhereAPeerIsBetter(const std::vector<Case>& cases);

}  // namespace heddle::quality
