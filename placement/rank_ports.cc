#include "placement/rank_ports.h"

#include <bit>

namespace heddle::placement {

void ReadPorts(const DenseFabric& dense, const std::vector<PodPlacement>& pods, std::vector<GpuPort>& ranks) {
  for (const PodPlacement& pod : pods) {
    for (std::uint32_t left = pod.gpus; left != 0; left &= left - 1) {
      ranks.push_back(dense.port(pod.node, std::countr_zero(left)));
    }
  }
}

std::optional<std::int64_t> NextInGroup(Axis axis, AxisStride stride, std::int64_t rank) {
  if (rank / stride.stride % stride.size < stride.size - 1) return rank + stride.stride;
  if (axis == Axis::kPp) return std::nullopt;
  return rank - stride.stride * (stride.size - 1);
}

}  // namespace heddle::placement
