#include "placement/layouts.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include "base/check.h"
#include "placement/planner.h"
#include "placement/traffic.h"

namespace heddle::placement {
namespace {

// Nearly all models have heads of 128 (GPT-3, Llama 1 to 3, Qwen, Mistral).
constexpr int kHeadSize = 128;

constexpr double kSelectiveBytes = 34;  // per token and hidden element of a layer, before tp and cp
constexpr double kFullBytes = 2;        // only the layer's input

std::vector<int> DivisorsOf(std::int64_t number) {
  std::vector<int> divisors;
  for (std::int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    divisors.push_back(int(d));
    if (d * d != number) divisors.push_back(int(number / d));
  }
  std::sort(divisors.begin(), divisors.end());
  return divisors;
}

// Of the largest stage; 0 = stages cannot be made.
int LayersPerStage(int layers, int pp) {
  if (layers % pp == 0) return layers / pp;
  return (layers + 2) % pp == 0 ? (layers + 2) / pp : 0;
}

// What the first stage of one layout holds.
struct Held {
  double state = 0;    // bytes
  double element = 0;  // of one layer and pass, before it counts its bytes
  int layers = 1;      // of the stage
  double passes = 1;   // in flight

  double Bytes(int recomputed) const {
    const double kept = kSelectiveBytes * (layers - recomputed) + kFullBytes * recomputed;
    return state + (kept * passes + (recomputed > 0 ? kSelectiveBytes : 0)) * element;
  }
  // The fewest layers to compute again so that it fits into `bytes`; none are enough: nothing. 0 bytes = any.
  std::optional<int> LayersToRecompute(double bytes) const {
    if (bytes <= 0 || Bytes(0) <= bytes) return 0;
    if (Bytes(layers) > bytes) return std::nullopt;
    int few = 0, enough = layers;
    while (enough - few > 1) {
      const int middle = few + (enough - few) / 2;
      (Bytes(middle) <= bytes ? enough : few) = middle;
    }
    return enough;
  }
};

class Enumeration {
 public:
  Enumeration(const Parallelism& like, const ModelHints& model, const LayoutLimits& limits)
      : like_(like),
        model_(model),
        limits_(limits),
        heads_(model.heads > 0                 ? model.heads
               : model.hidden % kHeadSize == 0 ? model.hidden / kHeadSize
                                               : model.hidden) {}

  Layouts Run() {
    for (const int tp : DivisorsOf(limits_.world)) {
      for (const int cp : DivisorsOf(limits_.world / tp)) {
        for (const int pp : DivisorsOf(limits_.world / tp / cp)) {
          Parallelism p = like_;
          p.tp = tp;
          p.cp = cp;
          p.pp = pp;
          p.dp = int(limits_.world / tp / cp / pp);
          ++found_.counts.all;
          Look(p);
        }
      }
    }
    found_.counts.legal = std::int64_t(found_.legal.size());
    return std::move(found_);
  }

 private:
  void Look(const Parallelism& p) {
    LayoutCounts& counts = found_.counts;
    const std::int64_t together = std::int64_t(p.dp) * model_.microbatch;  // sequences of one round
    if (p.tp > std::max(1, limits_.largest_domain)) {
      ++counts.domain;
    } else if (heads_ % p.tp != 0) {
      ++counts.heads;
    } else if (LayersPerStage(model_.layers, p.pp) == 0) {
      ++counts.layers;
    } else if (p.cp > 1 && model_.seq % (2 * std::int64_t(p.cp)) != 0) {
      ++counts.sequence;
    } else if (limits_.global_batch % together != 0) {
      ++counts.batch;
    } else if (!WhyNotLaidOut(p).empty()) {
      ++counts.experts;
    } else {
      Keep(p, int(limits_.global_batch / together));
    }
  }

  void Keep(const Parallelism& p, int microbatches) {
    Layout layout{
        .parallelism = p, .microbatches = microbatches, .stage_layers = LayersPerStage(model_.layers, p.pp)};
    const bool interleaves = p.pp > 1 && microbatches % p.pp == 0;
    for (const int parts : DivisorsOf(layout.stage_layers)) {
      if (parts > 1 && (!interleaves || parts > limits_.most_virtual_stages)) break;
      if (const auto schedule = ScheduleOf(layout, parts)) layout.schedules.push_back(*schedule);
      if (layout.schedules.empty()) break;  // others hold more
    }
    if (layout.schedules.empty()) {
      ++found_.counts.memory;
    } else {
      found_.legal.push_back(std::move(layout));
    }
  }

  // Nothing = it does not fit.
  std::optional<Schedule> ScheduleOf(const Layout& layout, int parts) const {
    const Parallelism& p = layout.parallelism;
    const int layers = layout.stage_layers;
    const Held held{
        .state = StateBytesPerGpu(p, model_),
        .element = double(model_.seq) * model_.microbatch * model_.hidden / (double(p.tp) * p.cp),
        .layers = layers,
        .passes = parts == 1 ? std::min(p.pp, layout.microbatches) : p.pp + double(p.pp - 1) / parts};
    const auto again =
        held.LayersToRecompute(double(limits_.gpu_memory_gib) * (1 << 30) * kUsableMemoryPercent / 100);
    if (!again) return std::nullopt;
    Schedule schedule{
        .virtual_stages = parts, .recomputed_layers = *again, .memory_bytes = held.Bytes(*again)};
    const double passes = 1 + double(*again) / layers / 3;
    const double tokens = double(limits_.global_batch) * model_.seq;
    const double work =
        tokens * (6 * ActiveParameters(model_) + 6 * double(model_.layers) * model_.hidden * model_.seq);
    // The largest stage sets the pace.
    const double pace = double(layers) * p.pp / model_.layers;
    schedule.compute_micros = pace * passes * work / (double(limits_.world) * limits_.tflops * 1e12) * 1e6;
    schedule.fixed_micros = passes * kLayerMicros * layers * layout.microbatches;
    schedule.bubble_micros =
        (schedule.compute_micros + schedule.fixed_micros) * (p.pp - 1) / layout.microbatches / parts;
    return schedule;
  }

