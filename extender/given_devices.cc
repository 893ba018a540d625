#include "extender/given_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "crds/gpu_indexes.h"
#include "extender/gang_key.h"
#include "extender/release_patch.h"

namespace heddle::extender {
namespace {

// The first NIC that was given and is on no rail of the plan's; null where there is none, or nobody knows.
const topology::Nic* StrayNic(const topology::Node& node, std::uint32_t planned,
                              const std::vector<std::string>& given) {
  if (given.empty()) return nullptr;
  const std::vector<const topology::Nic*> wanted = PlannedNics(node, planned);
  const auto fits = [&wanted](const topology::Nic& nic) {
    return std::any_of(wanted.begin(), wanted.end(), [&nic](const topology::Nic* one) {
      return one == &nic || !one->rail || *one->rail == *nic.rail;
    });
  };
  for (const topology::Nic& nic : node.nics) {
    const bool held = std::find(given.begin(), given.end(), nic.name) != given.end();
    if (held && nic.role == topology::NicRole::kCompute && nic.rail && !wanted.empty() && !fits(nic))
      return &nic;
  }
  return nullptr;
}

std::string GpuText(std::uint32_t gpus) {
  return "GPU " + crds::FormatGpuIndexes(gpus);
}

// How what a pod holds differs from its plan; empty = it does not.
std::string Difference(const PodFacts& pod, const PodGrants& given, const topology::Node& node) {
  const std::string who = fmt::format("pod {} (rank {}) holds", pod.key.ToString(), pod.plan->rank);
  if (given.gpus != pod.plan->gpus) {
    return fmt::format("{} {} of {} where its plan says {}", who, GpuText(given.gpus), node.name,
                       GpuText(pod.plan->gpus));
  }
  const topology::Nic* stray = StrayNic(node, pod.plan->gpus, given.nics);
  if (stray == nullptr) return {};
  return fmt::format("{} {} of {}, on rail {}, and none of its {} is there", who, stray->name, node.name,
                     *stray->rail, GpuText(pod.plan->gpus));
}

crds::Condition ConditionOf(const GivenDevices& given, base::WallTime now, std::int64_t generation) {
  crds::Condition condition;
  condition.type = crds::kDevicesAsPlanned;
  condition.status = given.differ == 0 ? crds::ConditionStatus::kTrue : crds::ConditionStatus::kFalse;
  condition.reason = given.differ == 0 ? "AsPlanned" : "Differs";
  condition.observed_generation = generation;
  condition.last_transition = std::chrono::floor<std::chrono::seconds>(now);
  if (given.differ == 0) {
    condition.message = fmt::format("{} pods hold what their plans say", given.compared);
  } else {
    condition.message = fmt::format(
        "{}{}. They run, and may cross rails: mode Pairs with followPlans gives pods what they were planned",
        given.first, given.differ == 1 ? "" : fmt::format("; so do {} more", given.differ - 1));
  }
  return condition;
}

}  // namespace

std::optional<GivenPod> CompareGrants(const PodFacts& pod, const PodGrants& given,
                                      const topology::Node& node) {
  if (!pod.plan || pod.plan->node != node.name || pod.plan->gpus == 0 || !given.whole) return std::nullopt;
  if (pod.plan->gpus == crds::AllIndexes(node)) return std::nullopt;
  if (std::popcount(given.gpus) != std::popcount(pod.plan->gpus)) return std::nullopt;
  return GivenPod{pod.gang.owner_uid, pod.plan->rank, Difference(pod, given, node)};
}

void AddGiven(const GivenPod& pod, GivenByGang& all) {
  GivenDevices& gang = all[pod.owner_uid];
  ++gang.compared;
  if (pod.difference.empty()) return;
  if (gang.differ++ == 0 || pod.rank < gang.rank) {
    gang.rank = pod.rank;
    gang.first = pod.difference;
  }
}

std::string SayGiven(const GivenDevices& given, base::WallTime now, std::int64_t generation,
                     std::vector<crds::Condition>& conditions) {
  const crds::Condition* before = crds::FindCondition(conditions, crds::kDevicesAsPlanned);
  const bool differed = before != nullptr && before->status == crds::ConditionStatus::kFalse;
  crds::Condition condition = ConditionOf(given, now, generation);
  std::string sentence = given.differ > 0 && !differed ? condition.message : std::string();
  crds::SetCondition(conditions, std::move(condition));
  return sentence;
}

bool SaysGiven(const crds::Gang& gang, const GivenByGang& all) {
  const auto given = all.find(KeyOfGang(gang).owner_uid);
  if (given == all.end()) return true;
  const crds::Condition* said = crds::FindCondition(gang.status.conditions, crds::kDevicesAsPlanned);
  if (said == nullptr) return false;
  const crds::Condition now = ConditionOf(given->second, {}, 0);
  return said->status == now.status && said->message == now.message;
}

}  // namespace heddle::extender
