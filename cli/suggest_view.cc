#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "cli/advice.h"
#include "cli/plan_view.h"
#include "cli/quality_view.h"
#include "cli/suggest.h"
#include "placement/axis_report.h"

namespace heddle::cli {
namespace {

using crds::Json;
using placement::Axis;
using placement::Suggestion;

constexpr double kGib = 1 << 30;

double TokensPerSecond(const SuggestAnswer& answer, const Suggestion& one) {
  return double(answer.limits.global_batch) * answer.model.seq / (one.step_micros / 1e6);
}

std::int64_t Crossings(const Suggestion& one) {
  const auto& by_axis = one.plan.quality.leaf_crossings;
  return std::accumulate(by_axis.begin(), by_axis.end(), std::int64_t{0});
}

// Megatron's words: attention alone is computed again, whole layers of each stage, or all of them.
std::string_view RecomputeWord(const Suggestion& one) {
  if (one.schedule.recomputed_layers == 0) return "selective";
  return one.schedule.recomputed_layers == one.layout.stage_layers ? "full" : "block";
}

std::string RecomputeText(const Suggestion& one) {
  const std::string_view word = RecomputeWord(one);
  if (word != "block") return std::string(word);
  return fmt::format("{} of {} layers", one.schedule.recomputed_layers, one.layout.stage_layers);
}

Json OneJson(const SuggestAnswer& answer, const Suggestion& one) {
  const placement::Parallelism& p = one.layout.parallelism;
  Json axes = Json::array();
  for (const Axis axis : placement::kReportedAxes) {
    const double micros = one.axis_micros[std::size_t(axis)];
    if (p.size(axis) > 1) {
      axes.push_back({{"axis", placement::AxisName(axis)}, {"milliseconds", micros / 1000}});
    }
  }
  return {{"parallelism", {{"tp", p.tp}, {"cp", p.cp}, {"pp", p.pp}, {"dp", p.dp}}},
          {"microbatches", one.layout.microbatches},
          {"recompute", RecomputeWord(one)},
          {"recomputedLayers", one.schedule.recomputed_layers},
          {"milliseconds", one.step_micros / 1000},
          {"virtualStages", one.schedule.virtual_stages},
          {"computeMilliseconds", one.schedule.compute_micros / 1000},
          {"fixedMilliseconds", one.schedule.fixed_micros / 1000},
          {"bubbleMilliseconds", one.bubble_micros / 1000},
          {"communicationMilliseconds", one.communication_micros / 1000},
          {"axes", std::move(axes)},
          {"memoryGib", one.schedule.memory_bytes / kGib},
          {"leafCrossings", Crossings(one)},
          {"tokensPerSecond", TokensPerSecond(answer, one)}};
}

// What left layouts out, the most frequent rule of each kind in the words of the options.
std::vector<std::pair<std::string, std::int64_t>> LeftOut(const placement::LayoutCounts& counts) {
  return {{"domain", counts.domain},     {"heads", counts.heads}, {"layers", counts.layers},
          {"sequence", counts.sequence}, {"batch", counts.batch}, {"experts", counts.experts},
          {"memory", counts.memory}};
}

std::string NothingLegal(const SuggestAnswer& answer) {
  // What fell last was the nearest to being legal.
  std::string advice = "change the number of GPUs";
  if (answer.counts.batch > 0)
    advice = fmt::format("change the global batch of {}, or the number of GPUs", answer.limits.global_batch);
  if (answer.counts.memory > 0) advice = "take more GPUs, or shorter or smaller microbatches";
  return fmt::format("none of the {} ways to write {} as tp*cp*pp*dp is legal for this model: {}",
                     answer.counts.all, answer.limits.world, advice);
}

placement::Refusal RefusalOf(const SuggestAnswer& answer) {
  if (answer.counts.legal > 0) return answer.found.refusal;
  placement::Refusal refusal;
  refusal.reason = placement::RefusalReason::kBadRequest;
  refusal.sentence = NothingLegal(answer);
  return refusal;
}

std::vector<Cell> Row(const SuggestAnswer& answer, const Suggestion& one, std::string name,
                      const std::set<Axis>& shown) {
  const placement::Parallelism& p = one.layout.parallelism;
  const auto ms = [](double micros) { return fmt::format("{:.1f}", micros / 1000); };
  std::vector<Cell> row{std::move(name),
                        std::to_string(p.tp),
                        std::to_string(p.cp),
                        std::to_string(p.pp),
                        std::to_string(p.dp),
                        std::to_string(one.schedule.virtual_stages),
                        ms(one.step_micros),
                        ms(one.schedule.compute_micros),
                        ms(one.schedule.fixed_micros),
                        ms(one.bubble_micros)};
  for (const Axis axis : shown) row.emplace_back(ms(one.axis_micros[std::size_t(axis)]));
  const std::int64_t crossings = Crossings(one);
  row.emplace_back(std::to_string(crossings), crossings == 0 ? Colour::kGood : Colour::kBad);
  row.emplace_back(fmt::format("{:.1f}", one.schedule.memory_bytes / kGib));
  row.emplace_back(RecomputeText(one));
  row.emplace_back(fmt::format("{:.0f}", TokensPerSecond(answer, one)));
  return row;
}

// "TP MS"
std::string Column(Axis axis) {
  std::string name(placement::AxisName(axis));
  for (char& c : name) c = char(c - 'a' + 'A');
  return name + " MS";
}

std::string TableText(const SuggestAnswer& answer, const Style& style) {
  std::set<Axis> shown;
  const auto look = [&](const Suggestion& one) {
    for (const Axis axis : placement::kReportedAxes) {
      if (one.axis_micros[std::size_t(axis)] > 0) shown.insert(axis);
    }
  };
  for (const Suggestion& one : answer.found.fastest) look(one);
  if (answer.given) look(*answer.given);
  std::vector<std::string> header{"RANK", "TP",      "CP",      "PP",    "DP",
                                  "VP",   "STEP MS", "COMPUTE", "FIXED", "BUBBLE"};
  for (const Axis axis : shown) {
    header.push_back(Column(axis));
  }
  for (const char* word : {"LEAF CROSSINGS", "GIB", "RECOMPUTE", "TOKENS/S"}) header.emplace_back(word);
  // What the step's time is made of, and what is computed again.
  std::vector<std::size_t> below;
  for (std::size_t c = 7; c < header.size(); ++c) {
    if (c < 10 + shown.size() || header[c] == "RECOMPUTE") below.push_back(c);
  }
  std::vector<std::vector<Cell>> rows;
  int rank = 0;
  for (const Suggestion& one : answer.found.fastest)
    rows.push_back(Row(answer, one, std::to_string(++rank), shown));
  if (answer.given) rows.push_back(Row(answer, *answer.given, "given", shown));
  return ColumnsText(header, rows, below, style);
}

// What makes the given layout slower than the first, the two largest parts of it.
std::string GivenText(const SuggestAnswer& answer) {
  if (!answer.given) return "The layout that was given is not legal here, or has no place.\n";
  const Suggestion &given = *answer.given, &first = answer.found.fastest.front();
  if (given.layout.parallelism == first.layout.parallelism)
    return "The layout that was given is the fastest.\n";
  std::vector<std::pair<double, std::string>> more{
      {given.schedule.compute_micros - first.schedule.compute_micros, "COMPUTE"},
      {given.schedule.fixed_micros - first.schedule.fixed_micros, "FIXED"},
      {given.bubble_micros - first.bubble_micros, "BUBBLE"}};
  for (const Axis axis : placement::kReportedAxes)
    more.emplace_back(given.axis_micros[std::size_t(axis)] - first.axis_micros[std::size_t(axis)],
                      Column(axis));
  std::stable_sort(more.begin(), more.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> words;
  for (const auto& [micros, name] : more) {
    if (words.size() < 2 && micros > 0) words.push_back(fmt::format("{} +{:.1f}", name, micros / 1000));
  }
  return fmt::format("The layout that was given takes {:.1f} % longer than the first: {}\n",
                     (given.step_micros / first.step_micros - 1) * 100, fmt::join(words, ", "));
}

std::string CountsText(const SuggestAnswer& answer) {
  const placement::LayoutCounts& counts = answer.counts;
  const std::pair<std::int64_t, std::string> reasons[] = {
      {counts.domain,
       fmt::format("TP group larger than an NVLink domain ({} GPUs)", answer.limits.largest_domain)},
      {counts.heads,
       answer.model.heads > 0
           ? fmt::format("tp does not divide heads={}", answer.model.heads)
           : fmt::format("tp does not divide the heads (hidden={}, heads of 128)", answer.model.hidden)},
      {counts.layers, fmt::format("pp divides neither layers={} nor 2 more", answer.model.layers)},
      {counts.sequence, fmt::format("2*cp does not divide seq={}", answer.model.seq)},
      {counts.batch,
       fmt::format("dp x microbatch={} does not divide the global batch", answer.model.microbatch)},
      {counts.experts, "ep, etp or fsdp do not divide the rest"},
      {counts.memory, fmt::format("more than {} % of {} GiB, even with full recompute",
                                  placement::kUsableMemoryPercent, answer.limits.gpu_memory_gib)}};
  std::string out = fmt::format("{} ways to write {} as tp*cp*pp*dp, {} of them legal\n", counts.all,
                                answer.limits.world, counts.legal);
  for (const auto& [count, why] : reasons) {
    if (count > 0) out += fmt::format("  {:>6} left out: {}\n", count, why);
  }
  out += fmt::format("  {:>6} placed and priced, {} of them refused\n", answer.found.priced,
                     answer.found.unplaced);
  if (answer.found.skipped > 0) {
    out += fmt::format(
        "  {:>6} not priced: their computing and waiting alone takes longer than the last in the table\n",
        answer.found.skipped);
  }
  return out;
}

std::string AssumptionsText(const SuggestAnswer& answer) {
  // Each sentence is one line here: it is broken where the terminal ends, and nowhere else.
  std::string out = fmt::format(
      "A step is COMPUTE (6 operations a parameter and token, and attention's; a third more of layers that "
      "are computed again), FIXED ({:.1f} ms a layer and microbatch, which tp and cp do not cut), BUBBLE "
      "(the wait of the pipeline over VP interleaved parts of each stage) and the communication of each axis "
      "that nothing hides.\n",
      placement::kLayerMicros / 1000);
  if (answer.model.tflops <= 0 && placement::AchievedTflops(answer.gpu_model) <= 0) {
    out += fmt::format(
        "Nobody measured {}: {:.0f} TFLOP/s is what an H100 reaches, so trust the order, not the "
        "times.\n",
        answer.gpu_model.empty() ? "these GPUs" : answer.gpu_model, answer.limits.tflops);
  }
  out += answer.limits.gpu_memory_gib > 0
             ? fmt::format("Memory is an estimate; a layout may use {} % of {} GiB.\n",
                           placement::kUsableMemoryPercent, answer.limits.gpu_memory_gib)
             : std::string("No GPU says how much memory it has, so memory left no layout out.\n");
  return out;
}

}  // namespace

Json SuggestJson(const SuggestAnswer& answer) {
  Json suggestions = Json::array();
  for (const Suggestion& one : answer.found.fastest) {
    suggestions.push_back(OneJson(answer, one));
    suggestions.back()["rank"] = suggestions.size();
  }
  Json left_out = Json::object();
  for (const auto& [word, count] : LeftOut(answer.counts)) left_out[word] = count;
  const bool feasible = !answer.found.fastest.empty();
  return {{"feasible", feasible},
          {"fabric", answer.fabric},
          {"world", answer.limits.world},
          {"globalBatch", answer.limits.global_batch},
          {"gpuModel", answer.gpu_model},
          {"tflopsPerGpu", answer.limits.tflops},
          {"gpuMemoryGib", answer.limits.gpu_memory_gib},
          {"suggestions", std::move(suggestions)},
          {"given", answer.given ? OneJson(answer, *answer.given) : Json()},
          {"layouts",
           {{"all", answer.counts.all},
            {"legal", answer.counts.legal},
            {"priced", answer.found.priced},
            {"refused", answer.found.unplaced},
            {"skipped", answer.found.skipped},
            {"leftOut", std::move(left_out)}}},
          {"refusal", feasible ? Json() : RefusalJson(RefusalOf(answer))["refusal"]}};
}

std::string SuggestText(const SuggestAnswer& answer, const Style& style) {
  std::string out = fmt::format(
      "{} GPUs ({}) of {} with {} nodes, {} sequences of {} tokens a step, {:.0f} TFLOP/s per GPU while it "
      "computes\n\n",
      answer.limits.world, answer.gpu_model.empty() ? "unknown" : answer.gpu_model, answer.fabric,
      answer.nodes, answer.limits.global_batch, answer.model.seq, answer.limits.tflops);
  if (answer.found.fastest.empty()) {
    out += RefusalText(RefusalOf(answer), style);
  } else {
    out += TableText(answer, style);
    if (answer.asked_given) out += GivenText(answer);
  }
  return ProseText(out + "\n" + CountsText(answer) + "\n" + AssumptionsText(answer), style);
}

}  // namespace heddle::cli
