#include "nodeagent/health/xid_memory.h"

namespace heddle::nodeagent {
namespace {

template <class AnyGpu>
bool IsSame(const topology::Gpu& known, const AnyGpu& gpu) {
  return known.uuid.empty() || gpu.uuid.empty() ? known.pci == gpu.pci : known.uuid == gpu.uuid;
}

}  // namespace

void XidMemory::Restore(const crds::NodeTopologyStatus& published) {
  boot_id_ = published.boot_id;
  gpus_.clear();
  for (const topology::Gpu& gpu : published.node.gpus) {
    if (IsFatalXid(gpu.fatal_xid)) gpus_.push_back(gpu);
  }
}

void XidMemory::Apply(std::vector<GpuReading>& gpus, Observation& seen) const {
  const bool booted = !boot_id_.empty() && !seen.boot_id.empty() && boot_id_ != seen.boot_id;
  if (booted) return;
  for (const topology::Gpu& known : gpus_) {
    for (GpuReading& reading : gpus) {
      if (IsSame(known, reading) && !IsFatalXid(reading.last_xid)) reading.last_xid = known.fatal_xid;
    }
    for (topology::Gpu& gpu : seen.node.gpus) {
      if (!IsSame(known, gpu) || gpu.fatal_xid != 0) continue;
      gpu.fatal_xid = known.fatal_xid;
      for (const GpuReading& reading : gpus) {
        if (reading.index == gpu.index && IsSame(known, reading)) gpu.unhealthy_reason = FaultOf(reading);
      }
      gpu.healthy = gpu.unhealthy_reason.empty();
    }
  }
}

}  // namespace heddle::nodeagent
