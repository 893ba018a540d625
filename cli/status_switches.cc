#include <fmt/format.h>

#include <array>
#include <string_view>

#include "cli/status_parts.h"
#include "kube/object.h"
#include "topology/suspects.h"

namespace heddle::cli {
namespace {

using crds::Json;

struct SymptomWords {
  std::string_view symptom, what;
};
constexpr std::array kSymptomWords{SymptomWords{"Flap", "flaps"}, SymptomWords{"PauseStorm", "pause storm"},
                                   SymptomWords{"Errors", "takes in errors"},
                                   SymptomWords{"Loss", "packets are lost"},
                                   SymptomWords{"Drops", "drops lossless packets"}};

Trouble OfSwitch(const Json& object, const Json& condition) {
  Trouble trouble{.gravity = Gravity::kWarning, .order = kOfSwitches, .kind = "FabricSwitch"};
  trouble.names = {kube::Name(object)};
  trouble.reason = kube::StringAt(condition, {"type"}) + "/" + kube::StringAt(condition, {"reason"});
  trouble.since = ConditionSince(condition);
  trouble.message = kube::StringAt(condition, {"message"});
  return trouble;
}

// Reasons of Rendered that Reachable or Compared has as its own.
bool IsSaidElsewhere(const std::string& reason) {
  return reason == "NotRead" || reason == "Stale" || reason == "NameInDoubt";
}

}  // namespace

std::vector<Trouble> SuspectTroubles(const Objects& fabrics) {
  std::vector<Trouble> troubles;
  for (const Json& fabric : fabrics) {
    const Json* healthy = kube::Condition(fabric, "LinksHealthy");
    for (const Json& suspect : kube::ArrayAt(fabric, {"status", "suspects"})) {
      const std::string symptom = kube::StringAt(suspect, {"symptom"});
      const int gangs = int(kube::IntAt(suspect, {"gangs"}).value_or(0));
      Trouble trouble{
          .order = kOfSuspects, .kind = "Suspect", .reason = "LinksHealthy/" + symptom, .what = symptom};
      for (const SymptomWords& words : kSymptomWords) {
        if (words.symptom == symptom) trouble.what = words.what;
      }
      // NCCL routes around no bad link: whoever crosses it is as slow as it is.
      trouble.gravity = gangs > 0 ? Gravity::kProblem : Gravity::kWarning;
      trouble.names = {kube::StringAt(suspect, {"name"})};
      if (healthy != nullptr) trouble.since = ConditionSince(*healthy);
      trouble.message = kube::StringAt(suspect, {"evidence"});
      // A symptom of a later version is none that says that packets were lost.
      trouble.message +=
          topology::GangsText(gangs, topology::ParseSymptom(symptom).value_or(topology::Symptom::kFlap));
      trouble.remedy = kube::StringAt(suspect, {"next"});
      troubles.push_back(std::move(trouble));
    }
    const Json* lossless = kube::Condition(fabric, "Lossless");
    if (lossless == nullptr || kube::StringAt(*lossless, {"status"}) != "False") continue;
    Trouble trouble = OfSwitch(fabric, *lossless);
    trouble.kind = "Fabric";
    trouble.what = "cables are not lossless";
    trouble.remedy = "kubectl get fabricswitches -o wide; docs/switches.md";
    troubles.push_back(std::move(trouble));
  }
  return troubles;
}

std::vector<Trouble> SwitchTroubles(const Objects& fabric_switches) {
  std::vector<Trouble> troubles;
  for (const Json& object : fabric_switches) {
    const Json* reachable = kube::Condition(object, "Reachable");
    const Json* compared = kube::Condition(object, "Compared");
    const Json* counted = kube::Condition(object, "Counted");
    if (reachable != nullptr && kube::StringAt(*reachable, {"status"}) == "False") {
      troubles.push_back(OfSwitch(object, *reachable));
      troubles.back().what = "does not answer";
      troubles.back().remedy = "see its address, Secrets and certificate; docs/switches.md";
      if (kube::StringAt(*reachable, {"reason"}) == "NotUnderstood") {
        troubles.back().what = "is not understood, and not asked";
        troubles.back().remedy = "correct the field it names, or update the operator";
      }
      continue;
    }
    if (counted != nullptr && kube::StringAt(*counted, {"status"}) == "False") {
      troubles.push_back(OfSwitch(object, *counted));
      troubles.back().what = "is not counted, so that no fault of its links is seen from there";
      troubles.back().remedy = "see what keeps its counters from being read; docs/switches.md";
    }
    if (const Json* marks = kube::Condition(object, "MarksEcn");
        marks != nullptr && kube::StringAt(*marks, {"status"}) == "False") {
      troubles.push_back(OfSwitch(object, *marks));
      troubles.back().what = "does not slow senders down in good time";
      troubles.back().remedy = "kubectl heddle switch render says what it should have; docs/conditions.md";
    }
    if (const Json* rendered = kube::Condition(object, "Rendered");
        rendered != nullptr && kube::StringAt(*rendered, {"status"}) == "False" &&
        !IsSaidElsewhere(kube::StringAt(*rendered, {"reason"}))) {
      troubles.push_back(OfSwitch(object, *rendered));
      troubles.back().what = "has no ConfigMap of what it should have";
      troubles.back().remedy = kube::StringAt(*rendered, {"reason"}) == "Forbidden"
                                   ? "set operator.switches.render=true in the chart's values"
                                   : "its reason and message say why; docs/conditions.md";
    }
    if (compared == nullptr || kube::StringAt(*compared, {"status"}) != "False") continue;
    const std::string reason = kube::StringAt(*compared, {"reason"});
    if (reason != "NameInDoubt" && reason != "NotTold") continue;
    troubles.push_back(OfSwitch(object, *compared));
    if (reason == "NotTold") {
      troubles.back().what = "has nodes that may not be told of their cables";
      troubles.back().remedy = "kubectl heddle doctor names the missing right; else see its message";
      continue;
    }
    troubles.back().what = "is not who it should be";
    troubles.back().remedy = "correct its name, or give each switch a hostname of its own";
  }
  return troubles;
}

}  // namespace heddle::cli
