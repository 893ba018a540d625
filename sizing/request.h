#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "topology/node.h"

namespace heddle::sizing {

// Downlink : uplink bandwidth of a tier.
struct Ratio {
  int down = 1, up = 1;  // 1 … kMostRatio
  friend bool operator==(const Ratio&, const Ratio&) = default;
};
inline constexpr int kMostRatio = 100;
// "2:1" or "3:2"; nothing where it is none. 1:3 is read, and refused by whoever sizes.
std::optional<Ratio> ParseRatio(std::string_view text);
std::string RatioText(Ratio ratio);        // "2:1", in lowest terms
std::string Grouped(std::int64_t number);  // "1,048,576"

enum class Wiring : std::uint8_t {
  kRailOptimised,  // a leaf for each rail of a unit; spines join units and rails
  kFatTree,        // all NICs of a node on one leaf, as a plain ToR has them
  kRailOnly,       // one leaf for each rail and nothing above
};
std::string_view WiringWord(Wiring wiring);                // "rail-optimised", "fat-tree", "rail-only"
std::optional<Wiring> ParseWiring(std::string_view word);  // also "rail-optimized" and "tor"

// The hall that cables are measured in; lengths go along racks and rows, never across.
struct Hall {
  int nodes_per_rack = 0;  // 0 = as many as rack_kw feeds
  int rack_kw = 45;        // four DGX H100 and their switches: RA-11333-001 shows a rack of more than 40 kW
  int racks_per_row = 0;   // 0 = as square a hall as there are racks for
  int row_metres = 3;      // from row to row: a rack of 1.2 m and an aisle, our own assumption
  friend bool operator==(const Hall&, const Hall&) = default;
};

// What somebody wants. Zero and empty = not said.
struct Request {
  std::int64_t gpus = 0;
  std::string machine = "h100";
  Wiring wiring = Wiring::kRailOptimised;
  int rails = 0;     // not said: one for each NIC
  int planes = 1;    // parallel networks: ports of each NIC, which share its rate
  Ratio leaf, core;  // oversubscription of leaves, and of spines below cores
  topology::Transport transport = topology::Transport::kInfiniBand;  // or kRoce
  std::string switch_word;                                           // not said: UsualSwitch
  int radix = 0;        // ports of each switch at the links' rate, instead of what the switch has
  int tiers = 0;        // not said: as few as hold the GPUs
  int unit_nodes = 0;   // built whole even where fewer nodes are in it; not said: units of equal size
  int spare_ports = 0;  // of each switch, left free
  Hall hall;
  std::string storage = "better";  // a StorageGuide's word
  double storage_gbs_per_gpu = 0;  // instead of the guide's reads of a unit
  friend bool operator==(const Request&, const Request&) = default;
};

// The largest that is sized: eight times the largest published job; beyond it is a typo.
inline constexpr std::int64_t kMostGpus = std::int64_t{1} << 20;
inline constexpr int kMostRadix = 1024;

}  // namespace heddle::sizing
