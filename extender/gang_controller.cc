#include "extender/gang_controller.h"

#include <algorithm>
#include <thread>

#include "crds/observation.h"
#include "extender/gang_status.h"
#include "extender/lost_nodes.h"
#include "extender/observing.h"
#include "extender/owner_kinds.h"
#include "extender/resources.h"
#include "extender/slot_faults.h"
#include "kube/packed.h"

namespace heddle::extender {
namespace {

constexpr std::chrono::seconds kCountPeriod{1};  // metrics are scraped far less often
// Each pod that is bound is a reason to walk the queue. While a large gang is let go that is done this often only, or
// it would wait for a walk after each of its slices.
constexpr std::chrono::seconds kBetweenWalks{2};

// Prioritize reckons its scores anew for each snapshot that is published, so few are.
bool ReserveAlike(const Snapshot& a, const Snapshot& b) {
  return std::equal(a.fabrics.begin(), a.fabrics.end(), b.fabrics.begin(), b.fabrics.end(),
                    [](const FabricView& x, const FabricView& y) { return x.may_reserve == y.may_reserve; });
}

// To observe is to change nothing.
ControllerOptions Checked(ControllerOptions options) {
  options.preemption = options.preemption && options.mode == Mode::kPlace;
  return options;
}

}  // namespace

GangController::GangController(kube::Client& client, base::Clock& clock, base::Random random,
                               Metrics& metrics, ControllerOptions options)
    : client_(client),
      clock_(clock),
      metrics_(metrics),
      options_(Checked(std::move(options))),
      queue_(clock),
      events_(client, clock, random.Fork(),
              {.component = "heddle-extender", .instance = options_.identity, .log = options_.log}),
      cache_(client, clock, random.Fork(),
             {.gang_changed =
                  [this](const GangKey& key) {
                    queue_.AddAfter(key.ToString(), look_rest_.Wait(key, clock_.Now()));
                    queue_.AddAfter(std::string(kCountKey), kCountPeriod);
                  },
              .passed_the_gate = [this](const kube::ObjectPtr& pod) { WarnUngated(*pod); },
              .capacity_changed = [this] { queue_.AddAfter(std::string(kCapacityKey), options_.settle); },
              .slot_left = [this](const PodFacts& pod) { slots_left_.Add(pod); },
              .mode = options_.mode,
              .preemption = options_.preemption,
              .log = options_.log}) {}

void GangController::Run(const std::stop_token& stop) {
  std::vector<std::jthread> threads;
  threads.emplace_back([this, stop] { cache_.Run(stop); });
  threads.emplace_back([this, stop] { events_.Run(stop); });
  queue_.AddAfter(std::string(kCapacityKey), options_.settle);
  Work(stop);
}

void GangController::SetLeading(bool leading) {
  if (leading) ++term_;
  leading_ = leading;
  metrics_.Leading(leading);
  queue_.Add(std::string(kLeadKey));
}

std::shared_ptr<const Snapshot> GangController::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

void GangController::Work(const std::stop_token& stop) {
  while (const auto key = queue_.Get(stop)) {
    const base::Status done = DoKey(*key, stop);
    queue_.Done(*key);
    // A walk that failed is done anew as a whole, and none has gone well before its last slice has.
    const std::string again(*key == kWalkKey ? kPlanKey : std::string_view(*key));
    if (done) {
      if (again != kPlanKey || !pass_) queue_.Forget(again);
      metrics_.Reconciled(clock_.WallNow());
      continue;
    }
    if (stop.stop_requested()) return;
    metrics_.WriteFailed(std::string(base::CodeName(done.error().code)));
    Say("Failed key=" + *key + " error=\"" + base::ToString(done.error()) + "\"");
    if (done.error().retry_after) {
      queue_.AddAfter(again, *done.error().retry_after);
    } else {
      queue_.AddRateLimited(again);
    }
  }
}

base::Status GangController::DoKey(const std::string& key, const std::stop_token& stop) {
  if (key == kCapacityKey) {
    if (!cache_.synced()) {
      queue_.AddAfter(key, options_.settle);
      return {};
    }
    PublishSnapshot();
    CapacityChanged();
    return {};
  }
  if (key == kCountKey) {
    metrics_.Gangs(CountGangs(cache_.Gangs().items()));
    return {};
  }
  if (key == kLeadKey && !leading_) {
    waiting_.clear();
    // Gangs that go while somebody else leads are never looked at here again.
    troubles_.clear();
    counted_at_.clear();
    look_rest_.Clear();
    lapsed_.clear();
    bound_claims_.clear();
    releasing_.clear();
    in_doubt_.clear();
    committed_.clear();
    pass_.reset();
    PublishKept({});
    metrics_.Waiting(0);
    return {};
  }
  if (!leading_) return {};
  if (key == kLeadKey) return BeginToLead(stop);
  if (!may_write()) return {};  // every gang is looked at once leadership has begun
  if (key == kWalkKey) return pass_ ? PlanWaiting(stop) : base::Status{};
  if (key == kPlanKey && pass_) {
    pass_->again = true;  // or a walk would never reach its end on a cluster where something always changes
    return {};
  }
  if (key == kPlanKey) {
    const std::chrono::nanoseconds left = walked_at_ + kBetweenWalks - clock_.Now();
    if (!releasing_.empty() && left.count() > 0) {
      queue_.AddAfter(key, left);
      return {};
    }
    return PlanWaiting(stop);
  }
  if (key == kYieldKey) return YieldAll(stop);
  if (key == kSettleKey) {
    cache_.SettleOverdue(stop);
    if (options_.mode == Mode::kObserve) {
      for (const crds::Gang& gang : SurplusObservations(cache_.Gangs().items())) {
        TRY(Delete(gang, "newer observations take its place", stop));
      }
    }
    if (options_.preemption) queue_.Add(std::string(kYieldKey));
    queue_.AddAfter(key, std::chrono::seconds(10));
    return {};
  }
  const auto gang = GangKey::Parse(key);
  return gang ? Reconcile(*gang, stop) : base::Status{};
}

// The caches may be older than what the last leader wrote.
base::Status GangController::BeginToLead(const std::stop_token& stop) {
  const std::uint64_t term = term_;
  if (read_in_term_ == term) return {};
  if (!cache_.synced()) {
    queue_.AddAfter(std::string(kLeadKey), options_.settle);
    return {};
  }
  releasing_.clear();  // of a time before, which may have no key any more
  committed_.clear();
  pass_.reset();
  TRY(cache_.ReadAll(stop), "begin to lead");
  // Before the first gang is looked at: others have been placed on these slots, and must not find them taken again.
  lapsed_.clear();
  for (const auto& gang : cache_.Gangs()) {
    if (!HoldsSlots(*gang)) continue;
    in_doubt_.insert_or_assign(KeyOfGang(*gang), gang->resource_version);
    if (auto lapsed = LapsedRanks(*gang, clock_.WallNow()); !lapsed.empty())
      lapsed_.emplace(KeyOfGang(*gang), std::move(lapsed));
  }
  read_in_term_ = term;
  Say("Started to lead identity=" + options_.identity);
  for (const GangKey& key : cache_.AllGangs()) queue_.Add(key.ToString());
  queue_.AddAfter(std::string(kCapacityKey), options_.settle);
  queue_.AddAfter(std::string(kSettleKey), std::chrono::seconds(10));
  return {};
}

void GangController::PublishSnapshot() {
  const SnapshotInputs inputs = Inputs(std::nullopt);
  Shared<Snapshot> snapshot = snapshots_.Of(inputs);
  if (snapshot != counted_) metrics_.Stands(TakeCensus(*snapshot));
  counted_ = snapshot;
  metrics_.Gangs(CountGangs(inputs.gangs.items()));
  metrics_.DevicesDiffer(CountDevicesDiffer(inputs.gangs.items()));
  Publish(std::move(snapshot));
}

void GangController::Publish(Shared<Snapshot> snapshot) {
  {
    const std::lock_guard lock(mutex_);
    current_.swap(snapshot);  // what was ends after the lock
  }
  slots_left_.Forget(left_when_read_);
}

// Room may have appeared or gone under a plan: gangs that are not all bound look again, those that run where
// something broke or was mended too, and those that wait try again.
void GangController::CapacityChanged() {
  if (!may_write()) return;
  const std::shared_ptr<const Snapshot> snapshot = current();
  for (const auto& gang : cache_.Gangs()) {
    const auto& conditions = gang->status.conditions;
    if (crds::IsTrue(conditions, crds::kEnded)) continue;
    const bool told = gang->status.reason != kNodeLost && !StandsOn(*gang, snapshot->silent) &&
                      SaysItsFaults(*gang, *snapshot) && SaysGiven(*gang, snapshot->given);
    if (crds::IsTrue(conditions, crds::kRunning) && told) continue;
    const GangKey key = KeyOfGang(*gang);
    if (!HoldsSlots(*gang) && waiting_.contains(key)) continue;  // the walk looks at it
    queue_.Add(key.ToString());
  }
  if (!waiting_.empty() || !kept_nodes()->empty()) queue_.Add(std::string(kPlanKey));
  if (options_.preemption) queue_.Add(std::string(kYieldKey));
}

std::shared_ptr<const KeptNodes> GangController::kept_nodes() const {
  const std::lock_guard lock(mutex_);
  return kept_nodes_;
}

void GangController::PublishKept(KeptNodes kept) {
  auto published = std::make_shared<const KeptNodes>(std::move(kept));
  const std::lock_guard lock(mutex_);
  kept_nodes_ = std::move(published);
}

std::string GangController::MetricsText() {
  const base::MonotonicTime now = clock_.Now();
  for (const auto& [resource, heard] : cache_.HeardAt()) metrics_.Heard(resource, now - heard);
  metrics_.QueueDepth(queue_.size());
  return metrics_.Text();
}

SnapshotInputs GangController::Inputs(const std::optional<GangKey>& without) {
  left_when_read_ = slots_left_.Number();
  SnapshotInputs inputs = cache_.Inputs(without);
  inputs.lapsed = lapsed_;
  inputs.spares = options_.spares;
  return inputs;
}

base::Result<kube::ObjectPtr> GangController::OwnerOf(const GangKey& key, crds::GangOwner owner,
                                                      const std::stop_token& stop) {
  if (owner.kind != kPodGroup) return cache_.OwnerOf(key, owner, stop);
  std::vector<std::string> versions;
  for (const OwnerKind& kind : OwnerKinds()) {
    if (kind.resource.kind == kPodGroup) versions.push_back(kind.resource.ApiVersion());
  }
  std::stable_partition(versions.begin(), versions.end(),
                        [this](const std::string& version) { return version == pod_groups_; });
  for (const std::string& version : versions) {
    owner.api_version = version;
    ASSIGN_OR_RETURN(kube::ObjectPtr object, cache_.OwnerOf(key, owner, stop));
    if (object == nullptr) continue;
    pod_groups_ = version;
    return object;
  }
  return nullptr;
}

base::Result<GangController::Look> GangController::LookAt(const GangKey& key, const std::stop_token& stop) {
  Look look;
  look.gang = cache_.GangOf(key);
  const auto pods = cache_.PodsOf(key);
  crds::GangOwner owner;
  if (look.gang != nullptr) owner = look.gang->spec.owner;
  if (!pods.empty()) owner = MembershipOf(kube::Unpacked(*pods.objects.front())).owner;
  if (!owner.kind.empty()) {
    ASSIGN_OR_RETURN(const kube::ObjectPtr object, OwnerOf(key, owner, stop), "read the owner");
    look.members =
        ReadMembers(key, object.get(), pods, options_.mode, look.gang.get(), cache_.JobsDoneOf(key));
    if (pods.empty() && object == nullptr) look.members.spec.owner = owner;
  } else {
    look.members.key = key;  // neither pods nor a Gang: an owner that has made none yet, or not for us
  }
  const bool collecting = look.gang != nullptr && !HoldsSlots(*look.gang) && !look.members.refusal &&
                          look.members.seen() < look.members.spec.pods;
  if (collecting) look.members.trouble = TroubleOf(key, look.members.spec.owner, stop);
  look.snapshot = snapshots_.Of(Inputs(std::nullopt));
  // What is reserved for pods that are let go next, or for a rank whose pod just went, the verbs keep from all others;
  // and whoever waits for a GPU is tried again in the moment in which that pod goes.
  if (const auto published = current(); published != nullptr && !ReserveAlike(*published, *look.snapshot))
    Publish(look.snapshot);
  look.preemption = options_.preemption;
  return look;
}

// Each pod that comes is a reason to look, and what keeps the others away does not change as fast.
std::string GangController::TroubleOf(const GangKey& key, const crds::GangOwner& owner,
                                      const std::stop_token& stop) {
  constexpr std::chrono::seconds kAskAgain{10};
  const base::MonotonicTime now = clock_.Now();
  const auto known = troubles_.find(key);
  if (known != troubles_.end() && now - known->second.asked < kAskAgain) return known->second.sentence;
  Trouble& trouble = troubles_[key];
  trouble = {now, FailedCreate(owner, key.ns, stop)};
  return trouble.sentence;
}

// A quota or an admission policy may keep a controller from making its pods; only its events say so.
std::string GangController::FailedCreate(const crds::GangOwner& owner, const std::string& ns,
                                         const std::stop_token& stop) {
  const auto events = client_.List(
      kube::kEvents,
      {.ns = ns, .field_selector = "involvedObject.uid=" + owner.uid + ",reason=FailedCreate", .limit = 100},
      stop);
  if (!events || events->items.empty()) return {};
  return kube::StringAt(events->items.back(), {"message"});
}

// A rank whose pod went away keeps its slot for the next one, for five minutes, which may wait for quota meanwhile.
// Since when is in the Gang, so that a crash starts no new wait.
void GangController::NoteLapsed(const GangKey& key, const Look& look) {
  lapsed_.erase(key);
  if (look.gang == nullptr || !HoldsSlots(*look.gang)) return;
  const base::WallTime now = clock_.WallNow();
  std::optional<std::chrono::microseconds> soonest;
  for (const auto& [rank, since] : MissingOf(look.Input(now))) {
    const auto left =
        std::min<std::chrono::microseconds>(since + kSlotKept - now, kSlotKept);  // whatever stands there
    if (left.count() <= 0) {
      lapsed_[key].insert(rank);
    } else if (!soonest || left < *soonest) {
      soonest = left;
    }
  }
  if (soonest) queue_.AddAfter(key.ToString(), *soonest);  // nothing else may happen until then
}

base::Status GangController::Reconcile(const GangKey& key, const std::stop_token& stop) {
  if (auto left = LeftToRelease(key)) return LetGo(key, *std::move(left), stop);
  const base::MonotonicTime began = clock_.Now();
  look_rest_.Began(key, began);
  ASSIGN_OR_RETURN(Look look, LookAt(key, stop));
  look_rest_.Ended(key, look.members.spec.pods, began, clock_.Now());
  if (look.gang == nullptr) {
    counted_at_.erase(key);
    in_doubt_.erase(key);
    committed_.erase(key);
  }
  if (look.gang == nullptr || HoldsSlots(*look.gang)) troubles_.erase(key);
  const auto lapsed_before = lapsed_;
  NoteLapsed(key, look);
  if (lapsed_ != lapsed_before) queue_.AddAfter(std::string(kCapacityKey), options_.settle);
  Action action = options_.mode == Mode::kObserve
                      ? DecideObserved(look.Input(clock_.WallNow()), Inputs(std::nullopt))
                      : Decide(look.Input(clock_.WallNow()));
  if (!std::holds_alternative<NeedsPlan>(action) && waiting_.erase(key) > 0) {
    metrics_.Waiting(int(waiting_.size()));
    // What it kept, also in a walk that goes on, is the others' now.
    if (pass_ || !kept_nodes()->empty()) queue_.Add(std::string(kPlanKey));
  }
  return Perform(key, look, std::move(action), stop);
}

base::Status GangController::Perform(const GangKey& key, Look& look, Action action,
                                     const std::stop_token& stop) {
  if (const auto* nothing = std::get_if<Nothing>(&action)) {
    if (nothing->look_again) queue_.AddAfter(key.ToString(), *nothing->look_again);
    return {};
  }
  if (std::holds_alternative<NeedsPlan>(action)) {
    waiting_.try_emplace(key);
    metrics_.Waiting(int(waiting_.size()));
    queue_.AddAfter(std::string(kPlanKey), options_.settle);
    return {};
  }
  if (!may_write()) return {};
  base::Status done;
  if (const auto* create = std::get_if<CreateGang>(&action)) {
    done = Create(*create, stop);
  } else if (const auto* remove = std::get_if<DeleteGang>(&action)) {
    done = Delete(*look.gang, remove->why, stop);
  } else if (auto* update = std::get_if<UpdateStatus>(&action)) {
    if (!update->urgent) return WriteCounts(key, *look.gang, std::move(*update), stop);
    const auto priced = crds::WasPriced(look.gang->status) ? std::nullopt : update->status.observed;
    const auto predicted = update->status.predicted;
    done = WriteStatus(*look.gang, std::move(update->status), update->note, stop);
    if (done && priced && predicted) metrics_.Observed(*predicted, priced->heddle);
  } else if (const auto* repair = std::get_if<RepairRanks>(&action)) {
    return Repair(look, *repair, stop);
  } else if (std::holds_alternative<ReleasePods>(action)) {
    done = Release(key, stop);
  }
  if (done) queue_.Add(key.ToString());
  return done;
}

// Once for all the pods of an owner: what it asked for is not done, and it would never know.
void GangController::WarnUngated(const kube::Json& pod) {
  constexpr std::size_t kMostRemembered = 10'000;
  if (!leading_ || options_.mode != Mode::kPlace || kube::DeletionTimestamp(pod)) return;
  const Membership membership = MembershipOf(pod);
  crds::GangOwner owner = membership.owner;
  if (owner.uid.empty()) owner = {"v1", "Pod", kube::Name(pod), kube::Uid(pod)};
  {
    const std::lock_guard lock(mutex_);
    if (warned_.size() >= kMostRemembered) warned_.clear();
    if (!warned_.insert(membership.key.owner_uid).second) return;
  }
  Tell(owner, membership.key.ns,
       {true, "NotGated",
        "pod " + kube::Name(pod) +
            " carries heddle.dev/parallelism but not the gate heddle.dev/gang, so it was not planned: label "
            "the "
            "namespace heddle.dev/scope=enabled, name no other scheduler, and make the pods anew"});
}

void GangController::Tell(const crds::GangOwner& owner, const std::string& ns, const Note& note) {
  events_.Record({owner.api_version, owner.kind, ns, owner.name, owner.uid},
                 note.warning ? kube::Severity::kWarning : kube::Severity::kNormal, note.reason, note.text);
}

void GangController::Say(const std::string& line) const {
  if (options_.log) options_.log(line);
}

}  // namespace heddle::extender
