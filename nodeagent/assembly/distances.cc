#include "nodeagent/assembly/distances.h"

#include <algorithm>

#include "nodeagent/assembly/nic_assembly.h"

namespace heddle::nodeagent {
namespace {

using topology::PciDistance;

// The last bridge on the way from the host that leads to both; empty where none does.
std::string SharedBridge(const Readings& readings, const std::string& a, const std::string& b) {
  const PciDevice* left = readings.pci.Find(a);
  const PciDevice* right = readings.pci.Find(b);
  if (left == nullptr || right == nullptr) return {};
  const auto [ours, theirs] =
      std::mismatch(left->bridges.begin(), left->bridges.end(), right->bridges.begin(), right->bridges.end());
  return ours == left->bridges.begin() ? std::string() : *(ours - 1);
}

}  // namespace

std::optional<PciDistance> DistanceOf(const Readings& readings, const std::string& a, const std::string& b) {
  const PciDevice* left = readings.pci.Find(a);
  const PciDevice* right = readings.pci.Find(b);
  if (left == nullptr || right == nullptr) return std::nullopt;
  PciDevice x = *left, y = *right;
  x.numa = NumaOf(readings, a);
  y.numa = NumaOf(readings, b);
  const PciDistance distance = Distance(x, y, readings.locality.numa_nodes);
  // Nobody measured that they are on two sockets where nobody knows their sockets, as in guests.
  if (distance == PciDistance::kSys && !(x.numa.known() && y.numa.known())) return std::nullopt;
  return distance;
}

std::vector<PairDistance> DistancesOf(const Readings& readings, const topology::Node& node) {
  std::vector<PairDistance> pairs;
  for (const topology::Nic& nic : node.nics) {
    for (const topology::Gpu& gpu : node.gpus) {
      const auto distance = DistanceOf(readings, gpu.pci, nic.pci);
      if (!distance) continue;
      const bool near = *distance == PciDistance::kPix;
      pairs.push_back(
          {gpu.index, nic.name, *distance, near ? SharedBridge(readings, gpu.pci, nic.pci) : std::string()});
    }
  }
  return pairs;
}

}  // namespace heddle::nodeagent
