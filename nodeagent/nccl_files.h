#pragma once

#include "base/file_tree.h"
#include "base/result.h"
#include "nodeagent/discovery/discovery.h"
#include "nodeagent/flags.h"

namespace heddle::nodeagent {

// What --from-nccl-xml and --nccl-topo say. The one takes the PCIe tree from a file, found as the shell would find
// it; the other writes the topology file of a machine, whose tree is `files`, to a file or, for "-", to standard
// output. True: that was all there was to do. With --print on a `live` machine the file may stand alone
// (nccl_import.h).
[[nodiscard]] base::Result<bool> ServeNccl(const base::FileTree& files, const Flags& flags, bool live,
                                           Discovery& discovery);

}  // namespace heddle::nodeagent
