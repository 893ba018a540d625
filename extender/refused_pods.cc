#include "extender/refused_pods.h"

#include <chrono>

#include "base/counted.h"

namespace heddle::extender {
namespace {

// One refusal may be a race: a device plugin that registers anew, GPUs of the pod before that the kubelet has not taken
// back yet. A Job waits 10 s or more before it makes the next pod, and what lasts that long is no race.
constexpr int kRefusals = 2;
// Then one more pod may try: the node may have been mended, and where no other is free nothing else ends the wait. It
// is longer than a Job ever waits before the next pod (10 min), or the node would be chosen again at once.
constexpr std::chrono::minutes kStands{15};

// A kubelet says startTime when it first looks at a pod.
std::optional<base::WallTime> RefusedAt(const PodFacts& pod) {
  return pod.started ? pod.started : pod.created;
}

}  // namespace

RefusedPods::RefusedPods(const GangInput& input) {
  for (const Member& member : input.members.leaving) {
    const PodFacts& pod = *member.facts;
    const auto at = RefusedAt(pod);
    if (pod.not_admitted.empty() || pod.node.empty() || !pod.plan || !at) continue;
    // Of an earlier Gang of this owner nothing counts: who suspends and resumes it wants it tried anew.
    if (pod.plan->gang_uid != input.gang->uid) continue;
    Slot& slot = closed_[{pod.plan->rank, pod.node}];
    ++slot.pods;
    if (slot.last != nullptr && *at < slot.at) continue;
    slot.at = *at;
    slot.last = &pod;
  }
  std::erase_if(closed_, [&input](const auto& one) {
    return one.second.pods < kRefusals || input.now - one.second.at >= kStands;
  });
}

std::optional<std::string> RefusedPods::Trouble(int rank, const std::string& node) const {
  const auto found = closed_.find({rank, node});
  if (found == closed_.end()) return std::nullopt;
  const Slot& slot = found->second;
  return "the kubelet of " + node + " refused " + base::Counted(slot.pods, "pod") + " of it, last " +
         slot.last->key.name + ": " + slot.last->not_admitted;
}

BarredNodes RefusedPods::Barred(const std::vector<int>& ranks) const {
  BarredNodes barred;
  for (const int rank : ranks) {
    for (auto it = closed_.lower_bound({rank, std::string()}); it != closed_.end() && it->first.first == rank;
         ++it) {
      barred[rank].insert(it->first.second);
    }
  }
  return barred;
}

}  // namespace heddle::extender
