#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/file_tree.h"
#include "nodeagent/assembly/assemble.h"
#include "nodeagent/discovery/steady_files.h"
#include "nodeagent/nccl/import.h"
#include "nodeagent/nic/heard.h"
#include "nodeagent/nic/verbs.h"

namespace heddle::nodeagent {

// Asks every probe about one machine. The file tree and the GPU source must outlive it.
// Thread rule: one thread, but for gpu_news.
class Discovery {
 public:
  Discovery(const base::FileTree& files, GpuSource& gpus, std::vector<std::unique_ptr<LeafSource>> leaves,
            Identity identity, Locality locality);

  // Who knows the RDMA MTU of ports; without it they are derived. Before the first look.
  void Ask(std::unique_ptr<MtuSource> mtus) { mtus_ = std::move(mtus); }
  // Devices are where this file has them, from the next look on.
  void Use(SuppliedTopology supplied) { supplied_ = std::move(supplied); }

  // As RdmaProbe::LeaveOut.
  void LeaveOut(UncabledPorts named) { rdma_.LeaveOut(std::move(named)); }
  // These NICs are for storage, from the next look on.
  void KeepForStorage(StorageNics named) { storage_ = std::move(named); }

  // GpuSource::news. Any thread.
  int gpu_news() const { return gpus_.news(); }

  Observation Look();
  // What such readings come to.
  Observation Put(const Readings& readings) const;
  // The same before it is put together; what `record` keeps.
  Readings Read();

 private:
  // The devices of the machine, by folder of sysfs.
  std::vector<std::vector<std::string>> Devices() const;

  SteadyFileTree files_;
  GpuSource& gpus_;
  std::vector<std::unique_ptr<LeafSource>> leaves_;
  const Identity identity_;
  const Locality locality_;
  RdmaProbe rdma_;
  StorageNics storage_;
  LastCounted counted_;
  std::unique_ptr<MtuSource> mtus_;
  std::optional<SuppliedTopology> supplied_;
};

}  // namespace heddle::nodeagent
