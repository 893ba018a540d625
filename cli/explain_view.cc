#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/counted.h"
#include "cli/advice.h"
#include "cli/explain.h"
#include "cli/quality_view.h"

namespace heddle::cli {
namespace {

std::string GangText(const crds::Gang& gang, const Style& style) {
  const std::string summary = crds::Summarise(gang.spec, gang.status);
  return fmt::format(
      "Gang {}  {}\n", gang.name,
      style.Paint(WithoutControls(summary), gang.status.reason.empty() ? Colour::kGood : Colour::kBad));
}

std::string GpuText(const std::vector<int>& gpus) {
  return fmt::format("{}", fmt::join(gpus, ","));
}

// Nodes in the order of their first rank, with the pods on each.
std::string PodTable(const Explanation& explanation, const Style& style) {
  Table table({"POD", "NODE", "GPUS"});
  for (const ExplainedPod& pod : explanation.pods) {
    table.Add({pod.name,
               pod.node,
               {GpuText(pod.gpus), pod.source == GpuSource::kAssumed ? Colour::kFaint : Colour::kNone}});
  }
  return table.Format(style);
}

// Pods that were given other GPUs than planned; empty = none is known to be.
std::string OtherGpusText(const Explanation& explanation) {
  const ExplainedPod* first = nullptr;
  int differ = 0;
  for (const ExplainedPod& pod : explanation.pods) {
    const bool compared = pod.source == GpuSource::kGranted && pod.planned.size() == pod.gpus.size();
    if (!compared || pod.planned == pod.gpus) continue;
    if (differ++ == 0) first = &pod;
  }
  if (first == nullptr) return {};
  return fmt::format(
      "{} of {} pods got other GPUs than planned: {} holds {} where its plan says {} "
      "(docs/devices.md, \"Following the plan\").\n",
      differ, explanation.pods.size(), WithoutControls(first->name), GpuText(first->gpus),
      GpuText(first->planned));
}

std::string SourceText(const Explanation& explanation) {
  std::map<GpuSource, int> count;
  for (const ExplainedPod& pod : explanation.pods) ++count[pod.source];
  if (count[GpuSource::kAssumed] > 0) {
    return fmt::format(
        "GPU indexes of {} pods are assumed: nobody says which they got, so each is taken to hold the "
        "lowest free ones of its node, in the order of pod index.\n",
        count[GpuSource::kAssumed]);
  }
  if (count[GpuSource::kAnnotated] > 0) return "GPU indexes are as planned (heddle.dev/gpus).\n";
  return "GPU indexes are as the kubelet granted them.\n";
}

Json GangJson(const crds::Gang& gang) {
  return {{"name", gang.name},
          {"state", crds::Summarise(gang.spec, gang.status)},
          {"reason", gang.status.reason},
          {"message", gang.status.message},
          {"explanation", gang.status.explanation}};
}

}  // namespace

std::string ExplanationText(const Explanation& explanation, const Style& style) {
  std::size_t gpus = 0;
  std::set<std::string> nodes;
  for (const ExplainedPod& pod : explanation.pods) {
    gpus += pod.gpus.size();
    nodes.insert(pod.node);
  }
  std::string text =
      fmt::format("{} {}: {}", WithoutControls(explanation.kind), WithoutControls(explanation.name),
                  base::Counted(explanation.pods_wanted, "pod"));
  if (!explanation.pods.empty()) {
    text += fmt::format(", {} on {} of fabric {}", base::Counted(gpus, "GPU"),
                        base::Counted(nodes.size(), "node"), WithoutControls(explanation.fabric));
  }
  text += fmt::format(", {}\n", ParallelismText(explanation.parallelism));
  if (explanation.gang) text += GangText(*explanation.gang, style);
  if (explanation.quality) {
    text += "\nWhy here\n" + QualityText(explanation.parallelism, *explanation.quality, style);
    if (explanation.gang && !explanation.gang->status.explanation.empty()) text += "\n";
    if (explanation.gang) {
      for (const std::string& sentence : explanation.gang->status.explanation)
        text += "  " + WithoutControls(sentence) + "\n";
    }
    text += "\n" + SourceText(explanation) + OtherGpusText(explanation);
  } else {
    text += "\n" + WithoutControls(explanation.why_no_quality) + ".\n";
  }
  if (explanation.waiting) text += "\n" + WaitingText(*explanation.waiting, style);
  if (explanation.remedies) text += "\n" + RemediesText(*explanation.remedies, style);
  if (!explanation.pods.empty()) text += "\n" + PodTable(explanation, style);
  for (const std::string& note : explanation.notes) text += "\nNote: " + WithoutControls(note) + "\n";
  return ProseText(text, style);
}

Json ExplanationJson(const Explanation& explanation) {
  Json json =
      explanation.quality ? QualityJson(explanation.parallelism, *explanation.quality) : Json::object();
  json["kind"] = explanation.kind;
  json["name"] = explanation.name;
  if (explanation.kind == "Job") json["job"] = explanation.name;
  json["parallelism"] = ParallelismText(explanation.parallelism);
  json["fabric"] = explanation.fabric;
  json["podsWanted"] = explanation.pods_wanted;
  json["assumedGpus"] = explanation.assumed_gpus();
  json["pods"] = Json::array();
  for (const ExplainedPod& pod : explanation.pods) {
    json["pods"].push_back(
        {{"name", pod.name}, {"index", pod.index}, {"node", pod.node}, {"gpus", pod.gpus}});
  }
  if (explanation.gang) json["gang"] = GangJson(*explanation.gang);
  if (explanation.waiting) json["waiting"] = WaitingJson(*explanation.waiting);
  if (explanation.remedies) json["wouldHelp"] = RemediesJson(*explanation.remedies);
  if (!explanation.quality) json["whyNot"] = explanation.why_no_quality;
  if (!explanation.notes.empty()) json["notes"] = explanation.notes;
  return json;
}

}  // namespace heddle::cli
