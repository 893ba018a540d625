#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/cluster_files.h"
#include "cli/output.h"
#include "crds/gang.h"
#include "kube/client.h"

namespace heddle::cli {

// What mode observe found: job by job, and all of them in one line.
struct ObservedOptions {
  std::string ns;  // empty = all
  int last = 20;   // of the jobs that were observed in the time
  int days = 7;
  std::vector<std::string> topology;  // files in place of a cluster
};

// The last gangs that were observed within the days before `now`, latest first.
std::vector<crds::Gang> LastObserved(std::vector<crds::Gang> gangs, const ObservedOptions& options,
                                     base::WallTime now);

// Whether the numbers make sense: what can be told before a cluster is asked.
[[nodiscard]] base::Status CheckWords(const ObservedOptions& options);
Output RunObserved(kube::Client& client, const ObservedOptions& options, base::WallTime now,
                   const OutputOptions& look, const std::stop_token& stop);
// Of the Gangs in options.topology; 2 where these cannot be read.
Output ShowObserved(const ObservedOptions& options, base::WallTime now, const ReadFile& read,
                    const OutputOptions& look);

}  // namespace heddle::cli
