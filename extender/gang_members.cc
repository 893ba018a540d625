#include "extender/gang_members.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "crds/keys.h"
#include "crds/parallelism.h"
#include "crds/pod_annotations.h"
#include "extender/compute_domain.h"
#include "extender/owner_kinds.h"
#include "extender/owner_layout.h"
#include "extender/rank_file.h"
#include "extender/seating.h"
#include "extender/unmodelled.h"
#include "kube/completed_indexes.h"
#include "kube/packed.h"

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

void RefuseUnequalWord(GangMembers& members, const Member& first, const Member& other) {
  for (const std::string_view name : kSaidAlike) {
    if (kube::Annotation(*other.kept, name) == kube::Annotation(*first.kept, name)) continue;
    Refuse(members, "UnequalPods",
           other.facts->key.name + " and " + first.facts->key.name + " differ in " + std::string(name) +
               "; all pods of a gang carry the same annotations");
  }
}

// A JobSet's replicated jobs have a template each, and one gang has one word.
void RefuseUnequalWords(GangMembers& members, const Member& first) {
  const PodTerms* like = first.facts->terms.get();  // what was looked at already
  for (const auto& rank : members.ranks) {
    if (!rank || rank->facts->terms.get() == like) continue;
    const PodTerms& terms = *rank->facts->terms;
    like = &terms;
    if (terms.said != first.facts->terms->said) RefuseUnequalWord(members, first, *rank);
    if (terms.unmodelled) Refuse(members, "NotModelled", *terms.unmodelled);
  }
}

void RefuseUnknownAnnotations(GangMembers& members, const kube::Json& pod) {
  for (const auto& [name, value] : kube::Annotations(pod)) {
    if (auto unknown = crds::UnknownAnnotation(name))
      Refuse(members, "UnknownAnnotation", *std::move(unknown));
  }
}

// What most jobs do that say nothing: tensor groups inside a pod, replicas of the model over the pods.
void AssumeParallelism(GangMembers& members) {
  members.assumed_parallelism = true;
  if (members.spec.gpus_per_pod < 1 || members.spec.pods < 1) return;
  members.spec.parallelism.emplace();
  members.spec.parallelism->tp = members.spec.gpus_per_pod;
  members.spec.parallelism->dp = members.spec.pods;
}

void ReadTemplate(GangMembers& members, const Member& first, Mode mode) {
  const kube::Json pod = first.Pod();
  const PodDemand& demand = first.facts->demand;
  crds::GangSpec& spec = members.spec;
  spec.gpus_per_pod = demand.gpus;
  spec.gpu_resource = demand.gpu_resource;
  spec.priority = first.facts->priority;
  const bool cut = kube::Annotation(pod, keys::kParallelism).has_value();
  if (!cut && mode == Mode::kObserve) AssumeParallelism(members);
  if (!cut && mode == Mode::kPlace) {
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
  ReadAnnotation(members, pod, keys::kOnDegraded, crds::ParseOnDegraded, members.restart_on_degraded);
  bool compute_domain = false;
  ReadAnnotation(members, pod, keys::kComputeDomain, crds::ParseComputeDomain, compute_domain);
  RefuseUnknownAnnotations(members, pod);
  if (const auto unmodelled = UnmodelledConstraint(pod)) Refuse(members, "NotModelled", *unmodelled);
  const auto unweighed = UnweighedPreferences(pod);
  members.notes.insert(members.notes.end(), unweighed.begin(), unweighed.end());
}

// Not every pod need have the claim: one that is made again after the chart's default has changed differs from the
// others, and a ComputeDomain more does no harm. One that asks for it and does not get it would run without NVLink.
void ReadComputeDomain(GangMembers& members, Mode mode) {
  for (const auto& rank : members.ranks) {
    if (!rank) continue;
    const PodTerms& terms = *rank->facts->terms;
    if (members.compute_domain.empty()) members.compute_domain = terms.compute_domain;
    const bool asks = terms.compute_domain.empty() && terms.said.contains(keys::kComputeDomain);
    const bool held = mode == Mode::kPlace && rank->facts->gated;
    const auto missing = asks && held ? MissingClaim(rank->Pod()) : std::nullopt;
    if (missing) Refuse(members, missing->reason, missing->sentence);
  }
}

void CheckDemand(GangMembers& members, const Member& first) {
  const PodDemand& demand = first.facts->demand;
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
    if (!rank || rank->facts->demand.gpus == demand.gpus) continue;
    Refuse(members, "UnequalPods",
           rank->facts->key.name + " asks for " + std::to_string(rank->facts->demand.gpus) + " GPUs and " +
               first.facts->key.name + " for " + std::to_string(demand.gpus) +
               "; all pods of a gang ask for the same number");
  }
}

