#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/file_tree.h"
#include "base/result.h"
#include "nodeagent/discovery/discovery.h"
#include "nodeagent/leaf/leaf_counts.h"
#include "nodeagent/leaf/memory.h"

namespace heddle::nodeagent {

// What stands between a Discovery and a machine, live or recorded.
struct Machine {
  Identity identity;
  std::unique_ptr<GpuSource> gpus;
  std::unique_ptr<Discovery> discovery;
  std::unique_ptr<LeafCountSource> leaf_counts;
};

// A recorded machine. `files` is rooted at `folder`; `node` wins over the name in machine.yaml where it is
// given. A folder without machine.yaml is a machine of which little is known, as long as somebody says what
// it is called.
// `uncabled` and `storage` win in the same way.
[[nodiscard]] base::Result<Machine> OpenRecorded(const base::FileTree& files, const std::string& folder,
                                                 std::string node, UncabledPorts uncabled = {},
                                                 StorageNics storage = {});

// This machine. `files` is rooted at "/"; `gpus`: its driver; `clock` must outlive the machine;
// `stop` ends a look that waits, which then says less than it could.
[[nodiscard]] base::Result<Machine> OpenLive(const base::FileTree& files, std::string node,
                                             std::unique_ptr<GpuSource> gpus, base::Clock& clock,
                                             const std::stop_token& stop = {}, const LeafPaths& paths = {},
                                             UncabledPorts uncabled = {}, StorageNics storage = {});

// Copies what discovery reads of the live machine into `folder`, as a recorded machine; "-" is standard output, as a
// tar archive. `scrub`: under other names (scrub.h).
[[nodiscard]] base::Status Record(const base::FileTree& files, const std::string& node,
                                  std::unique_ptr<GpuSource> gpus, base::Clock& clock,
                                  const std::string& folder, const LeafPaths& paths = {}, bool scrub = false,
                                  UncabledPorts uncabled = {}, StorageNics storage = {});

// The same of a recorded machine, so that an old recording can be scrubbed. `files` is rooted at `source`.
[[nodiscard]] base::Status RecordAgain(const base::FileTree& files, const std::string& source,
                                       const std::string& node, bool scrub, const std::string& folder,
                                       UncabledPorts uncabled = {}, StorageNics storage = {});

}  // namespace heddle::nodeagent
