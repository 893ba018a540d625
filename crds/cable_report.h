#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lossless/cable_compare.h"

namespace heddle::crds {

// Which cables placement counts on, of ports that a LosslessPolicy selects and whose switch is asked.
enum class CountedCables : std::uint8_t {
  kAll,               // what the comparison says is told, and used for nothing
  kPreferLossless,    // a cable whose ends contradict counts half, so it is used where nothing else is free
  kNotContradicting,  // it does not count
  kLosslessOnly,      // nor does one of which nobody can prove it
};
std::string_view CountedCablesName(CountedCables counted);  // "All", "PreferLossless", …
std::optional<CountedCables> ParseCountedCables(std::string_view name);
// 0 to 100. Half is what a link with errors counts, too (nodeagent/health).
int CountedPercent(CountedCables counted, lossless::LosslessVerdict verdict);

// What the comparison of both ends says of a node's cables: the operator writes it into NodeTopology.spec.cables. Ports
// ("mlx5_0:1") of which the same is true share an entry.
struct CableReport {
  std::vector<std::string> ports;  // sorted
  lossless::LosslessVerdict verdict = lossless::LosslessVerdict::kUnproved;
  int counted_percent = 100;  // of the bandwidth, that placement counts on
  std::string message;        // with the values of both ends, a sentence; empty where lossless
  friend bool operator==(const CableReport&, const CableReport&) = default;
};

// Of cables that end on hosts; the last three sum to the first.
struct CableCounts {
  int cables = 0;
  int lossless = 0;
  int contradicting = 0;
  int unproved = 0;
  void Add(lossless::LosslessVerdict verdict);
  friend bool operator==(const CableCounts&, const CableCounts&) = default;
};

}  // namespace heddle::crds
