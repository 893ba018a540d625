#include "bench/quality/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/check.h"

namespace heddle::quality {
namespace {

using Choose = std::function<bool(const Case&)>;
constexpr std::size_t kEach = kPolicies.size();

bool AllPlaced(const std::vector<Case>& cases, std::size_t first) {
  return std::all_of(kPolicies.begin(), kPolicies.end(), [&](Policy policy) {
    const Case& of_policy = cases[first + std::size_t(policy)];
    CHECK(of_policy.policy == policy);
    return of_policy.placed;
  });
}

struct Mean {
  int states = 0, refused = 0;
  Measures sum;
  int worst_dp = 0, worst_pp = 0;
  double dp_spread = 0, pp_spread = 0;
  double log_ratio = 0;  // of its network time to Heddle's
  std::vector<double> micros;

  double Of(double total) const { return states == 0 ? 0 : total / states; }
  double P50() {
    if (micros.empty()) return 0;
    const auto middle = micros.begin() + std::ptrdiff_t(micros.size() / 2);
    std::nth_element(micros.begin(), middle, micros.end());
    return *middle;
  }
};

Mean MeanOf(const std::vector<Case>& cases, Policy policy, const Choose& choose) {
  Mean mean;
  for (std::size_t first = 0; first < cases.size(); first += kEach) {
    const Case& one = cases[first + std::size_t(policy)];
    if (!choose(one)) continue;
    mean.micros.push_back(one.micros);
    mean.refused += one.placed ? 0 : 1;
    if (!AllPlaced(cases, first)) continue;
    const Measures& m = one.measures;
    ++mean.states;
    mean.dp_spread += m.dp_spread;
    mean.pp_spread += m.pp_spread;
    mean.worst_dp = std::max(mean.worst_dp, m.dp_spread);
    mean.worst_pp = std::max(mean.worst_pp, m.pp_spread);
    mean.sum.dp_crossings += m.dp_crossings;
    mean.sum.pp_crossings += m.pp_crossings;
    mean.sum.misaligned += m.misaligned;
    mean.sum.step_ms += m.step_ms;
    mean.sum.network_ms += m.network_ms;
    mean.sum.whole_domains += m.whole_domains;
    mean.sum.whole_units += m.whole_units;
    mean.sum.broken_tp += m.broken_tp;
    mean.log_ratio += std::log(m.network_ms / cases[first].measures.network_ms);
  }
  return mean;
}

template <class Key>
std::set<Key> KeysOf(const std::vector<Case>& cases, const std::function<Key(const Case&)>& key) {
  std::set<Key> keys;
  for (const Case& one : cases) keys.insert(key(one));
  return keys;
}

void PrintNetworkRow(const std::string& name, const std::vector<Case>& cases, const Choose& choose) {
  const Mean heddle = MeanOf(cases, Policy::kHeddle, choose);
  if (heddle.states == 0) return;
  std::string row = fmt::format("| {} | {} | {:.1f}", name, heddle.states, heddle.Of(heddle.sum.network_ms));
  for (const Policy policy : kPolicies) {
    if (policy == Policy::kHeddle) continue;
    const Mean mean = MeanOf(cases, policy, choose);
    row += fmt::format(" | {:.1f} ({:.3f})", mean.Of(mean.sum.network_ms), std::exp(mean.Of(mean.log_ratio)));
  }
  fmt::print("{} |\n", row);
}

}  // namespace

void PrintByGang(const std::vector<Case>& cases) {
  fmt::print(
      "\n| gang | policy | states | refused | units of a DP group: mean (worst) | units of a PP group | "
      "DP crossings | PP crossings | off-rail | network ms | step ms | NVLink domains left whole | units "
      "left whole | "
      "chosen in, p50 |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const int gang : KeysOf<int>(cases, [](const Case& one) { return one.gang; })) {
    for (const Policy policy : kPolicies) {
      Mean mean = MeanOf(cases, policy, [gang](const Case& one) { return one.gang == gang; });
      const Measures& sum = mean.sum;
      fmt::print("| {} | {} | {} | {} | {:.1f} ({}) | {:.1f} ({}) | {:.0f} | {:.0f} | {:.0f} | ", gang,
                 PolicyName(policy), mean.states, mean.refused, mean.Of(mean.dp_spread), mean.worst_dp,
                 mean.Of(mean.pp_spread), mean.worst_pp, mean.Of(sum.dp_crossings), mean.Of(sum.pp_crossings),
                 mean.Of(sum.misaligned));
      fmt::print("{:.1f} | {:.1f} | {:.0f} | {:.1f} | {:.2f} ms |\n", mean.Of(sum.network_ms),
                 mean.Of(sum.step_ms), mean.Of(sum.whole_domains), mean.Of(sum.whole_units),
                 mean.P50() / 1000);
    }
  }
}

void PrintNetworkTime(const std::vector<Case>& cases) {
  fmt::print("\n| | states | Heddle");
  for (const Policy policy : kPolicies) {
    if (policy != Policy::kHeddle) fmt::print(" | {}", PolicyName(policy));
  }
  fmt::print(" |\n|---|---|---|---|---|---|\n");
  for (const int gang : KeysOf<int>(cases, [](const Case& one) { return one.gang; })) {
    for (const int percent :
         KeysOf<int>(cases, [](const Case& one) { return one.shape.oversubscription_percent; })) {
      PrintNetworkRow(fmt::format("{} GPUs, {}:1", gang, percent / 100), cases, [&](const Case& one) {
        return one.gang == gang && one.shape.oversubscription_percent == percent;
      });
    }
  }
  for (const int fill : KeysOf<int>(cases, [](const Case& one) { return one.fill; })) {
    PrintNetworkRow(fmt::format("{} % held", fill), cases, [&](const Case& one) { return one.fill == fill; });
  }
  for (const int nodes : KeysOf<int>(cases, [](const Case& one) { return one.shape.nodes; })) {
    PrintNetworkRow(fmt::format("{} nodes", nodes), cases,
                    [&](const Case& one) { return one.shape.nodes == nodes; });
  }
  PrintNetworkRow("all", cases, [](const Case&) { return true; });
}

void PrintSplitGroups(const std::vector<Case>& cases) {
  fmt::print(
      "\n| gang | policy | states | refused | TP groups over several domains | off-rail | step ms | "
      "units of a DP group: mean (worst) | NVLink domains left whole | chosen in, p50 |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n");
  for (const int gang : KeysOf<int>(cases, [](const Case& one) { return one.gang; })) {
    for (const Policy policy : kPolicies) {
      Mean mean = MeanOf(cases, policy, [gang](const Case& one) { return one.gang == gang; });
      fmt::print(
          "| {} | {} | {} | {} | {:.1f} of {} | {:.0f} | {:.1f} | {:.1f} ({}) | {:.0f} | {:.2f} ms |\n", gang,
          PolicyName(policy), mean.states, mean.refused, mean.Of(mean.sum.broken_tp), gang / 8,
          mean.Of(mean.sum.misaligned), mean.Of(mean.sum.step_ms), mean.Of(mean.dp_spread), mean.worst_dp,
          mean.Of(mean.sum.whole_domains), mean.P50() / 1000);
    }
  }
}

void PrintWhereAPeerIsBetter(const std::vector<Case>& cases) {
  fmt::print(
      "\n| policy | states | predicted faster than Heddle by > 1 % | at most by | there | slower by > 1 % | "
      "at most by "
      "|\n|---|---|---|---|---|---|---|\n");
  for (const Policy policy : kPolicies) {
    if (policy == Policy::kHeddle) continue;
    int states = 0, faster = 0, slower = 0;
    double fastest = 1, slowest = 1;
    const Case* where = nullptr;
    for (std::size_t first = 0; first < cases.size(); first += kEach) {
      if (!AllPlaced(cases, first)) continue;
      ++states;
      const Case& one = cases[first + std::size_t(policy)];
      const double ratio = one.measures.step_ms / cases[first].measures.step_ms;
      faster += ratio < 0.99 ? 1 : 0;
      slower += ratio > 1.01 ? 1 : 0;
      slowest = std::max(slowest, ratio);
      if (ratio < fastest) fastest = ratio, where = &one;
    }
    const std::string there =
        where == nullptr ? ""
                         : fmt::format("{} GPUs, {} nodes in units of {}, {}:1, {} % held, seed {}",
                                       where->gang, where->shape.nodes, where->shape.unit,
                                       where->shape.oversubscription_percent / 100, where->fill, where->seed);
    fmt::print("| {} | {} | {} | {:.1f} % | {} | {} | {:.1f} % |\n", PolicyName(policy), states, faster,
               100 * (1 - fastest), there, slower, 100 * (slowest - 1));
  }
}

}  // namespace heddle::quality
