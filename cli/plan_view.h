#pragma once

#include "cli/output.h"
#include "crds/object_meta.h"
#include "placement/axis_report.h"
#include "placement/cluster_state.h"
#include "placement/plan.h"

namespace heddle::cli {

// A decision as people and scripts read it; see Plan in plan.h for the stable form.
crds::Json PlanJson(const placement::ClusterState& state, const placement::GangRequest& request,
                    const placement::Plan& plan);
crds::Json RefusalJson(const placement::Refusal& refusal);
std::string PlanText(const placement::ClusterState& state, const placement::GangRequest& request,
                     const placement::Plan& plan, const Style& style);
std::string RefusalText(const placement::Refusal& refusal, const Style& style);

}  // namespace heddle::cli
