#include "crds/gpu_indexes.h"

#include <algorithm>
#include <charconv>

namespace heddle::crds {
namespace {

constexpr std::size_t kMostGpus = 32;  // bits of a set

}  // namespace

bool IsGpuResource(std::string_view name) {
  return std::binary_search(kGpuResources.begin(), kGpuResources.end(), name);
}

bool GpuCounts::agree() const {
  return allocatable >= healthy && allocatable <= all && all <= int(kMostGpus);
}

std::uint32_t IndexesOf(const topology::Node& node, std::uint32_t positions) {
  std::uint32_t indexes = 0;
  for (std::size_t i = 0; i < node.gpus.size() && i < kMostGpus; ++i) {
    const int index = node.gpus[i].index;
    if ((positions >> i & 1u) != 0 && index >= 0 && index < int(kMostGpus)) indexes |= 1u << index;
  }
  return indexes;
}

std::uint32_t PositionsOf(const topology::Node& node, std::uint32_t indexes) {
  std::uint32_t positions = 0;
  for (std::size_t i = 0; i < node.gpus.size() && i < kMostGpus; ++i) {
    const int index = node.gpus[i].index;
    if (index >= 0 && index < int(kMostGpus) && (indexes >> index & 1u) != 0) positions |= 1u << i;
  }
  return positions;
}

std::uint32_t AllIndexes(const topology::Node& node) {
  return IndexesOf(node, ~0u);
}

std::string FormatGpuIndexes(std::uint32_t indexes) {
  std::string text;
  for (std::size_t index = 0; index < kMostGpus; ++index) {
    if ((indexes >> index & 1u) == 0) continue;
    if (!text.empty()) text += ',';
    text += std::to_string(index);
  }
  return text;
}

std::optional<std::uint32_t> ParseGpuIndexes(std::string_view text) {
  if (text.ends_with(',')) return std::nullopt;
  std::uint32_t indexes = 0;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, comma);
    std::size_t index = kMostGpus;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
    if (error != std::errc{} || end != word.data() + word.size() || index >= kMostGpus) return std::nullopt;
    indexes |= 1u << index;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return indexes;
}

}  // namespace heddle::crds
