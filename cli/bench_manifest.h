#pragma once

#include <string>
#include <string_view>

#include "cli/bench_ranks.h"
#include "placement/collective.h"

namespace heddle::cli {

// What --image must hold, as a sentence.
extern const std::string_view kBenchImage;

// "all_reduce_perf"
std::string ProgramOf(placement::Collective collective);

// The MPIJob (v2beta1) that runs it: workers as the gang's pods were, so that Heddle places them alike, or on the nodes
// that were named; the launcher has no GPU and is none of them. Pure.
Json BenchManifest(const BenchOptions& options, const BenchRanks& ranks, placement::Collective collective);

}  // namespace heddle::cli
