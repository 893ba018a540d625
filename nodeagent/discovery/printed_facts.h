#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file_tree.h"
#include "nodeagent/assembly/assemble.h"
#include "nodeagent/assembly/distances.h"
#include "nodeagent/leaf/leaf_counts.h"

namespace heddle::nodeagent {

// Of an RDMA device; what its driver does not say is empty.
struct NicVersion {
  std::string firmware;  // "28.39.3560"
  std::string model;     // "MT4129"
  std::string board;     // "MT_0000000838": which firmware goes on it
  // With its version, "mlx5_core 24.10-1.1.4"; one of the kernel has none: "mlx5_core, the kernel's own". A version
  // that cannot be read: "mlx5_core ?".
  std::string driver;
  friend bool operator==(const NicVersion&, const NicVersion&) = default;
};

// What whoever mends a machine asks first and nobody plans by: printed and recorded, not published.
struct PrintedFacts {
  bool read = false;        // somebody looked for what follows: whoever follows a machine (follow.h) does not
  bool xgmi = false;        // what counts as NVLinks is AMD's xGMI
  bool file_alone = false;  // as Observation::file_alone
  std::string kernel;       // its release, "6.8.0-48-generic"; empty = unknown
  std::string gpu_driver;   // its version; empty = unknown
  std::map<std::string, NicVersion, std::less<>> nics;  // by RDMA device
  std::vector<PairDistance> distances;
  std::vector<Exclusion> excluded;
  std::vector<LeafCounts> leaves;  // whoever asked them puts them here
};

// Of a machine that only a file speaks of, nothing is read: this host is another.
// Reads proc/sys/kernel/osrelease and the versions of the RDMA devices in `seen`; the rest is in `readings`.
PrintedFacts ReadPrintedFacts(const base::FileTree& files, const Readings& readings, const Observation& seen);

}  // namespace heddle::nodeagent
