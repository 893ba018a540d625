#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/sim/checks.h"

namespace heddle::sim {

class World;

struct RunOptions {
  std::uint64_t seed = 1;
  std::uint64_t most_steps = 0;                        // 0 = to the end
  std::function<void(const std::string& line)> trace;  // every line of what happens; empty = nobody reads it
  std::function<void(World& world)> sabotage;          // breaks the world first, so that a check has to fire
};

struct Outcome {
  std::uint64_t seed = 0;
  std::vector<Violation> violations;
  std::uint64_t trace_hash = 0;  // equal for equal runs
  std::uint64_t steps = 0;
  std::chrono::seconds virtual_time{0};
  int jobs = 0, kills = 0;
  std::uint64_t requests = 0;
};

// One life of a cluster: minutes of storm in which Jobs come and go and things break as the seed says; then calm, until
// everything that can run has run; then nothing must be left over. Same seed, same run.
Outcome RunSeed(const RunOptions& options);

}  // namespace heddle::sim
