#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "placement/dense.h"
#include "placement/plan.h"

namespace heddle::placement {

// The ports of all ranks in their order: a pod's ranks take its GPUs in ascending order. `pods` all placed.
void ReadPorts(const DenseFabric& dense, const std::vector<PodPlacement>& pods, std::vector<GpuPort>& ranks);

// Whom a rank sends to in its group: the next, and the last the first again. Nothing for the last stage of a
// pipeline, which is a chain.
std::optional<std::int64_t> NextInGroup(Axis axis, AxisStride stride, std::int64_t rank);

}  // namespace heddle::placement
