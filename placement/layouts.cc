#include "placement/layouts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
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
constexpr double kFullRecomputeWork = 4.0 / 3;

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

// `parts` are the virtual stages of one stage.
double MemoryOf(const Parallelism& p, const ModelHints& model, int microbatches, bool full_recompute,
                int parts) {
  const double element = double(model.seq) * model.microbatch * model.hidden / (double(p.tp) * p.cp);
  const double held = parts == 1 ? std::min(p.pp, microbatches) : p.pp + double(p.pp - 1) / parts;
  const double passes = double(LayersPerStage(model.layers, p.pp)) * held;
  const double activations =
      full_recompute ? (kFullBytes * passes + kSelectiveBytes) * element : kSelectiveBytes * passes * element;
  return StateBytesPerGpu(p, model) + activations;
}

class Enumeration {
 public:
  Enumeration(const Parallelism& like, const ModelHints& model, const LayoutLimits& limits)
      : like_(like),
        model_(model),
        limits_(limits),
        heads_(model.hidden % kHeadSize == 0 ? model.hidden / kHeadSize : model.hidden) {}

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
    Layout layout{.parallelism = p, .microbatches = microbatches};
    const double holds = double(limits_.gpu_memory_gib) * (1 << 30) * kUsableMemoryPercent / 100;
    layout.memory_bytes = MemoryOf(p, model_, microbatches, false, 1);
    if (holds > 0 && layout.memory_bytes > holds) {
      layout.full_recompute = true;
      layout.memory_bytes = MemoryOf(p, model_, microbatches, true, 1);
      if (layout.memory_bytes > holds) {
        ++found_.counts.memory;
        return;
      }
    }
    const double again = layout.full_recompute ? kFullRecomputeWork : 1;
    const double tokens = double(limits_.global_batch) * model_.seq;
    const double work = tokens * (6 * model_.params + 6 * double(model_.layers) * model_.hidden * model_.seq);
    // The largest stage sets the pace.
    const int layers = LayersPerStage(model_.layers, p.pp);
    const double pace = double(layers) * p.pp / model_.layers;
    layout.compute_micros = pace * again * work / (double(limits_.world) * limits_.tflops * 1e12) * 1e6;
    layout.fixed_micros = again * kLayerMicros * layers * microbatches;
    layout.bubble_micros = (layout.compute_micros + layout.fixed_micros) * (p.pp - 1) / microbatches;
    if (p.pp > 1 && microbatches % p.pp == 0) {
      for (const int parts : DivisorsOf(layers)) {
        if (parts == 1 || parts > limits_.most_virtual_stages) continue;
        const double memory = MemoryOf(p, model_, microbatches, layout.full_recompute, parts);
        if (holds <= 0 || memory <= holds) layout.interleavings.push_back({parts, memory});
      }
    }
    found_.legal.push_back(std::move(layout));
  }

  const Parallelism& like_;
  const ModelHints& model_;
  const LayoutLimits& limits_;
  const int heads_;
  Layouts found_;
};

Suggestion Timed(const Layout& layout, Plan plan) {
  Suggestion suggestion{.layout = layout, .memory_bytes = layout.memory_bytes};
  auto& axes = suggestion.axis_micros;
  std::copy(plan.quality.axis_micros.begin(), plan.quality.axis_micros.end(), axes.begin());
  suggestion.plan = std::move(plan);
  const double again = layout.full_recompute ? 1 : 0;  // of the forward pass
  axes[std::size_t(Axis::kTp)] *= 1 + again / 2;
  axes[std::size_t(Axis::kCp)] *= 1 + again / 3;
  double stage = layout.compute_micros + layout.fixed_micros;
  for (const Axis axis : {Axis::kTp, Axis::kCp, Axis::kEp}) stage += axes[std::size_t(axis)];
  const double wait = stage * (layout.parallelism.pp - 1) / layout.microbatches;
  double& sends = axes[std::size_t(Axis::kPp)];
  for (const Interleaving& one : layout.interleavings) {
    const int known = suggestion.virtual_stages;
    if (wait / one.virtual_stages + sends * one.virtual_stages >= wait / known + sends * known) continue;
    suggestion.virtual_stages = one.virtual_stages;
    suggestion.memory_bytes = one.memory_bytes;
  }
  sends *= suggestion.virtual_stages;
  suggestion.communication_micros = std::accumulate(axes.begin(), axes.end(), 0.0);
  suggestion.bubble_micros = wait / suggestion.virtual_stages;
  suggestion.step_micros = layout.compute_micros + layout.fixed_micros + suggestion.bubble_micros +
                           suggestion.communication_micros;
  return suggestion;
}

// No step of the layout is shorter, however little it communicates.
double LeastMicros(const Layout& layout) {
  const int parts = layout.interleavings.empty() ? 1 : layout.interleavings.back().virtual_stages;
  return layout.compute_micros + layout.fixed_micros + layout.bubble_micros / parts;
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
  CHECK(limits.world >= 1 && limits.world <= kMaxWorld && limits.global_batch >= 1 && limits.tflops > 0);
  CHECK(model.params > 0 && model.layers > 0 && model.hidden > 0 && model.seq > 0 && model.microbatch > 0);
  return Enumeration(like, model, limits).Run();
}

Suggestions FindFastest(ClusterState& state, const GangRequest& request, const Layouts& layouts, int most) {
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
    Suggestion suggestion = Timed(*layout, std::get<Plan>(std::move(decision)));
    found.fastest.insert(std::upper_bound(found.fastest.begin(), found.fastest.end(), suggestion, faster),
                         suggestion);
    if (int(found.fastest.size()) > most) found.fastest.pop_back();
  }
  return found;
}

}  // namespace heddle::placement
