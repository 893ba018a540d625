#pragma once

#include <cstdint>

#include "placement/dense.h"

namespace heddle::placement {

// The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): equal only for equal values.
constexpr std::uint64_t Mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

// A number for what a node offers, whatever it is called: equal for nodes with the same of their GPUs open, as slow or
// odd, and cabled alike. Of a cell it is the sum over its nodes. Unlike ones are equal by accident alone.
inline std::uint64_t ContentOf(const DenseFabric& dense, topology::NodeId node, std::uint32_t open) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;  // SplitMix64's step
  const std::uint64_t gpus = std::uint64_t(dense.odd_gpus(node)) << 32 | open;
  return Mixed(gpus + std::uint64_t(dense.cabling(node)) * kGolden);
}

}  // namespace heddle::placement