bool WasLetGo(const PodFacts& pod) {
  return !pod.gated && pod.plan;
}

// Whether what is read may have another size than was written: its owner says that it is elastic, or can be scaled and
// has been. The second is seen by pods that we let go, or by a Gang of this size that was planned or could be.
bool IsElastic(const GangMembers& members, const OwnerLayout& layout, const crds::GangSpec* before) {
  if (layout.elastic || !layout.scales) return layout.elastic;
  if (std::any_of(members.ranks.begin(), members.ranks.end(),
                  [](const auto& rank) { return rank && WasLetGo(*rank->facts); })) {
    return true;
  }
  if (before == nullptr || !before->parallelism || before->pods != members.spec.pods) return false;
  placement::Parallelism accepted = *before->parallelism;
  accepted.dp = members.spec.parallelism->dp;
  return accepted == *members.spec.parallelism;
}

// An elastic job trains with as many replicas of the model as it has pods for.
void FitDataParallel(GangMembers& members, const OwnerLayout& layout) {
  const crds::GangSpec& spec = members.spec;
  placement::Parallelism& said = *members.spec.parallelism;
  const std::int64_t replica = std::int64_t(said.tp) * said.cp * said.pp, gpus = spec.gpus();
  if (replica <= 0 || gpus <= 0) return;
  if (gpus % replica != 0) {
    Refuse(members, "WorldMismatch",
           std::to_string(spec.pods) + " pods of " + std::to_string(spec.gpus_per_pod) + " GPUs have " +
               std::to_string(gpus) + ", and each replica of the model takes " + std::to_string(replica) +
               " (tp, cp and pp together): scale to a multiple of " +
               std::to_string(replica / std::gcd(replica, std::int64_t(spec.gpus_per_pod))) + " pods");
    return;
  }
  if (gpus / replica == said.dp) return;
  members.notes.push_back("the job is elastic and has " + std::to_string(gpus) + " GPUs now, so dp is " +
                          std::to_string(gpus / replica) + " and not " + std::to_string(said.dp));
  said.dp = int(gpus / replica);
  members.followed = !layout.elastic;
}

void CheckWorld(GangMembers& members, const OwnerLayout& layout, const crds::GangSpec* before) {
  if (members.refusal || !members.spec.parallelism) return;
  const crds::GangSpec& spec = members.spec;
  members.elastic = IsElastic(members, layout, before);
  if (members.elastic) FitDataParallel(members, layout);
  if (const auto fits = crds::CheckWorld(*spec.parallelism, spec.pods, spec.gpus_per_pod); !fits) {
    Refuse(members, "WorldMismatch", fits.error().In(keys::kParallelism).message);
    // The number is kept out of the immutable spec: a parallelism that does not multiply is none.
    members.spec.parallelism.reset();
  }
}

// Who stands for pods that nothing else owns: the one with the first name.
crds::GangOwner OwnerAmong(const std::vector<PodPtr>& pods) {
  const PodPtr& first = *std::min_element(pods.begin(), pods.end(), [](const PodPtr& a, const PodPtr& b) {
    return kube::Name(*a) < kube::Name(*b);
  });
  return {"v1", "Pod", kube::Name(*first), kube::Uid(*first)};
}

