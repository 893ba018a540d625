#pragma once

#include <string>
#include <vector>

#include "crds/node_topology.h"
#include "nodeagent/assembly/assemble.h"
#include "nodeagent/gpu/probe.h"

namespace heddle::nodeagent {

// XIDs that ended the use of a GPU before this agent started. NVML tells an XID once, to whoever listens when it
// happens, so a new agent would find the GPU healthy. What was published holds until the node boots again, which is
// when every GPU is started anew; where the kernel tells no boot id it holds, too. A value. Thread rule: one thread.
class XidMemory {
 public:
  // What was published before this agent started.
  void Restore(const crds::NodeTopologyStatus& published);
  // Puts them into a look. `gpus`: its readings. A GPU is known by its UUID, by its PCI address where one is not told.
  void Apply(std::vector<GpuReading>& gpus, Observation& seen) const;

 private:
  std::string boot_id_;
  std::vector<topology::Gpu> gpus_;  // those with such an XID
};

}  // namespace heddle::nodeagent
