#pragma once

#include <array>
#include <cstdint>

#include "placement/plan.h"

namespace heddle::placement {

// Bytes on the wire per GPU and training step, by axis, from the model hints (performance anchors 3.2);
// without hints, defaults that keep TP ≈ EP ≫ CP > FSDP shard > DP > PP.
struct AxisBytes {
  std::array<double, kAxisCount> bytes{};           // per rank and step
  std::array<std::int64_t, kAxisCount> messages{};  // collectives (or sends) per step, for the latency term
};
AxisBytes BytesPerStep(const Parallelism& parallelism, const ModelHints& model);

// The slowest edge that a group of an axis crosses, and the time it costs: α + bytes/β with NCCL's ring
// constants.
struct EdgeCost {
  double gbps = 0;        // bandwidth of the worst edge, Gb/s
  double latency_us = 0;  // of one step over it
};
// Between two GPUs, given as (node, position in Node::gpus).
EdgeCost CostOfEdge(const topology::Fabric& fabric, topology::NodeId a, int gpu_a, topology::NodeId b,
                    int gpu_b);

}  // namespace heddle::placement
