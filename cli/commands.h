#pragma once

#include <stop_token>
#include <string>

#include "cli/explain.h"
#include "cli/output.h"
#include "kube/client.h"

namespace heddle::cli {

// The commands that ask a cluster. Each reads all it needs once and then only computes.

struct ExplainOptions {
  std::string target;  // "job/NAME", or "NAME"
  std::string ns;
  ParallelismFlags flags;
};
Output RunExplain(kube::Client& client, const ExplainOptions& options, const OutputOptions& look,
                  const std::stop_token& stop);

// node "" = all nodes, as a table.
Output RunTopology(kube::Client& client, const std::string& node, const OutputOptions& look,
                   const std::stop_token& stop);

Output RunFabric(kube::Client& client, const OutputOptions& look, const std::stop_token& stop);

}  // namespace heddle::cli
