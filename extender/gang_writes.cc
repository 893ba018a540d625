// The writes of the gang controller: each is one request, or one a pod.
#include <algorithm>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

#include "base/counted.h"
#include "extender/compute_domain.h"
#include "extender/gang_controller.h"
#include "extender/gang_status.h"
#include "extender/lost_nodes.h"
#include "extender/rank_file.h"
#include "extender/resources.h"

namespace heddle::extender {

using base::Code;

namespace {

// The one worker lets pods go for so long before it looks at what else there is: what a repair elsewhere may take.
constexpr std::chrono::milliseconds kReleaseSlice{100};
// For so long a release goes on without a new look. Each costs a LIST of all Gangs.
constexpr std::chrono::seconds kReleaseStands{15};

// Whether a write that failed so may be carried out later.
bool MayLandStill(Code code) {
  return code == Code::kTimeout || code == Code::kUnavailable || code == Code::kInternal ||
         code == Code::kCancelled;
}

}  // namespace

base::Status GangController::Create(const CreateGang& create, const std::stop_token& stop) {
  auto created = client_.Create(kGangs, crds::SpecApplyJson(create.gang), stop);
  if (!created && created.error().code == Code::kAlreadyExists) {
    created = client_.Get(kGangs, {create.gang.ns, create.gang.name}, stop);  // the cache has not seen it yet
    kube::Json spec = created ? *created : kube::Json::object();
    spec.erase("status");
    // Or cannot read what was seen, which no new look mends: a later version of ours wrote it.
    if (created && !crds::GangFromJson(spec)) {
      return base::Fail(Code::kInvalid, "the Gang " + create.gang.ns + "/" + create.gang.name +
                                            " is there and cannot be read; delete it");
    }
  }
  if (!created) return base::Fail(std::move(created).error().In("create the Gang"));
  // An earlier version gave two gangs of pods' own words one name. Nothing is created until the other has gone, and to
  // look again at once would be to try without end.
  if (KeyOfGangObject(*created) != KeyOfGang(create.gang)) {
    return base::Fail(Code::kAlreadyExists, "the Gang " + create.gang.ns + "/" + create.gang.name +
                                                " is that of " + KeyOfGangObject(*created).ToString() +
                                                "; give one of the two gangs another name");
  }
  cache_.gangs().Saw(*std::move(created), clock_.Now());
  Say("Created Gang key=" + create.gang.ns + "/" + create.gang.name);
  return {};
}

base::Status GangController::Delete(const crds::Gang& gang, const std::string& why,
                                    const std::stop_token& stop) {
  const kube::ObjectKey key{gang.ns, gang.name};
  const auto deleted =
      client_.Delete(kGangs, key, {.uid = gang.uid, .resource_version = gang.resource_version}, stop);
  if (!deleted && deleted.error().code != Code::kNotFound) {
    if (deleted.error().code == Code::kConflict) cache_.gangs().Forget(key);
    return base::Fail(base::Error(deleted.error()).In("delete the Gang"));
  }
  cache_.gangs().Gone(key, gang.uid, clock_.Now());
  Say("Deleted Gang key=" + key.ToString() + " reason=\"" + why + "\"");
  return {};
}

base::Status GangController::WriteStatus(const crds::Gang& gang, crds::GangStatus status,
                                         const std::optional<Note>& note, const std::stop_token& stop) {
  crds::Gang changed = gang;
  changed.status = std::move(status);
  auto written = client_.UpdateStatus(kGangs, crds::ToJson(changed), stop);
  if (!written) {
    base::Error error = std::move(written).error();
    const kube::ObjectKey key{gang.ns, gang.name};
    if (error.code == Code::kConflict) {
      // Somebody wrote first, or our own last answer was lost: what stands there now decides.
      if (auto fresh = client_.Get(kGangs, key, stop)) cache_.gangs().Saw(*std::move(fresh), clock_.Now());
    } else if (error.code == Code::kNotFound) {
      cache_.gangs().Gone(key, gang.uid, clock_.Now());
    } else if (MayLandStill(error.code)) {
      in_doubt_.insert_or_assign(KeyOfGang(gang), gang.resource_version);
    }
    return base::Fail(error.In("write the Gang's status"));
  }
  cache_.gangs().Saw(*std::move(written), clock_.Now());
  metrics_.Moved(gang, changed.status, clock_.WallNow());
  if (!note) return {};
  if (note->warning) metrics_.Refused(note->reason);
  Tell(gang.spec.owner, gang.ns, *note);
  Say((note->warning ? "Refused Gang key=" : "Updated Gang key=") + gang.ns + "/" + gang.name +
      " reason=" + note->reason + " message=\"" + note->text + "\"");
  return {};
}

base::Status GangController::WriteCounts(const GangKey& key, const crds::Gang& gang, UpdateStatus update,
                                         const std::stop_token& stop) {
  const base::MonotonicTime now = clock_.Now();
  const auto last = counted_at_.find(key);
  if (last != counted_at_.end() && now - last->second < options_.count_period) {
    queue_.AddAfter(key.ToString(), last->second + options_.count_period - now);
    return {};
  }
  counted_at_[key] = now;
  TRY(WriteStatus(gang, std::move(update.status), update.note, stop));
  queue_.Add(key.ToString());
  return {};
}

PlanAnswer GangController::Look::Repaired(const RepairRanks& repair) const {
  return RepairMembers(*snapshot, members, crds::ToRows(*gang->status.placement), repair.lost, repair.barred);
}

base::Status GangController::Repair(const Look& look, const RepairRanks& repair,
                                    const std::stop_token& stop) {
  const GangInput input = look.Input(clock_.WallNow());
  PlanAnswer answer = look.Repaired(repair);
  const bool one = repair.lost.size() == 1;
  const std::string ranks = base::Counted(repair.lost.size(), "rank") +
                            (one ? " lost its slot (" : " lost their slots (") + repair.why + ")";
  if (auto* plan = std::get_if<PlannedGang>(&answer)) {
    crds::GangStatus status = PlannedStatus(input, plan->rows, plan->quality, std::move(plan->explanation));
    extender::Say(input, status, crds::kRepairing, true, "SlotLost", ranks);
    TRY(WriteStatus(*look.gang, std::move(status),
                    Note{false, "Repairing", ranks + (one ? "; it has a new one" : "; they have new ones")},
                    stop));
    queue_.Add(look.members.key.ToString());
    return {};
  }
  const auto refusal = ForARepair(std::get<placement::Refusal>(std::move(answer)), input, repair.barred);
  const std::string reason(placement::RefusalReasonName(refusal.reason));
  const std::string trouble = ranks + ": " + refusal.sentence;
  std::string choice =
      std::string(repair.barred.empty() ? "" : "mend the node and delete the pods that it refused, ") +
      "delete the owner, free a node of the same domain, or have lost ranks answered by a restart of all: "
      "heddle.dev/on-degraded: restart";
  if (look.members.restart_on_degraded) {
    const std::string why = trouble + "; all of it is restarted, as heddle.dev/on-degraded says";
    ASSIGN_OR_RETURN(choice, Restart(look, DegradedStatus(input, reason, why), stop));
    if (choice.empty()) return {};
  }
  crds::GangStatus status = DegradedStatus(input, reason, trouble + "; " + choice);
  if (status == look.gang->status) {
    // Said before. To look again at once would be to plan without end.
    queue_.AddAfter(look.members.key.ToString(), std::chrono::seconds(30));
    return {};
  }
  const std::string sentence = status.message;
  const bool told =
      look.gang->status.reason == reason && crds::IsTrue(look.gang->status.conditions, crds::kDegraded);
  TRY(WriteStatus(*look.gang, std::move(status),
                  told ? std::nullopt : std::optional(Note{true, reason, sentence}), stop));
  queue_.Add(look.members.key.ToString());
  return {};
}

base::Status GangController::ReadGangs(const std::stop_token& stop) {
  const base::MonotonicTime began = clock_.Now();
  TRY(cache_.ReadGangs(stop));
  ++gang_reads_;
  gangs_read_at_ = began;
  return {};
}

// Of two plans over the same GPUs the later is revoked, so a release needs to have seen all that were there when its
// own was written; one that came later is the other's to revoke. Gangs that were planned one after the other are let
// go after one read. It answers for the first release of a plan only: each after that reads.
bool GangController::WasReadSinceItsPlan(const GangKey& key) {
  const auto plan = committed_.extract(key);
  const auto gang = cache_.GangOf(key);
  return !plan.empty() && gang != nullptr && gang->resource_version == plan.mapped().version &&
         gang_reads_ > plan.mapped().reads && clock_.Now() - gangs_read_at_ < kReleaseStands;
}

base::Status GangController::Release(const GangKey& key, const std::stop_token& stop) {
  // Another leader may have planned over us since our commit, also for a rank that is let go long after the others: the
  // decision must stand on a consistent read too.
  if (!WasReadSinceItsPlan(key)) TRY(ReadGangs(stop), "check for overlapping plans");
  Plans plans = PlansThatStand();  // before the look: one that comes to stand later may not be in it
  ASSIGN_OR_RETURN(const Look look, LookAt(key, stop));
  Action action = Decide(look.Input(clock_.WallNow()));
  auto* release = std::get_if<ReleasePods>(&action);
  if (release == nullptr) {
    queue_.Add(key.ToString());
    return {};
  }
  if (const auto doubt = in_doubt_.find(key); doubt != in_doubt_.end()) {
    if (doubt->second == look.gang->resource_version) return Settle(look, stop);
    in_doubt_.erase(doubt);
  }
  if (const base::Status written = WriteRankFile(look, stop); !written) {
    return Blamed(look, "NoRankFile", written.error(), stop);
  }
  if (const base::Status made = MakeComputeDomain(look, stop); !made) {
    return Blamed(look, "NoComputeDomain", made.error(), stop);
  }
  const std::vector<crds::PlacedPod> rows = crds::ToRows(*look.gang->status.placement);
  std::vector<std::string> nodes;
  nodes.reserve(release->patches.size());
  for (const PodPatch& patch : release->patches) {
    const std::string& node = rows[std::size_t(patch.rank)].node;
    nodes.push_back(look.snapshot->Unusable(node).empty() ? node : std::string());
  }
  return LetGo(key,
               {.patches = std::move(release->patches),
                .in_order = release->in_order,
                .nodes = std::move(nodes),
                .gang = look.gang->ns + "/" + look.gang->name,
                .version = look.gang->resource_version,
                .plans = std::move(plans),
                .term = read_in_term_,
                .until = clock_.Now() + kReleaseStands},
               stop);
}

// Pods are let go by the plan that stands. A write that was made from the same version, and never answered, could land
// once they have gone and tell of other slots, which somebody else was given meanwhile: after this one it is refused.
base::Status GangController::Settle(const Look& look, const std::stop_token& stop) {
  crds::GangStatus status = look.gang->status;
  ++status.placement->epoch;
  TRY(WriteStatus(*look.gang, std::move(status), std::nullopt, stop));
  queue_.Add(look.members.key.ToString());
  return {};
}

// In slices, since it is a request a pod and nobody else is looked at meanwhile: after each the gang goes to the end of
// the queue. A crash loses nothing of it: the pods that are left are those that are still gated.
base::Status GangController::LetGo(const GangKey& key, Releasing releasing, const std::stop_token& stop) {
  const base::MonotonicTime until = clock_.Now() + kReleaseSlice;
  LetSomeGo(releasing, releasing.in_order, 1, until, stop);
  if (releasing.next >= releasing.in_order)
    LetSomeGo(releasing, releasing.patches.size(), options_.releases_at_once, until, stop);
  if (releasing.given_up) return releasing.refused;
  if (!may_write() || stop.stop_requested()) return {};
  if (releasing.next < releasing.patches.size()) {
    releasing_.insert_or_assign(key, std::move(releasing));
    queue_.Add(key.ToString());
    return {};
  }
  if (!releasing.refused) return releasing.refused;
  Say("Let go of pods key=" + releasing.gang + " count=" + std::to_string(releasing.patches.size()));
  queue_.Add(key.ToString());
  return {};
}

// Side by side, since an API server with a disk and a network of its own takes its milliseconds for each, and answers
// many together.
void GangController::LetSomeGo(Releasing& releasing, std::size_t end, int at_once, base::MonotonicTime until,
                               const std::stop_token& stop) {
  // One pod that the server refuses does not hold up the others; a server that refuses many is left alone for
  // a while.
  constexpr int kMostRefusals = 8;
  std::mutex mutex;  // of `releasing`
  const auto work = [&] {
    std::unique_lock lock(mutex);
    while (releasing.next < end && !releasing.given_up && may_write() && !stop.stop_requested() &&
           clock_.Now() < until) {
      const PodPatch& patch = releasing.patches[releasing.next++];
      lock.unlock();
      base::Status patched = PatchPod(patch, stop);
      lock.lock();
      if (patched) {
        metrics_.Released(1);
      } else if (!releasing.given_up) {
        releasing.given_up = patched.error().code != Code::kInvalid || ++releasing.refusals == kMostRefusals;
        releasing.refused = std::move(patched);
      }
    }
  };
  const std::size_t left = end - std::min(end, releasing.next);
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < std::min(left, std::size_t(at_once)); ++i) others.emplace_back(work);
  work();
}

