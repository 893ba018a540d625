#include "cli/doctor.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "cli/advice.h"
#include "cli/doctor_parts.h"

namespace heddle::cli {
namespace {

using crds::Json;

std::size_t CountOf(const Findings& findings, Verdict verdict) {
  return std::size_t(std::count_if(findings.begin(), findings.end(),
                                   [verdict](const Finding& one) { return one.verdict == verdict; }));
}

std::string Sum(const Findings& findings) {
  const std::size_t problems = CountOf(findings, Verdict::kProblem);
  const std::size_t warnings = CountOf(findings, Verdict::kWarning);
  const std::size_t unknown = CountOf(findings, Verdict::kUnknown);
  std::string text = problems > 0   ? base::Counted(problems, "problem")
                     : unknown == 0 ? "Heddle is whole"
                                    : "No problem was found";
  if (warnings > 0) text += ", " + base::Counted(warnings, "warning");
  if (unknown > 0) text += fmt::format(", {} could not be looked at", unknown);
  return text + fmt::format(" ({}).", base::Counted(findings.size(), "check"));
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kProblem:
      return "problem";
    case Verdict::kUnknown:
      break;
  }
  return "unknown";
}

Finding NotRead(std::string check, std::string_view what, const base::Error& error) {
  if (error.code == base::Code::kForbidden) {
    return {std::move(check), Verdict::kUnknown, fmt::format("you may not {}", what),
            "ask somebody who may; it says: " + error.message};
  }
  return {std::move(check), Verdict::kUnknown, fmt::format("it was not possible to {}", what), error.message};
}

Findings Diagnose(const DoctorReading& reading) {
  const Installation installed = InstallationOf(reading);
  Findings findings;
  CheckServer(reading, installed, findings);
  CheckCrds(reading, findings);
  CheckInstalls(reading, findings);
  CheckPolicies(reading, installed, findings);
  CheckScope(reading, installed, findings);
  CheckDeployments(reading, installed, findings);
  CheckLeases(reading, installed, findings);
  CheckAgents(reading, findings);
  CheckVersions(reading, findings);
  CheckRights(reading, installed, findings);
  CheckPods(reading, installed, findings);
  CheckStranded(reading, installed, findings);
  CheckNeighbours(reading, findings);
  return findings;
}

crds::Json DoctorJson(const Findings& findings) {
  Json items = Json::array();
  for (const Finding& one : findings) {
    items.push_back({{"check", one.check},
                     {"verdict", VerdictName(one.verdict)},
                     {"what", one.what},
                     {"do", one.remedy}});
  }
  return {{"items", std::move(items)},
          {"problems", CountOf(findings, Verdict::kProblem)},
          {"warnings", CountOf(findings, Verdict::kWarning)},
          {"unknown", CountOf(findings, Verdict::kUnknown)}};
}

std::string DoctorText(const Findings& findings, const Style& style) {
  std::vector<AdviceRow> rows;
  for (const Finding& one : findings) {
    const Colour colour = one.verdict == Verdict::kProblem ? Colour::kBad
                          : one.verdict == Verdict::kOk    ? Colour::kGood
                                                           : Colour::kNone;
    rows.push_back({{Cell(std::string(VerdictName(one.verdict)), colour), Cell(one.check)},
                    one.remedy.empty() ? one.what : one.what + " — " + one.remedy});
  }
  return AdviceText({"VERDICT", "CHECK", "WHAT — WHAT TO DO"}, rows, style) + "\n" + Sum(findings) + "\n";
}

}  // namespace heddle::cli
