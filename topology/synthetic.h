#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "topology/fabric.h"

namespace heddle::topology {

// A cluster in one line, for tests, benchmarks and `kubectl heddle plan`; docs/synthetic.md is its grammar by
// example. Words are `key:value`, in any order:
//
//   "su:2 node:16 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100"
//   "node:16,11,7"                                       three units, uneven
//   "core:4 pod:2 spine:2 su:4 node:16 oversub:su=2,spine=4"   three tiers; pods meet over cores
//   "zone:2 pod:2 su:2 node:16"                          four tiers: leaf, spine, superspine, core
//   "rack:2 tray:18 gpu:4 nic:4 rail:4 rate:400 nvl"     NVLink domains over nodes: one per rack
//   "su:2 node:36 gpu:4 nvlink:18"                       the same over 18 neighbouring nodes of a unit
//   "su:2 rack:8 tray:18 gpu:4 nic:4 nvl"                8 racks in each scalable unit
//   "tor:4 node:8 gpu:8 nic:2 rate:100 transport:roce"   plain ToR; `dualtor`: each NIC on tor-0a and tor-0b
//   "su:2 node:4 gpu:8 nic:8 rail:8 railonly"            no way between rails
//   "su:1 node:4 gpu:8 nic:8 rail:8 plane:2"             two planes per rail: two ports per NIC, half the rate each
//   "su:4 node:16 machine:h100,a100 rate:400,200"        kinds of nodes, by unit in turn
//   "torus:4x4x4 gpu:4 nic:4"
//   "dragonfly:groups=9 tor:4 node:2 gpu:8 nic:1"
//   "site:2 su:1 node:4 ..."                             two sites ("site-0", "site-1"), each with all that follows
//
// Counts are per what is around: zone per site, pod per zone, su (or rack, or tor) per pod, rack per su, node per
// su or tor, tray per rack, dragonfly groups per site and tor per group; a level left out is there once. Of
// switches `spine` counts per pod, `superspine` per zone and `core` per site, on each plane. What is left out:
// gpu:8, nic = gpu, rail = nic, plane:1, spine:2 (0 = nobody declared any; railonly, torus and dragonfly have
// none), superspine:2 with several zones and core:2 with several zones or pods, else 0, rate:400, transport:ib
// (roce, efa, ethernet), machine:h100 (a100, h200, b200, b300, gb200, l40s, mi300x), nvlink:node. With fewer NICs than
// GPUs neighbours share one, with fewer rails than NICs neighbouring NICs share a rail. A line makes 131,072 nodes,
// 1,048,576 GPUs and as many NICs at most.
//
// Faults, any number: "down:node-3/rail-2", "half:node-3/rail-2" (half rate), "swap:node-3/rail-1/rail-2"
// (two cables of one node), "swap:node-3/rail-1/node-9/rail-1" (of two), "badgpu:node-3/5". An unknown or
// doubled word is refused with the list of words. Node names are "node-00" … in unit order, or
// "rack-0-tray-00" (a fault may leave out leading zeros); leaves "su0-r3" (rail 3 of unit 0; "su0-r3-p1" on
// plane 1 of several), "tor-0"; switches above "spine-0", "superspine-0", "core-0" ("spine-0-p1"). Numbers go on
// over pods, zones and sites.
struct Synthetic {
  std::vector<Node> nodes;
  Declaration declaration;
  friend bool operator==(const Synthetic&, const Synthetic&) = default;
};
[[nodiscard]] base::Result<Synthetic> ParseSynthetic(std::string_view line);

// The one line, with nothing left out, that stands for all lines that make the same cluster.
[[nodiscard]] base::Result<std::string> CanonicalSynthetic(std::string_view line);

}  // namespace heddle::topology