// What is left of a release, where it still stands as it was decided: to look at all pods and Gangs again before each
// slice would cost more than the slice. But no pod is sent to a node that is lost meanwhile, since past the gate it can
// go nowhere but to its substitutes; nor by a plan beside which another one has come to stand, as the last leader's may
// that lands late: which of both gives way is decided with all that there is to see.
std::optional<GangController::Releasing> GangController::LeftToRelease(const GangKey& key) {
  const auto found = releasing_.find(key);
  if (found == releasing_.end()) return std::nullopt;
  Releasing left = std::move(found->second);
  releasing_.erase(found);
  const auto gang = cache_.GangOf(key);
  bool stands = left.term == read_in_term_ && clock_.Now() < left.until && gang != nullptr &&
                gang->resource_version == left.version;
  const std::shared_ptr<const Snapshot> now = current();
  for (std::size_t i = left.next; stands && now != nullptr && i < left.nodes.size(); ++i) {
    stands = left.nodes[i].empty() || now->Unusable(left.nodes[i]).empty();
  }
  if (stands) {
    const Plans plans = PlansThatStand();
    stands = std::includes(left.plans.begin(), left.plans.end(), plans.begin(), plans.end());
  }
  return stands ? std::optional(std::move(left)) : std::nullopt;
}

GangController::Plans GangController::PlansThatStand() {
  Plans plans;
  for (const Shared<crds::Gang>& gang : cache_.Gangs()) {
    if (HoldsSlots(*gang))
      plans.emplace_back(gang->uid, gang->status.placement->epoch, gang->status.planned_at);
  }
  std::sort(plans.begin(), plans.end());
  return plans;
}

