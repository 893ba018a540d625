#pragma once

#include <string>

#include "cli/table.h"
#include "crds/object_meta.h"
#include "placement/plan.h"

namespace heddle::cli {

using crds::Json;

// "tp=8,pp=2,dp=8" with only what is more than 1, tp, pp and dp first.
std::string ParallelismText(const placement::Parallelism& parallelism);

// {"tpGroups":…,"tpGroupsInDomain":…,"leafCrossings":{…},"edges":{…},"railMisaligned":…,
//  "stepMicros":…,"axisMicros":{…}}
// Scripts read this form. Axes of size 1 are left out, dp and pp never are.
Json QualityJson(const placement::Parallelism& parallelism, const placement::Quality& quality);

// The same for people: a table by axis and one line for each of the rest.
std::string QualityText(const placement::Parallelism& parallelism, const placement::Quality& quality,
                        const Style& style);

}  // namespace heddle::cli
