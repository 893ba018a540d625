// Gangs of which their owner has several, and those that only the pods or a PodGroup know of.
#include <algorithm>

#include "crds/keys.h"
#include "extender/owner_layout.h"

namespace heddle::extender {
namespace {

namespace keys = crds::keys;

constexpr std::int64_t kMostSaid = 1 << 20;  // far more than any gang; what is beyond is refused all the same

OwnerLayout OfOneSegment(std::int64_t pods) {
  OwnerLayout layout;
  layout.Append("", 1, std::clamp<std::int64_t>(pods, 0, kMostSaid));
  return layout;
}

}  // namespace

// A group is a leader and its workers, and each group is a gang (lws v0.7). A leader whose own template asks for
// no place in the gang is a launcher.
OwnerLayout LayoutOfLeaderWorkerSet(const kube::Json& owner) {
  const std::int64_t size = std::clamp<std::int64_t>(
      kube::IntAt(owner, {"spec", "leaderWorkerTemplate", "size"}).value_or(1), 0, kMostSaid);
  const bool launcher = kube::Find(owner, {"spec", "leaderWorkerTemplate", "leaderTemplate"}) != nullptr &&
                        !WantsGang(owner, {"spec", "leaderWorkerTemplate", "leaderTemplate"});
  OwnerLayout layout = OfOneSegment(size - (launcher ? 1 : 0));
  layout.index_mark = lws::kWorkerIndex;
  layout.size_mark = lws::kSize;
  layout.first_index = launcher ? 1 : 0;
  if (!launcher && size > 1 && kube::StringAt(owner, {"spec", "startupPolicy"}) == "LeaderReady") {
    layout.refusal = InputRefusal{
        "LeaderFirst", "LeaderWorkerSet " + kube::Name(owner) +
                           " makes its workers only when their leader is ready, and a gang starts all of "
                           "them together; set spec.startupPolicy: LeaderCreated"};
  }
  return layout;
}

// minCount pods make the gang; Kubernetes gives them no numbers, but their own words may.
OwnerLayout LayoutOfPodGroup(const kube::Json& owner) {
  OwnerLayout layout =
      OfOneSegment(kube::IntAt(owner, {"spec", "schedulingPolicy", "gang", "minCount"}).value_or(0));
  layout.index_mark = keys::kGangRank;
  if (kube::Find(owner, {"spec", "schedulingPolicy", "gang"}) == nullptr) {
    layout.refusal =
        InputRefusal{"NoGang", "PodGroup " + kube::Name(owner) +
                                   " asks for no gang; set spec.schedulingPolicy.gang.minCount to "
                                   "the number of its pods"};
  }
  return layout;
}

OwnerLayout LayoutOfPods(const std::vector<std::shared_ptr<const kube::Json>>& pods) {
  OwnerLayout layout = OfOneSegment(0);
  layout.index_mark = keys::kGangRank;
  if (pods.empty()) return layout;
  const kube::Json& first = *pods.front();
  const auto said = kube::Label(first, keys::kGangName);
  const bool ours = said.has_value();
  if (!ours) layout.index_mark = kueue::kPodIndex;
  layout.rank_file_for = ours ? *said : kube::Label(first, kueue::kGroupName).value_or("");
  const std::string_view mark = ours ? keys::kGangSize : kueue::kGroupSize;
  std::optional<std::int64_t> size;
  for (const auto& pod : pods) {
    const auto own = NumberMark(*pod, mark);
    if (own && (!size || *own == *size)) {
      size = own;
      continue;
    }
    layout.refusal = InputRefusal{
        "GangSize", "pod " + kube::Name(*pod) +
                        (own ? " says another " + std::string(mark) + " than the others of its gang"
                             : " does not say how many pods its gang has") +
                        "; write " + std::string(mark) + ": \"<number of pods>\" on each of them"};
    return layout;
  }
  layout.size_mark = mark;
  return layout;
}

}  // namespace heddle::extender
