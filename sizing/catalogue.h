#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "topology/node.h"

namespace heddle::sizing {

// What can be bought, as far as a fabric is sized by it. All are constants, with who says so beside each value.

struct Source {
  std::string_view field;
  std::string_view source;
};

struct MachineType {
  std::string_view word;   // "h100"; topology/synthetic.h knows the machine by the same word
  std::string_view title;  // "DGX or HGX H100"
  int gpus = 0;            // of one node
  int nics = 0;            // that carry jobs, of one node
  int nic_gbps = 0;        // of one, one direction, all ports
  int domain_nodes = 1;    // nodes of one NVLink domain, which are bought and cabled together
  int storage_ports = 0;   // of one node
  int storage_gbps = 0;    // of one of them
  int management_ports = 0;
  int watts = 0;  // of one node at most; of the domain's share of its rack where several nodes are a rack
  bool predicted = true;            // the cost model knows its collectives
  int rack_nodes = 0;               // nodes of one rack whatever the power; 0 = as many as the rack can feed
  std::span<const Source> sources;  // one for each value
};
std::span<const MachineType> Machines();                    // by word
const MachineType* FindMachineType(std::string_view word);  // null: there is none of that word
std::string MachineTypeWords();                             // "a100, b200, …"

struct SwitchType {
  std::string_view word;                                             // "qm9700"
  std::string_view title;                                            // "QM9700 (Quantum-2)"
  topology::Transport transport = topology::Transport::kInfiniBand;  // or kRoce
  int ports = 0;                                                     // at its full rate
  int port_gbps = 0;                                                 // one direction
  int most_ports = 0;                                                // when its ports are split
  std::string_view source;

  // Ports for links of that rate; 0 = its ports are slower.
  int PortsAt(int link_gbps) const;
};
std::span<const SwitchType> Switches();
const SwitchType* FindSwitchType(std::string_view word);
std::string SwitchTypeWords(topology::Transport transport);
// The one that most fabrics of this rate are built from; null where nothing here is fast enough.
const SwitchType* UsualSwitch(topology::Transport transport, int link_gbps);

// How one link is made, the cheapest first.
enum class Medium : std::uint8_t { kDac, kAec, kAoc, kMultimode, kSingleMode, kLongReach };
inline constexpr int kMediums = 6;
std::string_view MediumWord(Medium medium);   // "dac", "aec", "aoc", "multimode", "singlemode", "longreach"
std::string_view MediumTitle(Medium medium);  // "copper, passive (DAC)", …
bool IsOptical(Medium medium);
bool HasTransceivers(Medium medium);  // two to buy with each cable

struct CableType {
  Medium medium = Medium::kDac;
  int link_gbps = 0;                             // for links up to that rate
  int metres = 0;                                // reach
  double end_watts_low = 0, end_watts_high = 0;  // of one end
  std::string_view source;
};
std::span<const CableType> Cables();  // by rate, then by reach
// The first that reaches so far at this rate; null where none does.
const CableType* CableFor(int link_gbps, int metres);
// The class of rates that a link is sold in: 200, 400 or 800; 0 = faster than any.
int RateClass(int link_gbps);
int LongestReach(int link_gbps);  // 0 = no cable is that fast

// Published guidance for reads, in GB/s.
struct StorageGuide {
  std::string_view word;  // "good", "better", "best"
  double per_node = 0;    // what one node should reach alone
  double per_unit = 0;    // all nodes of kGuideUnitNodes together
};
inline constexpr int kGuideUnitNodes = 32;
std::span<const StorageGuide> StorageGuides();
const StorageGuide* FindStorageGuide(std::string_view word);
extern const std::string_view kStorageSource;

}  // namespace heddle::sizing
