#pragma once

#include <string>

#include "base/file_tree.h"
#include "base/result.h"
#include "formats/nccl_xml.h"
#include "nodeagent/assembly/assemble.h"

namespace heddle::nodeagent {

// An NCCL topology file that somebody gave for this machine, because its hypervisor hides the PCIe tree.
struct SuppliedTopology {
  formats::NcclTopology topology;
  std::string source;  // the file's name, for sentences
  bool alone = false;  // where the machine has none of its devices, show what the file says by itself
  std::string node;    // what a machine shown so is called; empty: as the one that reads the file
};

// `name` is the file's below the root of `files`, `source` what sentences call it. A file that is no topology is
// an error with the place in it.
[[nodiscard]] base::Result<SuppliedTopology> ReadSuppliedTopology(const base::FileTree& files,
                                                                  const std::string& name,
                                                                  const std::string& source);

// Puts the devices of the readings where the file has them: host bridge, switches and NUMA node, matched by PCI
// address and by nothing else, so it does not matter what they are called. Devices that the file does not name
// stay where sysfs has them. Planes of ports, and rails where no measurement tells them, are the file's.
// Pure and total; what does not fit together becomes a problem of the readings.
void Supply(const SuppliedTopology& supplied, Readings& readings);

}  // namespace heddle::nodeagent
