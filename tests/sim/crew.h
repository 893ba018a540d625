#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/sim/run.h"

namespace heddle::sim {

struct SeedRange {
  std::uint64_t first = 1, last = 1;
};

// What many lives came to.
struct Tally {
  std::uint64_t seeds = 0, broken = 0, jobs = 0, requests = 0, restarts = 0;
  std::uint64_t virtual_seconds = 0;
};

struct CrewOptions {
  int jobs = 1;        // processes; 1 = this one, so that a debugger sees the life
  bool go_on = false;  // after a seed that broke a promise, or ended its process
  std::string again;   // of a seed, as "heddle_sim --trace": what is said of one that is broken
};

// Lives every seed of the range. A process is one life at a time, since its threads take turns; several processes take
// the next seed each when they have done with one, so they end together, and the seeds that are begun are always the
// first ones. What a process says of a seed comes in one piece. A process that ends itself in a seed counts as a broken
// one, and with `go_on` another takes its place. Must be called before any thread is started.
Tally RunSeeds(const SeedRange& range, const CrewOptions& options,
               const std::function<Outcome(std::uint64_t seed)>& live);

}  // namespace heddle::sim
