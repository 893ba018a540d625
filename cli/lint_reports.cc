#include "cli/lint_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "lossless/render.h"

namespace heddle::cli {

bool GenerationsDiffer(std::int64_t one, std::int64_t other) {
  return one != 0 && other != 0 && one != other;
}

void OutdatedReports::Add(const std::string& policy, Speaks speaks, const std::string& first,
                          std::size_t count) {
  Alike& alike = alike_[{policy, speaks}];
  if (alike.count == 0) alike.first = first;
  alike.count += count;
}

void OutdatedReports::AppendNotes(std::vector<std::string>& notes) const {
  for (const auto& [what, alike] : alike_) {
    const auto& [policy, speaks] = what;
    const std::string more = alike.count > 1 ? fmt::format(" and {} more", alike.count - 1) : "";
    notes.push_back(
        speaks == Speaks::kOfEarlier
            ? fmt::format("{}{}: what is reported is of an earlier version of {} {}: whether this one "
                          "is in force there is not known until agents report of it",
                          alike.first, more, kind_, policy)
            : fmt::format("{}{}: what is reported is of {} {}, which is not told there any more: "
                          "whether what is told is in force there is not known until agents report of it",
                          alike.first, more, kind_, policy));
  }
}

ReportLint::ReportLint(const std::vector<LintPolicy>& policies, const std::vector<LintPort>& ports) {
  for (const LintPolicy& policy : policies) policies_[policy.name] = &policy;
  for (const LintPort& port : ports) ports_[port.name] = &port;
}

std::vector<lossless::Finding> ReportLint::Look(std::vector<LintReport> reports,
                                                std::vector<std::string>& notes) const {
  OutdatedReports outdated("LosslessPolicy");
  std::vector<lossless::Finding> findings;
  for (LintReport& report : reports) {
    const Speaks speaks = OfWhat(report);
    if (speaks == Speaks::kOfThis) {
      std::move(report.findings.begin(), report.findings.end(), std::back_inserter(findings));
      continue;
    }
    outdated.Add(report.edition.policy, speaks, report.port, report.ports);
  }
  outdated.AppendNotes(notes);
  return findings;
}

Speaks ReportLint::OfWhat(const LintReport& report) const {
  const auto here = policies_.find(report.edition.policy);
  if (!report.told) {
    // Nothing says what it was told but the number.
    const bool earlier =
        here != policies_.end() && GenerationsDiffer(report.edition.generation, here->second->generation);
    return earlier ? Speaks::kOfEarlier : Speaks::kOfThis;
  }
  const crds::LosslessWish& told = *report.told;
  const bool names =
      std::find(told.policies.begin(), told.policies.end(), report.edition.policy) != told.policies.end();
  if (!names) return Speaks::kOfAnother;
  if (GenerationsDiffer(report.edition.generation, told.generation) || report.edition.uid != told.policy_uid)
    return Speaks::kOfEarlier;
  // Of a port that is told no settings the operator says why, and rules of their own speak of that.
  if (here == policies_.end() || !told.settings) return Speaks::kOfThis;
  // Not by its number: a file that was saved from the cluster and then edited has that of the version before.
  return TellsTheSame(*here->second, report.port, told) ? Speaks::kOfThis : Speaks::kOfEarlier;
}

// As the operator decides whether to write (operator/lossless_rollout.cc, WishOf).
bool ReportLint::TellsTheSame(const LintPolicy& policy, const std::string& port,
                              const crds::LosslessWish& told) const {
  // Of a node that names no such NIC all that is known is that it has settings, as RoCE alone does.
  lossless::PortFacts facts{topology::Transport::kRoce, {}, {}};
  if (const auto known = ports_.find(port); known != ports_.end()) {
    if (!Selects(policy, *known->second)) return false;
    facts = known->second->facts;
  }
  return told.mode == policy.spec.mode && told.on_drift == policy.spec.on_drift &&
         told.settings == lossless::Render(policy.resolved, facts).settings;
}

}  // namespace heddle::cli
