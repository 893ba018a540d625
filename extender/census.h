#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "extender/snapshot.h"

namespace heddle::extender {

// How far a gang has come, for counting. Those that have ended are none.
enum class GangState : std::uint8_t {
  kCollecting,  // not all pods are there
  kWaiting,     // all are there, and there is no plan: refused, or behind Kueue's gate
  kPlanned,     // reserved, not yet all let go
  kReleased,    // let go, not yet all bound
  kRunning,     // all bound
  kStalled,     // all bound, and a node under them is lost
  kRepairing,   // a rank got another slot and is not bound there yet
  kDegraded,    // a rank has no slot
};
inline constexpr int kGangStates = 8;
std::string_view GangStateName(GangState state);  // "collecting", …

// Requires: the gang has not ended.
GangState StateOf(const crds::Gang& gang);
using GangCount = std::array<int, kGangStates>;
// Of those that mode observe looks at only the ones that run.
GangCount CountGangs(const std::vector<Shared<crds::Gang>>& gangs);
// Gangs that have not ended and whose pods hold other devices than planned.
int CountDevicesDiffer(const std::vector<Shared<crds::Gang>>& gangs);

// What stands free and who holds the rest, over all fabrics of a snapshot.
struct Census {
  // GPUs, each counted once: of nodes that no gang may use now ("NotReady", "Cordoned", …); broken; under a pod;
  // reserved for a pod that is on no node yet; and free for anybody.
  std::int64_t unusable = 0, unhealthy = 0, bound = 0, reserved = 0, free = 0;
  std::int64_t free_on_shared_nodes = 0;  // of the free: on nodes that are partly taken
  int whole_nodes = 0;                    // usable, every healthy GPU free
  // NVLink domains with every healthy GPU free, by the domain's size in GPUs; 0 for a size of which none is.
  std::map<int, int> whole_domains;
  // By the words of NodeState::unusable, and of nodes outside of every fabric: "NotReady": 2.
  std::map<std::string, int> unusable_nodes;
  // How many gangs of 2^i whole nodes fit beside each other, none of them over two scalable units.
  static constexpr int kSizes = 9;  // 1 … 256 nodes
  std::array<std::int64_t, kSizes> fit{};
  int largest = 0;  // whole nodes free in the unit that has the most
  friend bool operator==(const Census&, const Census&) = default;
};
Census TakeCensus(const Snapshot& snapshot);

}  // namespace heddle::extender