// A gang that a file of ranks belongs to, where that one lives and is no gang of the same thing. Of the same thing are
// a restart, what its framework makes anew beside the old (a RayJob's next RayCluster), where the newest counts, and
// the groups of a LeaderWorkerSet, which keep their ranks apart in the file.
std::string GangController::OtherGangOf(const kube::Json& rank_file, const crds::Gang& gang) {
  const std::string file = kube::Name(rank_file);
  // A RayJob's RayClusters go by its name, and one beside them may have that name itself.
  const auto thing = [&file](const crds::GangSpec& spec) {
    return std::tuple(spec.owner.kind, spec.group.substr(0, spec.group.find('/')),
                      RankFileName(spec.owner.name) == file);
  };
  for (const std::string& owner : RankFileOwners(rank_file)) {
    const kube::ObjectPtr other = cache_.gangs().Get({gang.ns, owner});
    if (owner == gang.name || other == nullptr) continue;
    const auto whole = cache_.GangOf(KeyOfGangObject(*other));
    const bool lives = whole != nullptr && !crds::IsTrue(whole->status.conditions, crds::kEnded);
    if (lives && thing(whole->spec) != thing(gang.spec)) return owner;
  }
  return {};
}

// It has to be there before the first process reads it, and to change before a pod with another place starts.
base::Status GangController::WriteRankFile(const Look& look, const std::stop_token& stop) {
  if (look.members.rank_file.empty()) return {};
  const kube::ObjectKey key{look.gang->ns, look.members.rank_file};
  const auto there = client_.Get(kube::kConfigMaps, key, stop);
  if (!there && there.error().code != Code::kNotFound) {
    return base::Fail(base::Error(there.error()).In("write the rank file"));
  }
  if (!there) {
    ASSIGN_OR_RETURN(const kube::Json file, RankFile(*look.gang, look.members), "write the rank file");
    TRY(client_.Create(kube::kConfigMaps, file, stop), "write the rank file");
    return {};
  }
  if (RankFileOwners(*there).empty()) {
    return base::Fail(Code::kAlreadyExists,
                      "the ConfigMap " + key.ToString() +
                          " is not Heddle's, and the ranks of a gang belong there; rename it or its gang");
  }
  if (const std::string other = OtherGangOf(*there, *look.gang); !other.empty()) {
    return base::Fail(Code::kAlreadyExists, "the ConfigMap " + key.ToString() +
                                                " holds the ranks of the gang " + other +
                                                ", which has not ended; give one of them another name");
  }
  ASSIGN_OR_RETURN(kube::Json file, RankFile(*look.gang, look.members, &*there), "write the rank file");
  const kube::Json* data = kube::Find(*there, {"data"});
  const bool same =
      data != nullptr && *data == file["data"] &&
      kube::ArrayAt(*there, {"metadata", "ownerReferences"}) == file["metadata"]["ownerReferences"];
  if (same) return {};
  file["metadata"]["resourceVersion"] = kube::ResourceVersion(*there);
  TRY(client_.Update(kube::kConfigMaps, file, stop), "write the rank file");
  return {};
}

