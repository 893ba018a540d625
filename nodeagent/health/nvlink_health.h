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
  std::string why;       // of what is over, if not by a quiet time: "the driver lists this GPU no longer"
  friend bool operator==(const NvlinkChange&, const NvlinkChange&) = default;
};
// "over: GPU 3 has …" of what ended, and why.
std::string SayChange(const NvlinkChange& change);

// What stands against the links of one GPU, the quiet time after it included.
struct NvlinkDoubt {
  int gpu = 0;     // its index
  int gone = 0;    // links that should be up and are not, or were not a short while ago
  int broken = 0;  // links that counted errors
  // What was counted on before this agent started, while the faults of then still hold.
  std::optional<int> published_gbps;
  friend bool operator==(const NvlinkDoubt&, const NvlinkDoubt&) = default;
};

// The health of the NVLinks by what changed from look to look: errors of each link, links that should be up, the
// clique of each GPU. Fast into trouble, out of it after a quiet time (kQuiet in link_rules.h). A GPU that does
// not answer is evidence of nothing here. Of one that an answering driver does not list for as long as a quiet time
// nothing can be told any more, and its troubles end by that: it is named as gone elsewhere. Where the driver counts
// its GPUs anew they keep their troubles under their new numbers. A value: no clock, no I/O. Thread rule: one thread.
class NvlinkHealth {
 public:
  // What was published before this agent started: how many links each GPU should have up, and the sentences of
  // the condition NvlinkHealthy while it was False, which stay until a quiet time has passed, and with them what was
  // counted on of the links. Before the first Look.
  void Restore(const topology::Node& published, std::vector<std::string> faults);

  // Returns what began or ended.
  std::vector<NvlinkChange> Look(const GpuReadings& readings, base::MonotonicTime now, base::WallTime wall);

  // With evidence and time, by GPU; empty = nothing against any link. They stay as they are while a fault goes on,
  // until it is twice as bad.
  std::vector<std::string> Faults() const;
  // The same for the bandwidth that placement counts on, by GPU; it changes with the sentences and not between them.
  // GPUs that are listed no more are left out. Another clique is no doubt about a link: it is another domain.
  std::vector<NvlinkDoubt> Doubts() const;
  // Whether there is anything to judge: some GPU has, or had, an NVLink up.
  bool Judges() const { return expected_ > 0; }
  // The most links that a GPU of this node had up since the start, or before it as published; 0 = none.
  int ExpectedLinks() const { return expected_; }

 private:
  enum class Kind : std::uint8_t {
    kWidth,
    kReplays,
    kRecoveries,
    kFailedRecoveries,
    kCrc,
    kReceive,
    kMalformed,
    kOverruns,
    kIntegrity,
    kClique
  };
  struct Trouble {
    int gpu = 0;  // its index, as it was listed last
    std::optional<base::MonotonicTime> quiet_since, unlisted_since;
    std::uint64_t count = 0, reported = 0;
    std::set<int> links, reported_links;
    base::WallTime since;
    std::string what;  // "has 17 of 18 NVLinks up, since …"
    std::string Sentence() const;
  };
  struct Published {  // before this agent started
    std::string sentence;
    std::optional<base::MonotonicTime> quiet_since;
  };
  struct Counted {  // before this agent started
    int gbps = 0;
    std::optional<int> gpu;  // its index, as it is listed now
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
  std::map<std::string, Gpu> gpus_;                           // by UUID, else address
  std::map<std::pair<std::string, Kind>, Trouble> troubles_;  // by GPU as gpus_
  std::vector<Published> faults_;                             // in the order in which they were published
  // By GPU as gpus_: those that were counted for less than all; none once faults_ is empty.
  std::map<std::string, Counted> published_less_;
};

}  // namespace heddle::nodeagent