  const Parallelism& like_;
  const ModelHints& model_;
  const LayoutLimits& limits_;
  const int heads_;
  Layouts found_;
};

Suggestion Timed(const Layout& layout, const Schedule& schedule, const Plan& plan) {
  Suggestion suggestion{.layout = layout, .schedule = schedule};
  auto& axes = suggestion.axis_micros;
  std::copy(plan.quality.axis_micros.begin(), plan.quality.axis_micros.end(), axes.begin());
  const double again = double(schedule.recomputed_layers) / layout.stage_layers;  // of the forward pass
  axes[std::size_t(Axis::kTp)] *= 1 + again / 2;
  axes[std::size_t(Axis::kCp)] *= 1 + again / 3;
  axes[std::size_t(Axis::kPp)] *= schedule.virtual_stages;
  double stage = schedule.compute_micros + schedule.fixed_micros;
  for (const Axis axis : {Axis::kTp, Axis::kCp, Axis::kEp}) stage += axes[std::size_t(axis)];
  suggestion.communication_micros = std::accumulate(axes.begin(), axes.end(), 0.0);
  suggestion.bubble_micros =
      stage * (layout.parallelism.pp - 1) / layout.microbatches / schedule.virtual_stages;
  suggestion.step_micros = schedule.compute_micros + schedule.fixed_micros + suggestion.bubble_micros +
                           suggestion.communication_micros;
  return suggestion;
}

Suggestion Fastest(const Layout& layout, Plan plan) {
  std::optional<Suggestion> best;
  for (const Schedule& schedule : layout.schedules) {
    Suggestion one = Timed(layout, schedule, plan);
    if (!best || one.step_micros < best->step_micros) best = std::move(one);
  }
  best->plan = std::move(plan);
  return *std::move(best);
}

// No step of the layout is shorter, however little it communicates.
double LeastMicros(const Layout& layout) {
  double least = std::numeric_limits<double>::infinity();
  for (const Schedule& one : layout.schedules)
    least = std::min(least, one.compute_micros + one.fixed_micros + one.bubble_micros);
  return least;
}

auto SizesOf(const Layout& layout) {
  return std::tuple(layout.parallelism.tp, layout.parallelism.cp, layout.parallelism.pp);
}

}  // namespace

double AchievedTflops(std::string_view model) {
  // The longer names first: GB200 holds B200, and H200 is not H20.
  constexpr std::pair<std::string_view, double> kKnown[] = {
      {"GB300", 1525}, {"GB200", 1525}, {"B300", 1370}, {"B200", 1370}, {"GH200", 605},
      {"H200", 605},   {"H100", 605},   {"A100", 200},  {"L40S", 221},
  };
  for (const auto& [name, tflops] : kKnown) {
    if (model.find(name) != std::string_view::npos) return tflops;
  }
  return 0;
}

Layouts EnumerateLayouts(const Parallelism& like, const ModelHints& model, const LayoutLimits& limits) {
  CHECK(limits.world >= 1 && limits.world <= kMaxWorld && limits.tflops > 0);
  CHECK(limits.global_batch >= 1 && limits.global_batch <= std::numeric_limits<int>::max());
  CHECK(model.params > 0 && model.layers > 0 && model.hidden > 0 && model.seq > 0 && model.microbatch > 0);
  return Enumeration(like, model, limits).Run();
}

Suggestions FindFastest(ClusterState& state, const GangRequest& request, const Layouts& layouts, int most) {
  CHECK(most >= 1);
  std::vector<const Layout*> order;
  for (const Layout& layout : layouts.legal) order.push_back(&layout);
  std::stable_sort(order.begin(), order.end(),
                   [&](const Layout* a, const Layout* b) { return LeastMicros(*a) < LeastMicros(*b); });
  Suggestions found;
  const auto faster = [](const Suggestion& a, const Suggestion& b) {
    return std::pair(a.step_micros, SizesOf(a.layout)) < std::pair(b.step_micros, SizesOf(b.layout));
  };
  GangRequest trial = request;
  for (const Layout* layout : order) {
    if (int(found.fastest.size()) == most && LeastMicros(*layout) > found.fastest.back().step_micros) {
      ++found.skipped;
      continue;
    }
    trial.parallelism = layout->parallelism;
    trial.model.microbatches = layout->microbatches;
    ++found.priced;
    Decision decision = PlanGang(state, trial);
    if (auto* refusal = std::get_if<Refusal>(&decision)) {
      if (found.unplaced++ == 0) found.refusal = std::move(*refusal);
      continue;
    }
    Suggestion suggestion = Fastest(*layout, std::get<Plan>(std::move(decision)));
    found.fastest.insert(std::upper_bound(found.fastest.begin(), found.fastest.end(), suggestion, faster),
                         suggestion);
    if (int(found.fastest.size()) > most) found.fastest.pop_back();
  }
  return found;
}

}  // namespace heddle::placement