namespace {

// A name that is taken, a right or a kind that is missing: nothing that another try in a moment would mend.
bool IsForAPerson(Code code) {
  return code == Code::kAlreadyExists || code == Code::kTooLarge || code == Code::kForbidden ||
         code == Code::kInvalid || code == Code::kUnimplemented;
}

}  // namespace

base::Status GangController::Blamed(const Look& look, const std::string& reason, base::Error error,
                                    const std::stop_token& stop) {
  if (!IsForAPerson(error.code)) return base::Fail(std::move(error));
  crds::GangStatus status = look.gang->status;
  SayPods(look.Input(clock_.WallNow()), status);  // or a rank that is there again would be missed since then
  Blame(status, reason, error.message);
  const bool told = look.gang->status.reason == reason && look.gang->status.message == status.message;
  if (status != look.gang->status) {
    TRY(WriteStatus(*look.gang, std::move(status),
                    told ? std::nullopt : std::optional(Note{true, reason, error.message}), stop));
  }
  // No event tells when it is cleared.
  error.retry_after = std::chrono::seconds(5);
  return base::Fail(std::move(error));
}

namespace {

// For whoever installs clusters, where the API server's words alone do not say what to do.
base::Error WhyNoComputeDomain(base::Error error) {
  if (error.code == Code::kForbidden) {
    return error.In("Heddle may not make ComputeDomains, set computeDomains.enabled=true in its chart");
  }
  if (error.code == Code::kNotFound) {
    error.code = Code::kUnimplemented;
    return error.In("the cluster has no ComputeDomains, install NVIDIA's DRA driver");
  }
  return error;
}

}  // namespace

