#pragma once

#include <string>
#include <vector>

#include "cli/cluster_files.h"
#include "cli/output.h"

namespace heddle::cli {

// `kubectl heddle switch compare`: whether each cable between a host and a switch is lossless, from what both ends are
// set to. Looks at files alone.
struct SwitchCompareOptions {
  std::vector<std::string>
      files;              // NodeTopologies and config_db.json; NAME=FILE for a switch of another name
  bool problems = false;  // only what is not lossless
};

// Exit codes: 0 every cable is lossless, 3 one is not, or nobody can tell, 2 a file could not be read, or
// there is no cable to look at.
Output SwitchCompare(const SwitchCompareOptions& options, const ReadFile& read, const OutputOptions& look);

}  // namespace heddle::cli
