#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "cli/fabrics.h"
#include "kube/client.h"
#include "kube/object.h"

namespace heddle::cli {

// How many free nodes of each NVLink domain over several nodes the extender's new gangs leave, for repairs.
struct KeptSpares {
  int nodes = 0;
  std::string why_unknown;  // empty = it is known
};

// By the arguments of the extender in its Deployment. Pure.
KeptSpares KeptSparesOf(const kube::Json& deployment);

// Whether spares are kept in any of these fabrics, once some are asked for.
bool MayHaveSpares(const std::vector<FabricPtr>& fabrics);

// As the chart installs it; it is asked only where spares may be kept. A note is added where that cannot be known.
int ReadKeptSpares(kube::Client& client, const std::vector<FabricPtr>& fabrics,
                   std::vector<std::string>& notes, const std::stop_token& stop);

}  // namespace heddle::cli
