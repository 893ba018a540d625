#include "lossless/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/check.h"
#include "lossless/compare.h"
#include "lossless/lint_rules.h"
#include "lossless/render.h"

namespace heddle::lossless {
namespace {

// All that rules look at, the name left out.
std::string Likeness(const Subject& subject) {
  std::string key = fmt::format("{}\n{}\n{}\n", int(subject.end), subject.rdma_dscp.value_or(kNotSaid),
                                subject.reported_for);
  for (const OtherClass& other : subject.classes) {
    key +=
        fmt::format("{} {} {} {}\n", other.name, int(other.use), other.priority, fmt::join(other.dscps, ","));
  }
  // Policies are named one by one.
  if (subject.end == End::kPolicy) key += subject.name;
  ForEachSetting([&](Setting setting, auto member) {
    if (subject.settings.*member)
      key += fmt::format("{}={}\n", int(setting), SettingText(subject.settings, setting));
  });
  return key;
}

// Subjects that are alike, as one with all their names, in the order of the first.
std::vector<Subject> Grouped(const std::vector<Subject>& subjects) {
  std::vector<Subject> groups;
  std::vector<std::size_t> sizes;
  std::map<std::string, std::size_t> known;
  for (const Subject& subject : subjects) {
    const auto [at, fresh] = known.emplace(Likeness(subject), groups.size());
    if (fresh) {
      groups.push_back(subject);
      sizes.push_back(1);
    } else {
      ++sizes[at->second];
    }
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (sizes[i] > 1) groups[i].name += fmt::format(" and {} more like it", sizes[i] - 1);
  }
  return groups;
}

// Hosts of one fabric talk to each other: the largest MTU is what they could have. RDMA payloads are powers of two, so
// MTUs that differ may come to the same for RDMA.
void CompareMtus(const std::vector<Subject>& subjects, std::vector<Finding>& findings) {
  std::map<std::string_view, const Subject*> largest;
  const auto has_mtu = [](const Subject& subject) {
    return subject.end == End::kHost && subject.settings.mtu;
  };
  for (const Subject& subject : subjects) {
    if (!has_mtu(subject)) continue;
    const Subject*& best = largest.try_emplace(subject.reported_for, &subject).first->second;
    if (*subject.settings.mtu > *best->settings.mtu) best = &subject;
  }
  for (const Subject& subject : subjects) {
    if (!has_mtu(subject)) continue;
    const Subject& best = *largest.at(subject.reported_for);
    if (*subject.settings.mtu == *best.settings.mtu) continue;
    const int here = *subject.settings.mtu, there = *best.settings.mtu;
    const int rdma_here = rules::RdmaMtu(here), rdma_there = rules::RdmaMtu(there);
    rules::Report report(findings, subject, &best);
    if (rdma_here == rdma_there) {
      report.Find("mtu-uneven", fmt::format("the MTU is {}", here),
                  fmt::format("its peer's is {}; RDMA packets carry {} bytes at both", there, rdma_there));
    } else {
      report.Find("mtu-peers", fmt::format("the MTU is {}: {} bytes of RDMA", here, rdma_here),
                  fmt::format("its peer's is {}: {} bytes", there, rdma_there));
    }
  }
}

// What switches are told stands in the policy as well, and hosts have none of it.
PortSettings HostSettings(PortSettings settings) {
  settings.marking.reset();
  return WithWhatFollows(std::move(settings));
}

void ComparePolicy(const std::vector<Subject>& subjects, std::vector<Finding>& findings) {
  const auto is_policy = [](const Subject& subject) { return subject.end == End::kPolicy; };
  if (std::count_if(subjects.begin(), subjects.end(), is_policy) != 1) return;
  const Subject& policy = *std::find_if(subjects.begin(), subjects.end(), is_policy);
  const PortSettings want = HostSettings(policy.settings);
  for (const Subject& subject : subjects) {
    if (subject.end != End::kHost || !subject.reported_for.empty()) continue;
    for (const Drift& drift : Compare(want, subject.settings).drifts) {
      const std::string name(SettingName(drift.setting));
      rules::Report(findings, subject, &policy)
          .Find("differs-from-policy", name + " is " + drift.have, "the policy wants " + drift.want);
    }
  }
}

}  // namespace

namespace rules {

void Report::Find(std::string_view rule, std::string fact, std::string contrary, std::string remedy) {
  const RuleAbout* about = FindRule(rule);
  CHECK(about != nullptr);
  findings_.push_back({std::string(rule), about->severity, where_.name, with_ == nullptr ? "" : with_->name,
                       std::move(fact), std::move(contrary),
                       remedy.empty() ? std::string(about->remedy) : std::move(remedy)});
}

void Report::FindBetween(std::string_view rule, Setting setting, std::string here, std::string there,
                         std::string fact, std::string contrary) {
  Find(rule, std::move(fact), std::move(contrary));
  findings_.back().setting = SettingName(setting);
  findings_.back().here = std::move(here);
  findings_.back().there = std::move(there);
}

}  // namespace rules

Subject SubjectOf(std::string name, const ResolvedPolicy& resolved) {
  Subject subject;
  subject.name = std::move(name);
  subject.end = End::kPolicy;
  const Rendering rendering = Render(resolved, {.transport = topology::Transport::kRoce, .device = ""});
  CHECK(rendering.settings.has_value());
  subject.settings = *rendering.settings;
  const Policy& policy = resolved.policy;
  if (policy.marking) {
    EcnMarkings marking;
    for (const int priority : policy.ecn->Members()) marking[priority] = *policy.marking;
    subject.settings.marking = std::move(marking);
  }
  subject.rdma_dscp = policy.rdma_dscp;
  subject.classes = policy.classes;
  return subject;
}

std::vector<Finding> Lint(const std::vector<Subject>& all) {
  const std::vector<Subject> subjects = Grouped(all);
  std::vector<Finding> findings;
  for (const Subject& subject : subjects) {
    rules::Report report(findings, subject);
    for (const rules::SubjectRule rule : rules::OfOne()) rule(subject, report);
  }
  for (const Subject& sender : subjects) {
    if (sender.end == End::kSwitch) continue;
    for (const Subject& leaf : subjects) {
      if (leaf.end != End::kSwitch) continue;
      rules::Report report(findings, sender, &leaf);
      for (const rules::PairRule rule : rules::OfTwoEnds()) rule(sender, leaf, report);
    }
  }
  CompareMtus(subjects, findings);
  ComparePolicy(subjects, findings);
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return std::tie(a.severity, a.where, a.with) < std::tie(b.severity, b.where, b.with);
  });
  return findings;
}

}  // namespace heddle::lossless
