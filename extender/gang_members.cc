#include "extender/gang_members.h"

#include <algorithm>
#include <array>

#include "crds/keys.h"
#include "crds/parallelism.h"
#include "extender/owner_kinds.h"
#include "extender/owner_layout.h"
#include "extender/unmodelled.h"

namespace heddle::extender {
namespace {

namespace keys = crds::keys;
using PodPtr = std::shared_ptr<const kube::Json>;

void Refuse(GangMembers& members, std::string reason, std::string sentence) {
  if (!members.refusal) members.refusal = InputRefusal{std::move(reason), std::move(sentence)};
}

// Reads one annotation into `into`; false when it is there and cannot be read.
template <class T, class Parse>
void ReadAnnotation(GangMembers& members, const kube::Json& pod, std::string_view name, Parse parse,
                    T& into) {
  const auto text = kube::Annotation(pod, name);
  if (!text) return;
  if (auto value = parse(*text)) {
    into = *std::move(value);
  } else {
    Refuse(members, "BadAnnotation", std::move(value).error().In(name).message);
  }
}

// A JobSet's replicated jobs have a template each, and one gang has one word.
void RefuseUnequalWords(GangMembers& members, const Member& first) {
  for (const auto& rank : members.ranks) {
    if (!rank || rank->pod == first.pod) continue;
    for (const std::string_view name :
         {keys::kParallelism, keys::kModel, keys::kRequire, keys::kPrefer, keys::kWait}) {
      if (kube::Annotation(*rank->pod, name) == kube::Annotation(*first.pod, name)) continue;
      Refuse(members, "UnequalPods",
             rank->facts.key.name + " and " + first.facts.key.name + " differ in " + std::string(name) +
                 "; all pods of a gang carry the same annotations");
    }
    if (const auto unmodelled = UnmodelledConstraint(*rank->pod)) Refuse(members, "NotModelled", *unmodelled);
  }
}

// Heddle's annotations share one prefix, so a misspelt one can be told from somebody else's.
void RefuseUnknownAnnotations(GangMembers& members, const kube::Json& pod) {
  constexpr std::array<std::string_view, 12> kKnown{
      keys::kParallelism, keys::kModel, keys::kRequire, keys::kPrefer, keys::kWait, keys::kRank,
      keys::kGpus,        keys::kNics,  keys::kGangUid, keys::kEpoch,  keys::kNode, keys::kSubstitutes};
  for (const auto& [name, value] : kube::Annotations(pod)) {
    if (!name.starts_with("heddle.dev/")) continue;
    if (std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end()) continue;
    Refuse(members, "UnknownAnnotation",
           "the annotation " + name +
               " is none of Heddle's; it knows parallelism, model, require, prefer and wait");
  }
}

void ReadTemplate(GangMembers& members, const Member& first) {
  const kube::Json& pod = *first.pod;
  const PodDemand& demand = first.facts.demand;
  crds::GangSpec& spec = members.spec;
  spec.gpus_per_pod = demand.gpus;
  spec.gpu_resource = demand.gpu_resource;
  spec.priority = first.facts.priority;
  if (!kube::Annotation(pod, keys::kParallelism)) {
    Refuse(members, "NoParallelism",
           "the pods wait at the gate heddle.dev/gang but carry no annotation heddle.dev/parallelism; write "
           "for example "
           "heddle.dev/parallelism: \"tp=8,dp=4\"");
  }
  ReadAnnotation(members, pod, keys::kParallelism, crds::ParseParallelism, spec.parallelism);
  ReadAnnotation(members, pod, keys::kModel, crds::ParseModel, spec.model);
  ReadAnnotation(members, pod, keys::kRequire, crds::ParseConstraints, spec.require);
  ReadAnnotation(members, pod, keys::kPrefer, crds::ParseConstraints, spec.prefer);
  ReadAnnotation(members, pod, keys::kWait, crds::ParseWait, spec.wait);
  RefuseUnknownAnnotations(members, pod);
  if (const auto unmodelled = UnmodelledConstraint(pod)) Refuse(members, "NotModelled", *unmodelled);
  const auto unweighed = UnweighedPreferences(pod);
  members.notes.insert(members.notes.end(), unweighed.begin(), unweighed.end());
}

void CheckDemand(GangMembers& members, const Member& first) {
  const PodDemand& demand = first.facts.demand;
  if (!demand.problem.empty()) Refuse(members, "BadResources", demand.problem);
  if (demand.gpus == 0) {
    Refuse(members, "NoGpus",
           "the pods ask for no GPUs; a gang's pods need one of amd.com/gpu, heddle.dev/gpu and "
           "nvidia.com/gpu in their limits");
  }
  if (demand.gpus > crds::kMaxGpusPerPod) {
    Refuse(members, "TooManyGpusPerPod",
           "a pod asks for " + std::to_string(demand.gpus) + " GPUs; at most " +
               std::to_string(crds::kMaxGpusPerPod) + " are on one node");
  }
  for (const auto& rank : members.ranks) {
    if (!rank || rank->facts.demand.gpus == demand.gpus) continue;
    Refuse(members, "UnequalPods",
           rank->facts.key.name + " asks for " + std::to_string(rank->facts.demand.gpus) + " GPUs and " +
               first.facts.key.name + " for " + std::to_string(demand.gpus) +
               "; all pods of a gang ask for the same number");
  }
}

void CheckWorld(GangMembers& members) {
  if (members.refusal || !members.spec.parallelism) return;
  const crds::GangSpec& spec = members.spec;
  if (const auto fits = crds::CheckWorld(*spec.parallelism, spec.pods, spec.gpus_per_pod); !fits) {
    Refuse(members, "WorldMismatch", fits.error().In(keys::kParallelism).message);
    // The number is kept out of the immutable spec: a parallelism that does not multiply is none.
    members.spec.parallelism.reset();
  }
}

void Seat(GangMembers& members, const OwnerLayout& layout, Member member) {
  const std::string name = member.facts.key.name;
  const auto rank = layout.RankOf(*member.pod);
  const auto last = std::to_string(std::int64_t(members.ranks.size()) - 1);
  if (!rank) {
    Refuse(members, "RankMissing",
           "pod " + name + " carries no rank: it needs the label " + std::string(layout.index_mark) +
               ", which its controller sets");
  } else if (*rank < 0 || std::size_t(*rank) >= members.ranks.size()) {
    Refuse(members, "RankOutOfRange",
           "pod " + name + " stands outside the ranks 0 to " + last + " of its gang");
  } else if (auto& seat = members.ranks[std::size_t(*rank)]; seat) {
    Refuse(members, "RankDoubled",
           "pods " + seat->facts.key.name + " and " + name + " both have rank " + std::to_string(*rank) +
               "; one of them has to go");
  } else {
    seat = std::move(member);
    return;
  }
  members.unranked.push_back(std::move(member));
}

void ReadOwner(GangMembers& members, OwnerLayout& layout, const kube::Json* owner,
               const std::vector<PodPtr>& pods) {
  if (!pods.empty()) members.spec.owner = MembershipOf(*pods.front()).owner;
  members.spec.attempt = members.key.attempt;
  if (owner != nullptr) {
    members.owner_state = ReadOwnerState(*owner, members.key);
    members.spec.owner = {kube::StringAt(*owner, {"apiVersion"}), kube::StringAt(*owner, {"kind"}),
                          kube::Name(*owner), kube::Uid(*owner)};
    layout = ReadLayout(*owner);
  } else {
    const std::string& kind = members.spec.owner.kind;
    if (pods.empty() || OwnerKindOf(members.spec.owner.api_version, kind) != nullptr) {
      members.owner_state = OwnerState::kGone;
    } else {
      layout.refusal = InputRefusal{
          "UnsupportedOwner",
          "pods of a " + kind + " cannot be ranked by this version; it plans " + OwnerKindWords()};
    }
  }
  members.refusal = layout.refusal;
  members.notes = layout.notes;
  members.spec.pods = layout.refusal ? 0 : int(layout.pods);
  members.ranks.resize(std::size_t(members.spec.pods));
  members.done.resize(std::size_t(members.spec.pods));
}

}  // namespace

template <class Far>
int Count(const GangMembers& members, Far far) {
  int count = 0;
  for (std::size_t i = 0; i < members.ranks.size(); ++i) {
    const auto& rank = members.ranks[i];
    if (members.done[i] || (rank && far(rank->facts))) ++count;
  }
  return count;
}

int GangMembers::seen() const {
  return Count(*this, [](const PodFacts&) { return true; });
}
int GangMembers::released() const {
  return Count(*this, [](const PodFacts& pod) { return !pod.gated; });
}
int GangMembers::bound() const {
  return Count(*this, [](const PodFacts& pod) { return !pod.node.empty(); });
}

std::vector<int> GangMembers::Missing() const {
  std::vector<int> missing;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!ranks[i] && !done[i]) missing.push_back(int(i));
  }
  return missing;
}

