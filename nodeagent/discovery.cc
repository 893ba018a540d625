#include "nodeagent/discovery.h"

namespace heddle::nodeagent {

Discovery::Discovery(const base::FileTree& files, GpuSource& gpus,
                     std::vector<std::unique_ptr<LeafSource>> leaves, Identity identity, Locality locality)
    : files_(files),
      gpus_(gpus),
      leaves_(std::move(leaves)),
      identity_(std::move(identity)),
      locality_(std::move(locality)),
      rdma_(files) {}

Readings Discovery::Read() {
  Readings readings;
  readings.identity = identity_;
  readings.locality = locality_;
  readings.pci = ProbePci(files_);
  readings.gpus = gpus_.Read();
  readings.rdma = rdma_.Read();
  readings.net = ProbeNet(files_);
  for (const auto& source : leaves_) readings.leaves.Merge(source->Read());
  if (supplied_) Supply(*supplied_, readings);
  return readings;
}

Observation Discovery::Look() {
  return Assemble(Read());
}

}  // namespace heddle::nodeagent
