#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "crds/cable_report.h"
#include "crds/condition.h"
#include "crds/object_meta.h"
#include "lossless/policy.h"
#include "topology/node.h"

namespace heddle::crds {

// What people want of a lossless class. The operator makes of it what each port of a node should have
// (NodeTopology.spec.lossless) and alone writes status.

enum class LosslessMode : std::uint8_t { kObserve, kApply };  // only say what differs, or set it
enum class OnDrift : std::uint8_t { kReport, kRepair };
std::string_view LosslessModeName(LosslessMode mode);  // "Observe", "Apply"
std::string_view OnDriftName(OnDrift on_drift);        // "Report", "Repair"

inline constexpr int kUsualCanaries = 2;

struct LosslessPolicySpec {
  std::map<std::string, std::string> node_selector;  // labels that a Node has all of; empty = every Node
  std::vector<topology::NicRole> roles;              // of the NICs; empty = compute
  std::vector<int> rails;                            // empty = all
  LosslessMode mode = LosslessMode::kObserve;
  OnDrift on_drift = OnDrift::kReport;
  int canary = kUsualCanaries;  // so many nodes first, in mode Apply; 0 = all at once
  CountedCables counted = CountedCables::kPreferLossless;
  lossless::Policy policy;
  friend bool operator==(const LosslessPolicySpec&, const LosslessPolicySpec&) = default;
};

// Ports of the nodes that the policy selects.
struct LosslessCounts {
  int nodes = 0;
  int ports = 0;
  int compliant = 0;
  int drifted = 0;
  int not_applicable = 0;
  int conflicting = 0;
  int unknown = 0;  // cannot be read, not reported yet, or held up by the canaries
  int pending = 0;  // their agents are about to set them
  int failed = 0;   // set back; nothing more is tried
  friend bool operator==(const LosslessCounts&, const LosslessCounts&) = default;
};

struct LosslessPolicyStatus {
  std::int64_t observed_generation = 0;
  std::string profile;  // that is in force
  LosslessCounts counts;
  std::vector<std::string> findings;  // sentences: of the linter, and what ports do without or do not prove
  std::vector<Condition> conditions;
  friend bool operator==(const LosslessPolicyStatus&, const LosslessPolicyStatus&) = default;
};

struct LosslessPolicy : ObjectMeta {
  LosslessPolicySpec spec;
  LosslessPolicyStatus status;
  friend bool operator==(const LosslessPolicy&, const LosslessPolicy&) = default;
};

Json ToJson(const LosslessPolicy& object);
// Numbers and words that no policy can have are refused by field. What contradicts itself is read, so that
// the linter can say what contradicts what.
[[nodiscard]] base::Result<LosslessPolicy> LosslessPolicyFromJson(const Json& json);
Json StatusApplyJson(const LosslessPolicy& object);

}  // namespace heddle::crds