// Pods that name their gang themselves last as long as one of them is not finished.
void ReadOwnWords(GangMembers& members, OwnerLayout& layout, const std::vector<PodPtr>& pods) {
  const bool finished = std::all_of(pods.begin(), pods.end(), [](const PodPtr& pod) {
    const std::string phase = kube::StringAt(*pod, {"status", "phase"});
    return phase == "Succeeded" || phase == "Failed";
  });
  if (pods.empty() || finished) {
    members.owner_state = pods.empty() ? OwnerState::kGone : OwnerState::kFinished;
    return;
  }
  members.spec.owner = OwnerAmong(pods);
  layout = LayoutOfPods(pods);
}

void ReadNoOwner(GangMembers& members, OwnerLayout& layout, const std::vector<PodPtr>& pods) {
  const std::string kind = members.spec.owner.kind, name = members.spec.owner.name;
  if (kind == kPodGroup && !pods.empty()) {
    members.spec.owner = OwnerAmong(pods);
    layout.refusal = InputRefusal{"NoPodGroup", "the pods name the PodGroup " + name +
                                                    ", which does not exist; create it, with "
                                                    "spec.schedulingPolicy.gang.minCount"};
  } else if (pods.empty() || OwnerKindOf(members.spec.owner.api_version, kind) != nullptr) {
    members.owner_state = OwnerState::kGone;
  } else {
    layout.refusal =
        InputRefusal{"UnsupportedOwner",
                     "pods of a " + kind + " cannot be ranked by this version; it plans " + OwnerKindWords()};
  }
}

void NameRankFile(GangMembers& members, const OwnerLayout& layout) {
  if (layout.refusal) return;
  members.rank_file = RankFileName(layout.rank_file_for);
  if (!layout.numbered) return;  // another note says so
  members.notes.push_back(
      "the framework ranks its processes itself, so the order of ranks is advice: the ConfigMap " +
      members.rank_file + " says which pod was planned for which");
}

void ReadOwner(GangMembers& members, OwnerLayout& layout, const kube::Json* owner,
               const std::vector<PodPtr>& pods) {
  const kube::Json first = pods.empty() ? kube::Json() : kube::Unpacked(*pods.front());
  if (!pods.empty()) {
    Membership membership = MembershipOf(first);
    members.spec.owner = std::move(membership.owner);
    members.spec.group = std::move(membership.group);
  }
  members.spec.attempt = members.key.attempt;
  if (owner != nullptr) {
    members.owner_state = ReadOwnerState(*owner, members.key);
    members.spec.owner = {kube::StringAt(*owner, {"apiVersion"}), kube::StringAt(*owner, {"kind"}),
                          kube::Name(*owner), kube::Uid(*owner)};
    layout = ReadLayout(*owner);
  } else if (members.key.owner_uid.starts_with(crds::kPodsGroup)) {
    ReadOwnWords(members, layout, pods);
  } else {
    ReadNoOwner(members, layout, pods);
  }
  ReadMarks(layout, pods);
  members.refusal = layout.refusal;
  members.notes = layout.notes;
  if (layout.own_ranks || (!pods.empty() && MeetsByC10d(first))) NameRankFile(members, layout);
  members.spec.pods = layout.refusal ? 0 : int(layout.pods);
  members.ranks.resize(std::size_t(members.spec.pods));
  members.done.resize(std::size_t(members.spec.pods));
}

void SetAside(GangMembers& members, std::vector<Member>& live,
              const std::function<bool(const Member&)>& old) {
  const auto kept =
      std::stable_partition(live.begin(), live.end(), [&old](const Member& member) { return !old(member); });
  members.leaving.insert(members.leaving.end(), std::make_move_iterator(kept),
                         std::make_move_iterator(live.end()));
  live.erase(kept, live.end());
}