// After the plan, so that a gang without a place has none; before the first pod goes, so that each finds its channel.
// It stays through restarts and repairs, and the next leader finds the one that the last one made.
base::Status GangController::MakeComputeDomain(const Look& look, const std::stop_token& stop) {
  if (look.members.compute_domain.empty()) return {};
  const kube::Json wanted = ComputeDomainOf(*look.gang, look.members.compute_domain);
  const kube::ObjectKey key = kube::KeyOf(wanted);
  const auto there = client_.Get(kComputeDomains, key, stop);
  if (there) {
    const auto fault = ComputeDomainFault(*there, wanted);
    return fault ? base::Status(base::Fail(Code::kAlreadyExists, *fault)) : base::Status{};
  }
  if (there.error().code != Code::kNotFound) return base::Fail(WhyNoComputeDomain(there.error()));
  const auto claims = client_.ListAll(kResourceClaims, {.ns = key.ns}, stop);
  if (!claims) return base::Fail(WhyNoComputeDomain(claims.error()));
  if (const auto old = OutdatedClaims(look.members, claims->items); !old.empty()) {
    return base::Fail(
        Code::kAlreadyExists,
        base::Counted(old.size(), "claim") + " of its pods (" + old.front() +
            ") came from another ComputeDomain " + key.ToString() +
            ", which is gone, and would never be valid; make the pods anew: suspend the job and resume "
            "it, or delete them where it cannot be suspended");
  }
  const auto made = client_.Create(kComputeDomains, wanted, stop);
  if (!made && made.error().code == Code::kAlreadyExists) {
    return base::Fail(Code::kConflict, "somebody made the ComputeDomain " + key.ToString() + " just now");
  }
  if (!made) return base::Fail(WhyNoComputeDomain(made.error()));
  Say("Created ComputeDomain key=" + key.ToString());
  return {};
}
base::Status GangController::PatchPod(const PodPatch& patch, const std::stop_token& stop) {
  auto patched = client_.Patch(kube::kPods, patch.pod, kube::PatchType::kJson, patch.patch, {}, stop);
  if (patched) {
    cache_.SawPod(*std::move(patched));
    return {};
  }
  base::Error error = std::move(patched).error();
  if (error.code != Code::kInvalid && error.code != Code::kConflict && error.code != Code::kNotFound) {
    return base::Fail(error.In("release pod " + patch.pod.ToString()));
  }
  // It is not the pod that we read: gone, made anew, or let go before a crash of ours. Look at it and decide
  // again.
  auto fresh = client_.Get(kube::kPods, patch.pod, stop);
  if (fresh) {
    cache_.SawPod(*std::move(fresh));
    return error.code == Code::kInvalid
               ? base::Status(base::Fail(error.In("release pod " + patch.pod.ToString())))
               : base::Status{};
  }
  if (fresh.error().code != Code::kNotFound) return base::Fail(std::move(fresh).error());
  cache_.pods().Gone(patch.pod, patch.patch[0]["value"].get<std::string>(), clock_.Now());
  return {};
}

}  // namespace heddle::extender
