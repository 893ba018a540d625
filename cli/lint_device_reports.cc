#include "cli/lint_device_reports.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::cli {
namespace {

using crds::DeviceWish;

// Of that resource; null = there is none.
const DeviceWish* WishOf(const std::vector<DeviceWish>& wishes, const std::string& resource) {
  const auto found = std::find_if(wishes.begin(), wishes.end(),
                                  [&resource](const DeviceWish& wish) { return wish.resource == resource; });
  return found == wishes.end() ? nullptr : &*found;
}

bool SayTheSame(const DeviceWish& one, const DeviceWish& other) {
  DeviceWish same = one;
  same.generation = other.generation;
  same.policy_uid = other.policy_uid;
  same.not_understood = other.not_understood;
  return same == other;
}

}  // namespace

Speaks ReportsOfNode::OfWhat(const crds::DeviceReport& report) {
  const std::string& policy = report.edition.policy;
  if (policy.empty()) return Speaks::kOfThis;  // Heddle's own heddle.dev/fabric
  const bool changed = versions_.changed.contains(policy);
  const DeviceWish* told = WishOf(node_.told, report.resource);
  if (told == nullptr) {
    // Nothing says what it was told but the number.
    const bool earlier =
        changed || GenerationsDiffer(report.edition.generation, versions_.Generation(policy));
    return earlier ? Speaks::kOfEarlier : Speaks::kOfThis;
  }
  if (std::find(told->policies.begin(), told->policies.end(), policy) == told->policies.end())
    return Speaks::kOfAnother;
  const bool refused = !told->reason.empty();
  // As the operator counts (operator/device_rollout.cc, LookAt): without a number it is of policies in conflict.
  const bool answers = report.edition == crds::EditionOf(*told);
  if (!refused && !answers) return Speaks::kOfEarlier;
  const auto last = versions_.lasts.find(policy);
  // What is refused the operator says, and by policies that no file may have.
  if (last == versions_.lasts.end() || (refused && !changed)) return Speaks::kOfThis;
  // Not by its number: a file that was saved from the cluster and then edited has that of the version before.
  const DeviceWish* tells =
      versions_.moved.contains(policy) ? nullptr : WishOf(Tells(*last->second), report.resource);
  return tells != nullptr && SayTheSame(*tells, *told) ? Speaks::kOfThis : Speaks::kOfEarlier;
}

// What is told without a reason conflicts with nothing, so other policies have no say in it.
const std::vector<DeviceWish>& ReportsOfNode::Tells(const crds::RdmaDevicePolicy& policy) {
  const auto [known, fresh] = tells_.try_emplace(policy.name);
  if (fresh) {
    const std::vector<const crds::RdmaDevicePolicy*> alone{&policy};
    known->second = DecideDevices(node_.node, alone).wishes();
  }
  return known->second;
}

void NoteOutdatedDeviceReports(const DevicePolicyVersions& versions, const std::vector<LintDeviceNode>& nodes,
                               std::vector<std::string>& notes) {
  OutdatedReports outdated("RdmaDevicePolicy");
  for (const LintDeviceNode& node : nodes) {
    ReportsOfNode reports(versions, node);
    for (const crds::DeviceReport& report : node.reports) {
      const Speaks speaks = reports.OfWhat(report);
      if (speaks == Speaks::kOfThis) continue;
      outdated.Add(report.edition.policy, speaks, fmt::format("{} {}", node.name, report.resource), 1);
    }
  }
  outdated.AppendNotes(notes);
}

}  // namespace heddle::cli
