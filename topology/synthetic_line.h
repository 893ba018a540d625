#pragma once

#include <array>
#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "topology/node.h"

namespace heddle::topology {

// Inside of the synthetic notation: the words of a line as numbers.

struct SyntheticMachine {
  std::string_view word;     // as the line has it: "h100"
  std::string_view product;  // "HGX H100"
  std::string_view gpu;
  int memory_gib = 0;
  NvLink nvlink;
};
// Requires: a word that ReadSyntheticLine let through.
const SyntheticMachine& MachineNamed(std::string_view word);

enum class Layout { kUnits, kRacks, kTor, kTorus, kDragonfly };

// One fault word, with the names as the line has them; whether they exist is known when the nodes are.
struct SyntheticFault {
  std::string word;  // down, half, swap, badgpu
  std::string node;
  int number = 0;          // rail, or GPU for badgpu
  std::string other_node;  // swap: the same as `node` for two cables of one node
  int other = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 in it for a pointer
  friend auto operator<=>(const SyntheticFault&, const SyntheticFault&) = default;
};

struct SyntheticLine {
  Layout layout = Layout::kUnits;
  int sites = 1;
  int groups = 1;  // dragonfly
  int units = 1;   // su
  int racks = 1;   // per unit
  int tors = 1;    // per site or group
  int hosts = 1;   // node or tray: per unit, rack or ToR
  std::array<int, 3> torus{0, 0, 0};
  bool units_given = false;  // for racks: without `su`, each rack is a unit

  int gpus = 8, nics = 8, rails = 8, planes = 1, spines = 2;
  int rate_gbps = 400;
  int oversubscription_percent = 0;
  Transport transport = Transport::kInfiniBand;
  std::string machine = "h100";
  bool nvlink_over_nodes = false, rail_only = false, dual_tor = false;
  std::vector<SyntheticFault> faults;  // sorted
  friend bool operator==(const SyntheticLine&, const SyntheticLine&) = default;

  int nodes_per_site() const;
};

[[nodiscard]] base::Result<SyntheticLine> ReadSyntheticLine(std::string_view line);
std::string WriteSyntheticLine(const SyntheticLine& line);

}  // namespace heddle::topology
