#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "topology/fabric.h"

namespace heddle::topology {

// A cluster in one line, for tests, benchmarks and `kubectl heddle plan`. Words are `key:value`, in any order:
//
//   "su:2 node:16 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100"
//   "rack:2 tray:18 gpu:4 nic:4 rail:4 rate:400 nvl"          NVLink domains over nodes: one per rack
//   "tor:4 node:8 gpu:8 nic:2 rate:100 transport:roce"        plain ToR
//   "su:2 node:4 gpu:8 nic:8 rail:8 railonly"                 no way between rails
//   "su:1 node:4 gpu:8 nic:8 rail:8 plane:2"                  two planes per rail
//   "su:2 node:16 ... oversub:200"                            2:1 above the leaves
//   "torus:4x4x4 gpu:4 nic:4", "dragonfly:4 tor:4 node:2 gpu:8 nic:1"
//   "site:2 su:1 node:4 ..."                                  two sites
//
// Faults: "down:node-3/rail-2", "half:node-3/rail-2" (half rate), "swap:node-3/rail-1/rail-2", "badgpu:node-3/5".
// An unknown or doubled word is refused with the list of words. Node names are "node-00" … in unit order, or
// "rack-0-tray-00"; leaves "su0-r3" (rail 3 of unit 0), "tor-0"; spines "spine-0".
struct Synthetic {
  std::vector<Node> nodes;
  Declaration declaration;
};
[[nodiscard]] base::Result<Synthetic> ParseSynthetic(std::string_view line);

// The line that makes an equal cluster; ParseSynthetic(FormatSynthetic(ParseSynthetic(x))) == ParseSynthetic(x).
[[nodiscard]] base::Result<std::string> CanonicalSynthetic(std::string_view line);

}  // namespace heddle::topology
