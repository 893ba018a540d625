#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "nodeagent/gpu/probe.h"
#include "topology/node.h"

namespace heddle::nodeagent {

// What began, or grew worse, and what ended.
struct NvlinkChange {
  bool over = false;
  std::string sentence;  // of the fault, with its time
  friend bool operator==(const NvlinkChange&, const NvlinkChange&) = default;
};
// "over: GPU 3 has …" of what ended.
std::string SayChange(const NvlinkChange& change);

// The health of the NVLinks by what changed from look to look: errors of each link, links that should be up, the
// clique of each GPU. Fast into trouble, out of it after a quiet time (kQuiet in link_rules.h). A GPU that does
// not answer is evidence of nothing here. A value: no clock, no I/O. Thread rule: one thread.
class NvlinkHealth {
 public:
  // What was published before this agent started: how many links each GPU should have up, and the sentences of
  // the condition NvlinkHealthy while it was False, which stay until a quiet time has passed. Before the first
  // Look.
  void Restore(const topology::Node& published, std::vector<std::string> faults);

  // Returns what began or ended.
  std::vector<NvlinkChange> Look(const GpuReadings& readings, base::MonotonicTime now, base::WallTime wall);

  // With evidence and time, by GPU; empty = nothing against any link. They stay as they are while a fault goes on,
  // until it is twice as bad.
  std::vector<std::string> Faults() const;
  // Whether there is anything to judge: some GPU has, or had, an NVLink up.
  bool Judges() const { return expected_ > 0; }
  // The most links that a GPU of this node had up since the start, or before it as published; 0 = none.
  int ExpectedLinks() const { return expected_; }

 private:
  enum class Kind : std::uint8_t { kWidth, kReplays, kRecoveries, kCrc, kReceive, kClique, kPublished };
  struct Trouble {
    std::optional<base::MonotonicTime> quiet_since;
    std::uint64_t count = 0, reported = 0;
    std::set<int> links;
    base::WallTime since;
    std::string sentence;
  };
  struct Gpu {
    std::map<int, NvlinkErrors> links;
    std::string clique;  // "<cluster uuid>.<clique>"; empty = none seen
    std::optional<base::MonotonicTime> at;
  };
  class Step;

  int expected_ = 0;
  std::set<std::string> published_gpus_;
  int published_links_ = 0;
  std::map<std::string, Gpu> gpus_;                   // by UUID, else address
  std::map<std::pair<int, Kind>, Trouble> troubles_;  // by GPU index; -1 for kPublished
};

}  // namespace heddle::nodeagent
