#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench_ranks.h"
#include "cli/output.h"
#include "formats/nccl_tests.h"
#include "placement/collective.h"

namespace heddle::cli {

// From here on bandwidth decides; below it software counts that no topology tells (docs/cost-model.md).
inline constexpr std::uint64_t kBenchLarge = 64 << 20;
inline constexpr double kBenchSlow = 0.8;  // of the predicted bandwidth

struct BenchSize {
  std::uint64_t bytes = 0;
  formats::NcclTestTime predicted;
  std::optional<formats::NcclTestTime> measured, in_place;

  // Of measured bandwidth to predicted, by times; nothing where nothing was measured, or took no time.
  std::optional<double> ratio() const;
  bool slow() const;
};

// One collective over the ranks.
struct BenchRun {
  placement::Collective collective = placement::Collective::kAllReduce;
  std::vector<BenchSize> sizes;
  placement::AxisBottleneck bottleneck;  // of the largest size
  bool measured = false;
  bool finished = true;                       // the table has its end
  std::optional<double> wrong;                // elements, of all sizes; nothing = not checked
  std::optional<std::int64_t> out_of_bounds;  // as the run summed it up
};

// What is wrong with what was measured, and what to look at.
struct BenchFinding {
  bool error = true;  // else it is to know
  std::string what;   // "slow", "corrupt", "unfinished", "sockets", "no-gdr", "small", "hosts"
  std::string sentence;
};

// Of all runs and of what NCCL told between them. Pure.
std::vector<BenchFinding> FindingsOf(const BenchRanks& ranks, const std::vector<BenchRun>& runs,
                                     const formats::NcclTestOutput& output);

std::string BenchText(const BenchRanks& ranks, const std::vector<BenchRun>& runs,
                      const std::vector<BenchFinding>& findings, const Style& style);
Json BenchJson(const BenchRanks& ranks, const std::vector<BenchRun>& runs,
               const std::vector<BenchFinding>& findings, const Json& manifest);

}  // namespace heddle::cli
