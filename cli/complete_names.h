#pragma once

#include <chrono>
#include <stop_token>

#include "cli/cluster_files.h"
#include "cli/completion.h"
#include "cli/output.h"
#include "kube/client.h"

namespace heddle::cli {

// The names that stand next where Complete() left them to the cluster or to files. Who does not answer within
// kCompletionPatience, or not to this person, offers none: nothing is said where somebody is typing, and the exit code
// is 0.
Output CompleteOfCluster(kube::Client& client, const NamesWanted& wanted, const std::stop_token& stop);
// Requires: wanted.topology is not empty. Standard input is not read: it is the terminal.
Output CompleteOfFiles(const NamesWanted& wanted, const ReadFile& read);
Output CompleteWithoutNames();

// For each request; what takes longer is slower than typing the name.
constexpr std::chrono::milliseconds kCompletionPatience{1000};

}  // namespace heddle::cli
