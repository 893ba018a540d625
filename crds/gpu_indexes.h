#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "topology/node.h"

namespace heddle::crds {

// Extended resources that count as GPUs; a pod may ask for one of them. Sorted.
inline constexpr std::array<std::string_view, 3> kGpuResources{"amd.com/gpu", "heddle.dev/gpu",
                                                               "nvidia.com/gpu"};
bool IsGpuResource(std::string_view name);

// GPUs of one node: those that pods may be given, and of those that its agent finds the healthy ones and all.
struct GpuCounts {
  int allocatable = 0, healthy = 0, all = 0;
  // The device plugin withdraws an unhealthy GPU some time before or after the agent reports it, so every number
  // between the healthy and all of them agrees; and a pod's GPUs are bits of 32. Where they do not, no gang gets the
  // node: GpuCountMismatch.
  bool agree() const;
};

// GPUs of one node in 32 bits, counted in one of two ways: by index, as people, NVML and our annotations
// count, or by position in Node::gpus, as placement counts.
std::uint32_t IndexesOf(const topology::Node& node, std::uint32_t positions);
std::uint32_t PositionsOf(const topology::Node& node, std::uint32_t indexes);
std::uint32_t AllIndexes(const topology::Node& node);

// "0,1,5" from indexes and back; nothing when the text is no such list.
std::string FormatGpuIndexes(std::uint32_t indexes);
std::optional<std::uint32_t> ParseGpuIndexes(std::string_view text);

}  // namespace heddle::crds
