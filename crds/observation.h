#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "crds/gang.h"

namespace heddle::crds {

// Whether mode observe has priced it. One that is observed and has no price waits for no plan of Heddle's: its pods
// run, or wait for their own scheduler, whatever Heddle would have said to them.
bool WasPriced(const GangStatus& status);

// Observed gangs in one sum. Those that Heddle would have made wait are only counted: they have no second half
// to compare with.
struct ObservedTotals {
  struct Side {
    std::int64_t dp_edges = 0;      // that leave NVLink
    std::int64_t dp_crossings = 0;  // of these, between two leaves
    std::int64_t step_micros = 0;   // predicted communication
    friend bool operator==(const Side&, const Side&) = default;
  };
  int jobs = 0;     // that can be compared
  int waiting = 0;  // that cannot
  Side cluster, heddle;
  friend bool operator==(const ObservedTotals&, const ObservedTotals&) = default;
};
ObservedTotals SumObserved(const std::vector<Gang>& gangs);

// "last 20 jobs: 31 % of DP edges crossed leaves; Heddle: 4 %; predicted step 14 % shorter"
std::string ObservedLine(const ObservedTotals& totals);

// The same of one gang, "predicted communication 2526.0 ms a step where its pods are, 1302.0 ms (48 % less) where
// Heddle would have put them; …". Empty where it was not observed.
std::string ObservedSentence(const GangStatus& status);

// By how much the second is less than the first, in whole per cent; negative where it is more.
std::int64_t PercentLess(std::int64_t first, std::int64_t second);

}  // namespace heddle::crds
