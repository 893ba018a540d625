#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lossless/policy.h"
#include "lossless/port_settings.h"

namespace heddle::lossless {

enum class Severity : std::uint8_t { kError, kWarning };
std::string_view SeverityName(Severity severity);  // "Error", "Warning"

enum class End : std::uint8_t {
  kPolicy,  // what a policy makes of a port
  kHost,
  kSwitch,
};

// One end of a cable, or a policy, to be looked at.
struct Subject {
  std::string name;  // as people find it: "LosslessPolicy roce", "leaf-3.json Ethernet0"
  End end = End::kHost;
  PortSettings settings;
  std::optional<int> rdma_dscp;     // of a policy: where data is meant to be
  std::vector<OtherClass> classes;  // of a policy: what else is there
  // Of a host that an agent reports: its policy. Hosts with the same one talk to each other, and the agent
  // has held them against it already.
  std::string reported_for;
  friend bool operator==(const Subject&, const Subject&) = default;
};
Subject SubjectOf(std::string name, const ResolvedPolicy& policy);

// Two facts that do not go together, and what to do about it.
struct Finding {
  std::string rule;
  Severity severity = Severity::kError;
  std::string where;     // the subject
  std::string with;      // the other subject, of a rule about two; else empty
  std::string fact;      // "CNPs are sent with DSCP 4"
  std::string contrary;  // "DSCP 4 is priority 4, which has PFC"
  std::string remedy;    // a sentence
  // Of a rule about the two ends of a cable: what it is about, and its value at either end, "DSCP 0: priority 0".
  std::string setting;
  std::string here, there;
  friend bool operator==(const Finding&, const Finding&) = default;
};

// What a rule says of itself, for documents and --help.
struct RuleAbout {
  std::string_view id;
  Severity severity = Severity::kError;
  std::string_view forbids;  // "PFC on several priorities"
  std::string_view why;
  std::string_view remedy;
};
std::span<const RuleAbout> Rules();  // in the order in which they look
const RuleAbout* FindRule(std::string_view id);

// Each subject by itself, each sender against each switch, hosts against each other, and, where there is just
// one policy, hosts against it. Subjects that are alike but for their name are looked at once and named
// together. A rule that needs a setting which nobody said says nothing. Errors first, then by subject.
std::vector<Finding> Lint(const std::vector<Subject>& subjects);

}  // namespace heddle::lossless
