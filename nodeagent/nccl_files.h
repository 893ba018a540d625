#pragma once

#include <string>

#include "base/file_tree.h"
#include "base/result.h"
#include "nodeagent/discovery.h"

namespace heddle::nodeagent {

// What --from-nccl-xml and --nccl-topo do. For main.cc alone: they open files by the paths that people typed.

// Takes the PCIe tree from the file at `path`, as the shell would find it; nothing for an empty path. `alone`:
// nccl_import.h.
[[nodiscard]] base::Status UseNcclXml(const std::string& path, bool alone, Discovery& discovery);

// Writes the topology file of a machine to `path`, or to standard output for "-". `files`: the machine's tree.
[[nodiscard]] base::Status WriteNccl(const base::FileTree& files, Discovery& discovery,
                                     const std::string& path);

}  // namespace heddle::nodeagent
