#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "cli/kubectl.h"
#include "cli/output.h"
#include "kube/client.h"

namespace heddle::cli {

struct RecordOptions {
  std::string node;
  std::string ns;  // where Heddle is; empty = heddle-system, or else wherever its agents are
  bool scrub = false;
  std::string kubeconfig, context;  // as they were given to us, for kubectl
  std::string as;                   // likewise
  std::vector<std::string> as_groups;
  bool to_terminal = false;  // whether standard output is one
};

// Has the agent on a node record its machine (`heddle-nodeagent record -` in its pod, by `kubectl exec`) and leaves the
// archive on standard output, where kubectl itself puts it. Exit codes: 0 it is whole, 1 it is not, 2 called wrongly.
Output RunRecord(kube::Client& client, const RecordOptions& options, const RunKubectl& kubectl,
                 const OutputOptions& look, const std::stop_token& stop);

}  // namespace heddle::cli