// The leader of a group comes before its workers, and another leader has others: what is older than its leader
// is on its way out. So is what is older than the MPIJob that it names: that was another one.
void SetOldAttemptAside(GangMembers& members, const OwnerLayout& layout, const kube::Json* owner,
                        std::vector<Member>& live) {
  std::optional<base::WallTime> born;
  if (members.spec.owner.kind == mpi::kKind) {
    if (owner != nullptr) born = kube::CreationTimestamp(*owner);
  } else if (layout.index_mark == lws::kWorkerIndex && layout.first_index == 0) {
    const auto leader = std::find_if(live.begin(), live.end(), [&layout](const Member& member) {
      return layout.RankOf(*member.kept) == 0;
    });
    if (leader == live.end()) return;
    members.spec.leader = leader->facts->uid;
    born = leader->facts->created;
  }
  if (!born) return;
  SetAside(members, live,
           [&born](const Member& member) { return member.facts->created && *member.facts->created < *born; });
}

// An owner that was scaled down is about to remove pods that run.
void SetSurplusAside(GangMembers& members, const OwnerLayout& layout, std::vector<Member>& live) {
  const bool started =
      std::any_of(live.begin(), live.end(), [](const Member& one) { return WasLetGo(*one.facts); });
  // KubeRay numbers replicas anew only when they are made again: a high number there is none too many.
  if (!started || !layout.unit_mark.empty() || !(layout.elastic || layout.scales)) return;
  SetAside(members, live, [&layout](const Member& member) {
    const bool told = WasLetGo(*member.facts) && member.facts->plan->rank < layout.pods;
    return !told && layout.RankOf(*member.kept).value_or(0) >= layout.pods;
  });
}

std::int64_t RankSaid(const OwnerLayout& layout, const Member& member) {
  return layout.RankOf(*member.kept).value_or(member.facts->plan ? member.facts->plan->rank : -1);
}

// Of pods that name their gang themselves, those of a run before may still stand when the name is used again, and say
// nothing of what is done in this one. Another run has another Gang, whose UID its pods carry once they are let go.
// Those count that were done when this Gang was planned, as after somebody deleted the one before: they have no slot.
// Before that it is told by a rank that is there twice, or by more pods than ranks.
void DropEarlierRun(const GangMembers& members, const OwnerLayout& layout, const crds::Gang* before,
                    const std::vector<Member>& live, std::vector<Member>& succeeded) {
  if (live.empty() || !members.key.owner_uid.starts_with(crds::kPodsGroup)) return;
  std::set<std::string> gangs;
  for (const Member& one : live) {
    if (WasLetGo(*one.facts)) gangs.insert(one.facts->plan->gang_uid);
  }
  if (!gangs.empty()) {
    std::vector<crds::PlacedPod> rows;
    if (before != nullptr && before->status.placement) rows = crds::ToRows(*before->status.placement);
    std::erase_if(succeeded, [&](const Member& one) {
      const std::int64_t rank = RankSaid(layout, one);
      if (rank >= 0 && std::size_t(rank) < rows.size() && !rows[std::size_t(rank)].has_slot()) return false;
      return one.facts->plan && !gangs.contains(one.facts->plan->gang_uid);
    });
    return;
  }
  std::set<std::int64_t> ranks;
  for (const Member& one : succeeded) ranks.insert(RankSaid(layout, one));
  const bool twice = std::any_of(live.begin(), live.end(), [&](const Member& one) {
    const std::int64_t rank = RankSaid(layout, one);
    return rank >= 0 && ranks.contains(rank);
  });
  if (twice || live.size() + succeeded.size() > members.ranks.size()) succeeded.clear();
}

