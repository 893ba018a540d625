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

// The largest that a line makes, so that no line of a hundred bytes takes the machine's memory.
inline constexpr long long kMaxSyntheticNodes = 131'072;
inline constexpr long long kMaxSyntheticGpus = 1'048'576;  // and as many NICs
inline constexpr long long kMaxSyntheticPorts = 2'097'152;
inline constexpr long long kMaxSyntheticCables = 4'194'304;  // between switches

struct SyntheticMachine {
  std::string_view word;     // as the line has it: "h100"
  std::string_view product;  // "HGX H100"
  std::string_view gpu;
  int memory_gib = 0;
  NvLink nvlink;
};
// Null if there is none.
const SyntheticMachine* FindMachine(std::string_view word);
// "a100, b200, …"
std::string MachineWords();

// Its name in small letters, but for InfiniBand "ib".
std::string TransportWord(Transport transport);

enum class Layout { kUnits, kRacks, kTor, kTorus, kDragonfly };

// What contains what, outermost first. A layout has some of them.
enum class LevelKind { kSite, kZone, kPod, kGroup, kUnit, kRack, kTor, kHost };
inline constexpr std::size_t kLevelKinds = 8;

// How many of one level there are in each of the level around it: one number for each of these in turn, and
// again from the first where the numbers end.
struct Level {
  LevelKind kind = LevelKind::kHost;
  std::string_view word;
  std::vector<int> counts;
  friend bool operator==(const Level&, const Level&) = default;
};

// The hosts of one innermost container: a unit, a rack, a ToR, or the whole torus of a site.
struct HostGroup {
  std::array<int, kLevelKinds> number{};  // of each container around it, over all sites; kNone = has none
  int first = 0;                          // number of its first host, over all sites
  int hosts = 0;
  int operator[](LevelKind kind) const { return number[static_cast<std::size_t>(kind)]; }
  int& operator[](LevelKind kind) { return number[static_cast<std::size_t>(kind)]; }
};

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

// What one unit's nodes are like.
struct HostKind {
  std::string_view machine;
  int gpus = 0, nics = 0, rails = 0, rate_gbps = 0;
};

struct SyntheticLine {
  Layout layout = Layout::kUnits;
  std::vector<Level> levels;  // site first, hosts last
  std::array<int, 3> torus{0, 0, 0};

  // By unit in turn.
  std::vector<int> gpus{8}, nics{8}, rails{8}, rates_gbps{400};
  std::vector<std::string> machines{"h100"};

  int planes = 1;
  // Per pod, zone and site, on each plane.
  int spines = 2, superspines = 0, cores = 0;
  // Downlink : uplink of leaves, spines and superspines in hundredths; 0 = not said.
  int leaf_percent = 0, spine_percent = 0, superspine_percent = 0;
  Transport transport = Transport::kInfiniBand;
  // Nodes of one NVLink domain: 1 = each its own, 0 = no NVLink, kWholeRack = the rack, or the unit where
  // there are no racks.
  static constexpr int kWholeRack = -1;
  int nvlink_nodes = 1;
  bool rail_only = false, dual_tor = false;
  std::vector<SyntheticFault> faults;  // sorted

  bool Has(LevelKind kind) const;
  // Of the unit with this number, over all sites.
  HostKind KindOf(int unit) const;
  int ports_per_nic() const { return dual_tor ? 2 : planes; }
};

// Checked and in its one form: of all lines that make the same cluster, the same.
[[nodiscard]] base::Result<SyntheticLine> ReadSyntheticLine(std::string_view line);
std::string WriteSyntheticLine(const SyntheticLine& line);

// What the levels make, and how many of each there are around.
struct SyntheticTree {
  std::vector<HostGroup> groups;
  std::vector<std::vector<int>> full;            // by level: the count in each container around it
  std::vector<std::vector<std::size_t>> scopes;  // by level: how long its list may be, shortest first
  int nodes = 0;
};
// Refuses lists that do not fit what is around them, and too many nodes. `line` need not be in its one form.
[[nodiscard]] base::Result<SyntheticTree> GrowSyntheticTree(const SyntheticLine& line);

// The number of each node's NVLink domain, by node; Requires: nvlink_nodes is not 0.
std::vector<int> NvlinkDomainsOf(const SyntheticLine& line, const SyntheticTree& tree);

// The rest of the checks that need the tree, and the one form of it.
[[nodiscard]] base::Status CheckSizes(const SyntheticLine& line, const SyntheticTree& tree);
void Normalise(SyntheticLine& line, SyntheticTree& tree);

}  // namespace heddle::topology
