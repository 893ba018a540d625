#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/cluster_files.h"
#include "cli/explain.h"
#include "cli/output.h"
#include "kube/client.h"

namespace heddle::cli {

// The commands that ask a cluster. Each reads all it needs once and then only computes. `files`, where there are any,
// stand in its place: then no cluster is asked, and what is wrong with them, or not in them, is exit code 2.

struct ExplainOptions {
  std::string target;  // "job/NAME", or "NAME"
  std::string ns;
  ParallelismFlags flags;
  std::vector<std::string> topology;  // files in place of a cluster
};
// Whether KIND/NAME and the flags make sense: what can be said of them before a cluster is asked.
[[nodiscard]] base::Status CheckWords(const ExplainOptions& options);
// `clock` is the API server's.
Output RunExplain(kube::Client& client, base::Clock& clock, const ExplainOptions& options,
                  const OutputOptions& look, const std::stop_token& stop);
// Of a Gang that options.topology hold, by its own name or that of what made it; ns "" = of any namespace. Where they
// hold no pods of it, its places are those of its plan.
Output ShowExplain(const ExplainOptions& options, const ReadFile& read, const OutputOptions& look);

// node "" = all nodes, as a table.
Output RunTopology(kube::Client& client, const std::string& node, const OutputOptions& look,
                   const std::stop_token& stop);
Output ShowTopology(const std::vector<std::string>& files, const std::string& node, const ReadFile& read,
                    const OutputOptions& look);

Output RunFabric(kube::Client& client, const OutputOptions& look, const std::stop_token& stop);
Output ShowFabric(const std::vector<std::string>& files, const ReadFile& read, const OutputOptions& look);

}  // namespace heddle::cli