void SeatAll(GangMembers& members, const OwnerLayout& layout, const kube::Json* owner, const ReadPods& pods,
             const std::vector<PodPtr>& jobs, const crds::Gang* before) {
  std::vector<Member> live, succeeded;
  for (std::size_t i = 0; i < pods.objects.size(); ++i) {
    Member member{pods.facts[i], pods.objects[i]};
    if (member.facts->live()) {
      live.push_back(std::move(member));
      continue;
    }
    if (member.facts->succeeded) succeeded.push_back(member);
    members.leaving.push_back(std::move(member));
  }
  DropEarlierRun(members, layout, before, live, succeeded);
  for (const Member& one : succeeded) {
    const std::int64_t rank = RankSaid(layout, one);
    if (rank >= 0 && std::size_t(rank) < members.done.size()) members.done[std::size_t(rank)] = true;
  }
  SetOldAttemptAside(members, layout, owner, live);
  SetSurplusAside(members, layout, live);
  if (owner != nullptr) {
    for (const int rank : ReadRanksDone(*owner, members.spec.pods, jobs))
      members.done[std::size_t(rank)] = true;
  }
  if (members.ranks.empty()) {
    members.unranked = std::move(live);
  } else {
    Seat(members, layout, std::move(live));
  }
  if (owner == nullptr || kube::StringAt(*owner, {"kind"}) != kube::kJobs.kind) return;
  const std::set<int> failed =
      kube::ReadIndexes(kube::StringAt(*owner, {"status", "failedIndexes"}), members.spec.pods);
  for (const int rank : members.Missing()) {
    if (failed.contains(rank)) members.given_up.push_back(rank);
  }
}

}  // namespace

template <class Far>
int Count(const GangMembers& members, Far far) {
  int count = 0;
  for (std::size_t i = 0; i < members.ranks.size(); ++i) {
    const auto& rank = members.ranks[i];
    if (members.done[i] || (rank && far(*rank->facts))) ++count;
  }
  return count;
}

std::shared_ptr<const PodConstraints> Member::Constraints() const {
  if (facts->terms->constraints) return {facts->terms, &*facts->terms->constraints};
  return std::make_shared<const PodConstraints>(Pod());
}

kube::Json Member::Pod() const {
  return kube::Unpacked(*kept);
}

PodFacts& Member::OwnFacts() {
  const auto own = std::make_shared<PodFacts>(*facts);
  facts = own;
  return *own;
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

int GangMembers::let_go() const {
  return int(std::count_if(ranks.begin(), ranks.end(),
                           [](const auto& rank) { return rank && !rank->facts->gated; }));
}

std::vector<int> GangMembers::Missing() const {
  std::vector<int> missing;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!ranks[i] && !done[i]) missing.push_back(int(i));
  }
  return missing;
}

bool GangMembers::HasPastTheGate() const {
  const auto past = [](const Member& member) { return !member.facts->gated; };
  return std::any_of(unranked.begin(), unranked.end(), past) ||
         std::any_of(ranks.begin(), ranks.end(), [&past](const auto& rank) { return rank && past(*rank); });
}

bool GangMembers::WaitsForQuota() const {
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const auto& rank) { return rank && rank->facts->waits_for_quota(); });
}

bool GangMembers::Preempts() const {
  return std::all_of(ranks.begin(), ranks.end(),
                     [](const auto& rank) { return !rank || rank->facts->preempts; });
}

GangMembers ReadMembers(const GangKey& key, const kube::Json* owner, const ReadPods& pods, Mode mode,
                        const crds::Gang* before,
                        const std::vector<std::shared_ptr<const kube::Json>>& jobs) {
  GangMembers members;
  members.key = key;
  OwnerLayout layout;
  ReadOwner(members, layout, owner, pods.objects);
  SeatAll(members, layout, owner, pods, jobs, before);
  if (members.owner_state == OwnerState::kScaledDown && (members.seen() > 0 || !members.unranked.empty())) {
    members.owner_state = OwnerState::kActive;  // a rolling update has more groups for a while
  }
  const Member* first = nullptr;
  for (const auto& rank : members.ranks) {
    if (rank && first == nullptr) first = &*rank;
  }
  if (first == nullptr && !members.unranked.empty()) first = &members.unranked.front();
  if (first == nullptr && !members.leaving.empty()) first = &members.leaving.front();
  if (first != nullptr) {
    ReadTemplate(members, *first, mode);
    CheckDemand(members, *first);
    RefuseUnequalWords(members, *first);
    ReadComputeDomain(members, mode);
    CheckWorld(members, layout, before == nullptr ? nullptr : &before->spec);
  }
  return members;
}

}  // namespace heddle::extender
