#include "cli/quality_view.h"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace heddle::cli {
namespace {

using placement::Axis;

constexpr std::array kAxes{Axis::kTp, Axis::kCp, Axis::kEp, Axis::kDp, Axis::kFsdp, Axis::kPp};

std::vector<Axis> AxesOf(const placement::Parallelism& parallelism) {
  std::vector<Axis> axes;
  for (const Axis axis : kAxes) {
    if (parallelism.size(axis) > 1 || axis == Axis::kDp || axis == Axis::kPp) axes.push_back(axis);
  }
  return axes;
}

std::string Milliseconds(std::int64_t micros) {
  return fmt::format("{:.3f}", static_cast<double>(micros) / 1000);
}

Colour Judge(bool good) {
  return good ? Colour::kGood : Colour::kBad;
}

}  // namespace

std::string ParallelismText(const placement::Parallelism& parallelism) {
  std::string text = fmt::format("tp={},pp={},dp={}", parallelism.tp, parallelism.pp, parallelism.dp);
  if (parallelism.cp > 1) text += fmt::format(",cp={}", parallelism.cp);
  if (parallelism.ep > 1) text += fmt::format(",ep={}", parallelism.ep);
  if (parallelism.etp > 0) text += fmt::format(",etp={}", parallelism.etp);
  if (parallelism.fsdp > 0) text += fmt::format(",fsdp={}", parallelism.fsdp);
  return text;
}

Json QualityJson(const placement::Parallelism& parallelism, const placement::Quality& quality) {
  Json crossings = Json::object();
  Json edges = Json::object();
  Json micros = Json::object();
  for (const Axis axis : AxesOf(parallelism)) {
    const std::string name(placement::AxisName(axis));
    const auto at = static_cast<std::size_t>(axis);
    crossings[name] = quality.leaf_crossings.at(at);
    edges[name] = quality.edges.at(at);
    micros[name] = quality.axis_micros.at(at);
  }
  return {{"tpGroups", quality.tp_groups},
          {"tpGroupsInDomain", quality.tp_groups_in_domain},
          {"leafCrossings", std::move(crossings)},
          {"edges", std::move(edges)},
          {"railMisaligned", quality.rail_misaligned},
          {"stepMicros", quality.step_micros},
          {"axisMicros", std::move(micros)}};
}

std::string QualityText(const placement::Parallelism& parallelism, const placement::Quality& quality,
                        const Style& style) {
  Table table({"AXIS", "SIZE", "LEAF CROSSINGS", "MS PER STEP"});
  for (const Axis axis : AxesOf(parallelism)) {
    const auto at = static_cast<std::size_t>(axis);
    const std::int64_t crossings = quality.leaf_crossings.at(at);
    table.Add({std::string(placement::AxisName(axis)),
               std::to_string(parallelism.size(axis)),
               {fmt::format("{}/{}", crossings, quality.edges.at(at)), Judge(crossings == 0)},
               Milliseconds(quality.axis_micros.at(at))});
  }
  const std::string groups = fmt::format("{}/{}", quality.tp_groups_in_domain, quality.tp_groups);
  return table.Format(style) +
         fmt::format(
             "\nTP groups inside one NVLink domain  {}\nRail-misaligned pairs               {}\n"
             "Predicted communication             {} ms per step\n",
             style.Paint(groups, Judge(quality.tp_groups_in_domain == quality.tp_groups)),
             style.Paint(std::to_string(quality.rail_misaligned), Judge(quality.rail_misaligned == 0)),
             Milliseconds(quality.step_micros));
}

}  // namespace heddle::cli
