#include "cli/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/counted.h"
#include "cli/advice.h"
#include "cli/lint_device_reports.h"
#include "cli/lint_file.h"
#include "cli/lint_resolved.h"
#include "lossless/lint.h"

namespace heddle::cli {
namespace {

using lossless::Finding;
using lossless::Severity;

constexpr std::size_t kMaxFiles = 10'000;

struct Looked {
  std::vector<LintFile> files;  // without what is looked at
  std::vector<UnreadFile> unread;
  std::size_t subjects = 0;
  // Files that were read hold nothing for the rules, and are among `unread`, too.
  bool nothing = false;
  std::vector<Finding> findings;
};

std::size_t UnreadPorts(const Looked& looked) {
  std::size_t ports = 0;
  for (const LintFile& file : looked.files) ports += file.unread.size();
  return ports;
}

// NodeTopologies are looked at, whether or not they have lossless ports; a switch whose ports are all shut down is not.
bool LookedAtNothing(const Looked& looked) {
  return !looked.files.empty() && looked.subjects == 0 && UnreadPorts(looked) == 0 &&
         std::all_of(looked.files.begin(), looked.files.end(),
                     [](const LintFile& file) { return file.nodes == 0; });
}

template <class T>
void Append(std::vector<T>&& from, std::vector<T>& to) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
  from.clear();
}

Looked LookAt(const LintOptions& options, const ReadFile& read) {
  Looked looked;
  LintFiles files = ReadLintFiles(options.files, read);
  looked.unread = std::move(files.unread);
  looked.files = std::move(files.read);
  std::vector<lossless::Subject> subjects;
  std::vector<LintPolicy> policies;
  std::vector<LintPort> ports;
  std::vector<LintRefusal> refusals;
  std::vector<crds::RdmaDevicePolicy> device_policies;
  std::vector<LintDeviceNode> device_nodes;
  for (LintFile& file : looked.files) {
    Append(std::move(file.subjects), subjects);
    Append(std::move(file.policies), policies);
    Append(std::move(file.ports), ports);
    Append(std::move(file.refusals), refusals);
    Append(std::move(file.device_policies), device_policies);
  }
  KeepLastVersions(policies, subjects, ports);
  const ReportLint report_lint(policies, ports);
  const DevicePolicyVersions device_versions(device_policies);
  for (LintFile& file : looked.files) {
    Append(report_lint.Look(std::move(file.reports), file.notes), looked.findings);
    NoteOutdatedDeviceReports(device_versions, file.device_nodes, file.notes);
    Append(std::move(file.device_nodes), device_nodes);
    Append(std::move(file.findings), looked.findings);
  }
  looked.subjects = subjects.size() + device_policies.size();
  looked.nothing = LookedAtNothing(looked);
  for (const LintFile& file : looked.files) {
    if (looked.nothing)
      looked.unread.push_back({file.path, file.path + ": it has no port that is to be looked at"});
  }
  Append(lossless::Lint(subjects), looked.findings);
  Append(LintWatchdogs(policies, subjects), looked.findings);
  Append(LintNics(policies, ports), looked.findings);
  Append(LintRefusals(policies, refusals), looked.findings);
  Append(LintDevices(device_versions, device_nodes), looked.findings);
  std::stable_sort(looked.findings.begin(), looked.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
  return looked;
}

std::size_t Count(const std::vector<Finding>& findings, Severity severity) {
  return std::size_t(std::count_if(findings.begin(), findings.end(),
                                   [&](const Finding& finding) { return finding.severity == severity; }));
}

std::string Summary(const Looked& looked) {
  // That nothing was found would be no news of files that nobody could read.
  if (looked.files.empty() || looked.nothing) return "";
  const std::string read =
      fmt::format("{}, {} {} looked at", base::Counted(looked.files.size(), "file"), looked.subjects,
                  looked.subjects == 1 ? "policy or port" : "policies and ports");
  const std::size_t ports = UnreadPorts(looked);
  const std::string unread =
      ports == 0 ? "" : fmt::format("; {} cannot be read", base::Counted(ports, "port"));
  if (looked.findings.empty()) return fmt::format("{}: nothing was found{}\n", read, unread);
  return fmt::format("{} and {} in {}{}\n", base::Counted(Count(looked.findings, Severity::kError), "error"),
                     base::Counted(Count(looked.findings, Severity::kWarning), "warning"), read, unread);
}

std::string TextOf(const Looked& looked, const Style& style) {
  std::string text;
  for (const Finding& finding : looked.findings) {
    const std::string where = finding.with.empty() ? finding.where : finding.where + " with " + finding.with;
    text += FoundText({.error = finding.severity == Severity::kError,
                       .rule = std::string(finding.rule),
                       .where = where,
                       .sentence = finding.fact + "; " + finding.contrary,
                       .remedy = finding.remedy},
                      style);
  }
  return text + ProseText(Summary(looked), style);
}

Json JsonOf(const Looked& looked) {
  Json findings = Json::array(), files = Json::array(), unread = Json::array();
  for (const Finding& finding : looked.findings) {
    Json one{{"rule", finding.rule},         {"severity", lossless::SeverityName(finding.severity)},
             {"where", finding.where},       {"fact", finding.fact},
             {"contrary", finding.contrary}, {"remedy", finding.remedy}};
    if (!finding.with.empty()) one["with"] = finding.with;
    findings.push_back(std::move(one));
  }
  for (const LintFile& file : looked.files)
    files.push_back({{"file", file.path}, {"kind", file.kind}, {"notes", file.notes}});
  for (const UnreadFile& one : looked.unread) unread.push_back({{"file", one.path}, {"why", one.why}});
  for (const LintFile& file : looked.files) {
    for (const LintUnread& one : file.unread) {
      unread.push_back({{"file", file.path}, {"why", one.why}});
      if (!one.port.empty()) unread.back()["port"] = one.port;
    }
  }
  return {{"findings", std::move(findings)},
          {"files", std::move(files)},
          {"unreadable", std::move(unread)},
          {"lookedAt", looked.subjects}};
}

}  // namespace

Output Lint(const LintOptions& options, const ReadFile& read, const OutputOptions& look) {
  if (options.rules) return LintRules(look);
  if (options.files.empty() || options.files.size() > kMaxFiles) {
    return Failure({base::Code::kInvalid,
                    options.files.empty() ? "name at least one FILE to look at"
                                          : fmt::format("name at most {} files", kMaxFiles),
                    std::nullopt});
  }
  if (options.resolved) return LintResolved(options, read, look);
  const Looked looked = LookAt(options, read);
  Output output;
  output.out =
      look.format == Format::kText ? TextOf(looked, look.style) : Printed(JsonOf(looked), look.format);
  for (const LintFile& file : looked.files) {
    for (const std::string& note : file.notes)
      output.err += WithoutControls("Note: " + file.path + ": " + note) + "\n";
  }
  for (const UnreadFile& one : looked.unread) output.err += "Error: " + WithoutControls(one.why) + "\n";
  for (const LintFile& file : looked.files) {
    for (const LintUnread& one : file.unread) {
      const std::string where = one.port.empty() ? file.path : file.path + ": " + one.port;
      output.err += "Error: " + WithoutControls(where + ": " + one.why) + "\n";
    }
  }
  // Nothing found of what nobody could look at is not "clean", and what was found is not all there may be.
  if (!looked.unread.empty() || UnreadPorts(looked) > 0) {
    output.exit_code = Output::kUsage;
  } else if (!looked.findings.empty()) {
    output.exit_code = Output::kRefused;
  }
  return output;
}

Output LintRules(const OutputOptions& look) {
  Output output;
  if (look.format != Format::kText) {
    Json rules = Json::array();
    for (const lossless::RuleAbout& rule : lossless::Rules()) {
      rules.push_back({{"rule", rule.id},
                       {"severity", lossless::SeverityName(rule.severity)},
                       {"forbids", rule.forbids},
                       {"why", rule.why},
                       {"remedy", rule.remedy}});
    }
    output.out = Printed({{"rules", std::move(rules)}}, look.format);
    return output;
  }
  std::vector<AdviceRow> rows;
  for (const lossless::RuleAbout& rule : lossless::Rules()) {
    rows.push_back({{std::string(rule.id), std::string(lossless::SeverityName(rule.severity))},
                    std::string(rule.forbids)});
  }
  output.out = AdviceText({"RULE", "SEVERITY", "FORBIDS"}, rows, look.style);
  return output;
}

}  // namespace heddle::cli