GangMembers ReadMembers(const GangKey& key, const kube::Json* owner, const std::vector<PodPtr>& pods) {
  GangMembers members;
  members.key = key;
  OwnerLayout layout;
  ReadOwner(members, layout, owner, pods);
  for (const PodPtr& pod : pods) {
    Member member{ReadPod(*pod), pod};
    if (!member.facts.live()) {
      const auto rank = layout.RankOf(*pod).value_or(-1);
      if (member.facts.succeeded && rank >= 0 && std::size_t(rank) < members.done.size()) {
        members.done[std::size_t(rank)] = true;
      }
      members.leaving.push_back(std::move(member));
    } else if (members.ranks.empty()) {
      members.unranked.push_back(std::move(member));
    } else {
      Seat(members, layout, std::move(member));
    }
  }
  const Member* first = nullptr;
  for (const auto& rank : members.ranks) {
    if (rank && first == nullptr) first = &*rank;
  }
  if (first == nullptr && !members.unranked.empty()) first = &members.unranked.front();
  if (first == nullptr && !members.leaving.empty()) first = &members.leaving.front();
  if (first != nullptr) {
    ReadTemplate(members, *first);
    CheckDemand(members, *first);
    RefuseUnequalWords(members, *first);
    CheckWorld(members);
  }
  return members;
}

}  // namespace heddle::extender
