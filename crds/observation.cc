#include "crds/observation.h"

#include <fmt/format.h>

#include <cmath>

#include "base/counted.h"

namespace heddle::crds {
namespace {

constexpr auto kDp = std::size_t(placement::Axis::kDp);

std::int64_t Percent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : std::llround(100.0 * double(part) / double(whole));
}

void Add(const placement::Quality& quality, ObservedTotals::Side& side) {
  side.dp_edges += quality.edges[kDp];
  side.dp_crossings += quality.leaf_crossings[kDp];
  side.step_micros += quality.step_micros;
}

std::string Milliseconds(std::int64_t micros) {
  return fmt::format("{:.1f} ms", double(micros) / 1000);
}

std::string Shorter(std::int64_t first, std::int64_t second) {
  const std::int64_t less = PercentLess(first, second);
  return less < 0 ? fmt::format("{} % longer", -less) : fmt::format("{} % shorter", less);
}

}  // namespace

std::int64_t PercentLess(std::int64_t first, std::int64_t second) {
  return first == 0 ? 0 : std::llround(100.0 * double(first - second) / double(first));
}

bool WasPriced(const GangStatus& status) {
  return status.observed && status.predicted;
}

ObservedTotals SumObserved(const std::vector<Gang>& gangs) {
  ObservedTotals totals;
  for (const Gang& gang : gangs) {
    const GangStatus& status = gang.status;
    if (!WasPriced(status)) continue;
    if (!status.observed->heddle) {
      ++totals.waiting;
      continue;
    }
    ++totals.jobs;
    Add(*status.predicted, totals.cluster);
    Add(*status.observed->heddle, totals.heddle);
  }
  return totals;
}

std::string ObservedLine(const ObservedTotals& totals) {
  std::string line = totals.jobs + totals.waiting == 0 ? "no job was observed yet" : "last ";
  if (totals.jobs > 0) {
    line += fmt::format("{}: {} % of DP edges crossed leaves; Heddle: {} %; predicted step {}",
                        base::Counted(totals.jobs, "job"),
                        Percent(totals.cluster.dp_crossings, totals.cluster.dp_edges),
                        Percent(totals.heddle.dp_crossings, totals.heddle.dp_edges),
                        Shorter(totals.cluster.step_micros, totals.heddle.step_micros));
  }
  if (totals.waiting > 0) {
    line += fmt::format("{}{} would have waited for a better place", totals.jobs > 0 ? "; " : "",
                        base::Counted(totals.waiting, "job"));
  }
  return line;
}

std::string ObservedSentence(const GangStatus& status) {
  if (!WasPriced(status)) return "";
  const placement::Quality& actual = *status.predicted;
  std::string text =
      fmt::format("predicted communication {} a step where its pods are", Milliseconds(actual.step_micros));
  if (!status.observed->heddle) {
    return text + fmt::format("; Heddle would have made it wait: {}", status.observed->refusal);
  }
  const placement::Quality& heddle = *status.observed->heddle;
  text += fmt::format(
      ", {} ({}) where Heddle would have put them; DP edges across leaves {} of {}, and {} of {}",
      Milliseconds(heddle.step_micros), Shorter(actual.step_micros, heddle.step_micros),
      actual.leaf_crossings[kDp], actual.edges[kDp], heddle.leaf_crossings[kDp], heddle.edges[kDp]);
  if (status.observed->assumed_parallelism) {
    text +=
        "; tp within a pod and dp over the pods are assumed, since no heddle.dev/parallelism says otherwise";
  }
  return text;
}

}  // namespace heddle::crds
