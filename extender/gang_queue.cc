// The queue of the gang controller: who is planned next, and what waits behind whom.
#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/counted.h"
#include "extender/gang_controller.h"
#include "extender/holders.h"
#include "extender/more_room.h"

namespace heddle::extender {
namespace {

const kube::Resource kClaims{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true};
const kube::Resource kVolumes{"", "v1", "persistentvolumes", "PersistentVolume", false};

constexpr std::chrono::seconds kSameReason{
    30};  // for so long the words of the same reason are kept as they are

// So much of a walk is done at a time, or as much as the others took since, within bounds. A repair has 100 ms: in
// these it waits for this and for the planning that is under way then, and is planned and written itself.
constexpr std::chrono::milliseconds kWalkSlice{50};
constexpr std::chrono::milliseconds kLongestSlice{200};

constexpr std::chrono::minutes kBoundFor{30};    // for so long what was read of a bound claim holds
constexpr std::chrono::seconds kClaimAgain{30};  // so much later one that was not bound may be
constexpr std::size_t kMostClaims = 50'000;      // remembered, beside those of one gang: 10 MB

// Only a gang that would fit if others left has something to wait for.
bool IsBlocked(placement::RefusalReason reason) {
  return reason == placement::RefusalReason::kNotEnoughFree ||
         reason == placement::RefusalReason::kRequirement;
}

std::string WithLeftOut(const placement::Refusal& refusal) {
  std::string text = refusal.sentence;
  std::string words;
  for (const auto& [word, count] : refusal.left_out) {
    if (text.find(word) != std::string::npos) continue;
    words += (words.empty() ? "" : ", ") + base::Counted(count, "node") + " " + word;
  }
  return words.empty() ? text : text + " (left out: " + words + ")";
}

struct Lack {
  placement::Refusal refusal;
  bool in_the_next = false;  // it has a place on what came free, unless the next walk gives it to those ahead
};

// Of a gang that was refused while `closed` nodes are closed to it, of which gangs ahead keep `kept`. Those look like
// nodes that its own pods exclude, and what is said of those would be untrue. Without them it is refused for what it
// lacks, or waits for nothing but its turn.
Lack WhatItLacks(const Snapshot& snapshot, const GangMembers& members, placement::Refusal refusal,
                 const std::set<std::string>& closed, const std::set<std::string>& kept, Spares spares) {
  if (closed.empty()) return {std::move(refusal)};
  PlanAnswer apart = PlanMembers(snapshot, members, {}, spares);
  if (auto* lacks = std::get_if<placement::Refusal>(&apart)) return {std::move(*lacks)};
  const bool in_the_next = closed.size() > kept.size() &&
                           std::holds_alternative<PlannedGang>(PlanMembers(snapshot, members, kept, spares));
  return {{placement::RefusalReason::kNotEnoughFree,
           "there is room for it, which is kept for gangs ahead of it in the queue",
           {},
           std::nullopt},
          in_the_next};
}

}  // namespace

std::set<std::string> GangController::QueuePass::Closed() const {
  std::set<std::string> closed = kept;
  if (waits_ahead) closed.insert(came_free.begin(), came_free.end());
  return closed;
}

// Gangs that have begun come first: those ahead of them may wait for the very nodes that they hold, and a Gang that
// somebody deleted arrives anew. Then priority, then arrival, then name. This is an order of planning only: quota
// and fair share belong to Kueue. Whoever comes during a walk has his place in it, also ahead of those who were asked
// before he was there. Where somebody stands is read once, as all of his pods have to be read for it.
void GangController::TakeInNewcomers(QueuePass& pass) {
  std::vector<GangKey> newcomers;
  for (const auto& [key, told] : waiting_) {
    if (!pass.known.contains(key)) newcomers.push_back(key);
  }
  if (newcomers.empty()) return;
  std::map<GangKey, std::shared_ptr<const crds::Gang>> gangs;
  for (const auto& gang : cache_.Gangs()) gangs.emplace(KeyOfGang(*gang), gang);
  for (const GangKey& key : newcomers) {
    const auto gang = gangs.find(key);
    if (gang == gangs.end()) {
      queue_.Add(key.ToString());
      continue;
    }
    const auto pods = cache_.PodsOf(key);
    const bool begun = std::any_of(pods.facts.begin(), pods.facts.end(),
                                   [](const auto& pod) { return pod->live() && !pod->gated; });
    const Place place(!begun, -std::int64_t(gang->second->spec.priority),
                      gang->second->created_at.value_or(base::WallTime::max()), key);
    pass.turns.push_back({.place = place});
    pass.known.insert(key);
  }
  std::sort(pass.turns.begin(), pass.turns.end(),
            [](const QueuePass::Turn& a, const QueuePass::Turn& b) { return a.place < b.place; });
}

// Those ahead found no place without it, and were they passed by now they would not get it in the walk that follows.
void GangController::NoteWhatCameFree(QueuePass& pass, const Shared<Snapshot>& is) {
  const Shared<Snapshot> was = std::exchange(pass.seen, is);
  if (was == nullptr || was == is) return;
  std::set<std::string> nodes = NodesWithMoreRoom(*was, *is);
  if (nodes.empty()) return;
  pass.came_free.merge(nodes);
  queue_.AddAfter(std::string(kPlanKey), options_.settle);
}

// In slices, since each gang that waits is a planning and nobody else is looked at meanwhile: after each the walk goes
// to the end of the work queue. Who gets what is as if all of it had been done at once.
base::Status GangController::PlanWaiting(const std::stop_token& stop) {
  if (!pass_) {
    pass_ = std::make_unique<QueuePass>();
    pass_->left_off = clock_.Now();
  }
  base::Result<bool> more = PlanSlice(*pass_, stop);
  if (more && *more) {
    queue_.Add(std::string(kWalkKey));
    return {};
  }
  if (pass_->again) queue_.Add(std::string(kPlanKey));
  base::Status refused = std::move(pass_->refused);
  pass_.reset();
  walked_at_ = clock_.Now();
  if (!more) return base::Fail(std::move(more).error());
  return refused;
}

// A gang that cannot start keeps the nodes it needs from those behind it, who may take any others: backfill
// never delays the head. A gang that said heddle.dev/wait lets others pass for so long.
base::Result<bool> GangController::PlanSlice(QueuePass& pass, const std::stop_token& stop) {
  const base::MonotonicTime start = clock_.Now();
  // Where the others have much to do, as after the loss of many nodes, a walk is to reach its end nevertheless.
  const std::chrono::nanoseconds slice =
      std::clamp<std::chrono::nanoseconds>(start - pass.left_off, kWalkSlice, kLongestSlice);
  bool any = false;
  TakeInNewcomers(pass);
  pass.kept.clear();
  pass.waits_ahead = false;
  for (QueuePass::Turn& turn : pass.turns) {
    const GangKey& key = std::get<GangKey>(turn.place);
    if (!turn.asked && waiting_.contains(key)) {
      if (!may_write() || stop.stop_requested()) {
        pass.refused = {};
        return false;
      }
      if (any && clock_.Now() - start >= slice) {
        pass.left_off = clock_.Now();
        metrics_.Waiting(int(waiting_.size()));
        return true;
      }
      any = turn.asked = true;
      pass.others_behind = &turn != &pass.turns.back();
      pass.keeps.clear();
      base::Status planned = PlanOne(key, pass, stop);
      // What the server will not take of one gang, an admission policy for example, holds up nobody behind it.
      if (!planned && planned.error().code != base::Code::kInvalid &&
          planned.error().code != base::Code::kForbidden) {
        return base::Fail(std::move(planned).error());
      }
      if (!planned) pass.refused = std::move(planned);
      for (const std::string& node : pass.keeps) {
        if (!pass.kept.contains(node)) turn.keeps.insert(node);
      }
    }
    pass.kept.insert(turn.keeps.begin(), turn.keeps.end());
    pass.waits_ahead = pass.waits_ahead || (turn.asked && waiting_.contains(key));
  }
  PublishKept(std::move(pass.emptied));
  metrics_.Waiting(int(waiting_.size()));
  return false;
}

base::Status GangController::Commit(const Look& look, PlannedGang plan, const std::stop_token& stop) {
  const GangKey& key = look.members.key;
  for (const std::string& note : look.members.notes) plan.explanation.push_back(note);
  crds::GangStatus status =
      PlannedStatus(look.Input(clock_.WallNow()), plan.rows, plan.quality, std::move(plan.explanation));
  std::set<std::string_view> nodes;
  std::size_t pods = 0;
  for (const crds::PlacedPod& row : plan.rows) {
    if (!row.has_slot()) continue;
    nodes.insert(row.node);
    ++pods;
  }
  const std::string where = base::Counted(pods, "pod") + " on " + base::Counted(nodes.size(), "node");
  TRY(WriteStatus(*look.gang, std::move(status), Note{false, "Planned", where}, stop));
  if (const auto written = cache_.GangOf(key)) committed_[key] = {written->resource_version, gang_reads_};
  waiting_.erase(key);
  queue_.Add(key.ToString());
  if (look.members.let_go() == 0) return {};  // the release writes it
  ASSIGN_OR_RETURN(const Look again, LookAt(key, stop));
  if (again.gang != nullptr && again.gang->status.placement) TRY(WriteRankFile(again, stop));
  return {};
}

base::Status GangController::PlanOne(const GangKey& key, QueuePass& pass, const std::stop_token& stop) {
  ASSIGN_OR_RETURN(Look look, LookAt(key, stop));
  NoteWhatCameFree(pass, look.snapshot);
  if (!std::holds_alternative<NeedsPlan>(Decide(look.Input(clock_.WallNow())))) {
    waiting_.erase(key);
    queue_.Add(key.ToString());
    return {};
  }
  // A plan that is made anew may use what the old one reserved.
  if (HoldsSlots(*look.gang)) {
    look.snapshot = std::make_shared<const Snapshot>(TakeSnapshot(Inputs(key)));
  }
  const GangInput input = look.Input(clock_.WallNow());
  const base::MonotonicTime start = clock_.Now();
  // One that ran once had a place, and lost all of it: this is a repair, too.
  const bool had_place = crds::FindCondition(look.gang->status.conditions, crds::kRunning) != nullptr;
  const Spares spares = had_place ? Spares::kUse : Spares::kLeave;
  const std::set<std::string> closed = pass.Closed();
  PlanAnswer answer = PlanMembers(*look.snapshot, look.members, closed, spares);
  metrics_.Planned(std::holds_alternative<PlannedGang>(answer), clock_.Now() - start);
  auto* plan = std::get_if<PlannedGang>(&answer);
  Lack lack;
  if (plan == nullptr) {
    lack = WhatItLacks(*look.snapshot, look.members, std::get<placement::Refusal>(std::move(answer)), closed,
                       pass.kept, spares);
  }
  const placement::Refusal& refusal = lack.refusal;
  const bool blocked = plan == nullptr && IsBlocked(refusal.reason);
  // Not of a gang that has no place on this cluster anyway. One that waits for room is asked, too: others would be made
  // to leave, or kept from nodes, for pods that cannot start.
  if (plan != nullptr || blocked) {
    ASSIGN_OR_RETURN(const auto volumes, VolumeRefusal(look.members, stop));
    if (volumes) {
      queue_.AddAfter(std::string(kPlanKey), kClaimAgain);  // claims are not watched
      return Refuse(look, volumes->reason, volumes->sentence, false, stop);
    }
  }
  if (plan != nullptr) return Commit(look, std::move(*plan), stop);
  const auto waited = input.now - look.gang->created_at.value_or(input.now);
  std::string sentence = WithLeftOut(refusal);
  const std::string holders = Holders(*look.snapshot, key);
  if (blocked && !holders.empty()) sentence += "; " + holders;
  const std::chrono::nanoseconds left = look.gang->spec.wait.value_or(std::chrono::seconds(0)) - waited;
  if (lack.in_the_next) {
    // What others left for it stays closed to pods until then.
    const std::shared_ptr<const KeptNodes> published = kept_nodes();
    for (const auto& [node, priority] : *published) {
      if (priority == look.members.spec.priority) pass.emptied.emplace(node, priority);
    }
    // Those behind pass it by as little as if nothing had come free; nobody is stopped for room that is there.
    if (left.count() <= 0 && pass.others_behind)
      pass.keeps = NodesToKeep(*look.snapshot, look.members, spares);
    return {};
  }
  bool news = false;  // whom it makes leave, or awaits: for one gang at a time
  if (blocked && left.count() <= 0) {
    const std::size_t before = sentence.size();
    const bool others = pass.making_room;
    TRY(MakeRoom(look, spares, pass, sentence, stop));
    const bool ours = !others && pass.making_room;
    news = ours && look.gang->status.message.find(sentence.substr(before)) == std::string::npos;
  } else if (blocked) {
    queue_.AddAfter(std::string(kPlanKey), left);  // nothing else may happen until then
  }
  return Refuse(look, std::string(placement::RefusalReasonName(refusal.reason)), sentence, news, stop);
}

base::Status GangController::Refuse(const Look& look, const std::string& reason, const std::string& sentence,
                                    bool news, const std::stop_token& stop) {
  crds::GangStatus status = RefusedStatus(look.Input(clock_.WallNow()), reason, sentence);
  if (status == look.gang->status) return {};
  const bool told = status.reason == look.gang->status.reason;
  if (told && !news && !HoldsSlots(*look.gang) && HoldsWordsBack(look.members.key)) return {};
  TRY(WriteStatus(*look.gang, std::move(status),
                  told ? std::nullopt : std::optional(Note{true, reason, sentence}), stop));
  waiting_[look.members.key] = clock_.Now();
  return {};
}

// What others hold and how much is free stands in the words of all that wait, so one job that starts or ends would
// have every one of them written anew. Whoever was told the reason can wait for its newest words; they are written on
// a grid, so that a thousand gangs do not have the queue walked for each.
bool GangController::HoldsWordsBack(const GangKey& key) {
  using Grid = std::chrono::duration<std::int64_t, std::ratio<5>>;
  const auto waiting = waiting_.find(key);
  if (waiting == waiting_.end() || !waiting->second) return false;
  const base::MonotonicTime now = clock_.Now(), again = *waiting->second + kSameReason;
  if (now >= again) return false;
  queue_.AddAfter(std::string(kPlanKey),
                  std::chrono::ceil<Grid>(again) - now);  // nothing else may happen until then
  return true;
}

// A claim keeps its volume for as long as it is there, and a volume its nodes: what was found in order is not read
// again for a while, since a gang of a thousand pods may have as many claims, and is asked at each walk. Only who
// deletes a claim under a gang that waits, and makes it again, is noticed late.
base::Result<std::optional<InputRefusal>> GangController::VolumeRefusal(const GangMembers& members,
                                                                        const std::stop_token& stop) {
  std::set<std::string> claims;
  for (const auto& rank : members.ranks) {
    if (!rank) continue;
    claims.insert(rank->facts->terms->claims.begin(), rank->facts->terms->claims.end());
  }
  const base::MonotonicTime now = clock_.Now();
  if (bound_claims_.size() >= kMostClaims) bound_claims_.clear();
  for (const std::string& name : claims) {
    const kube::ObjectKey key{members.key.ns, name};
    const auto known = bound_claims_.find(key);
    if (known != bound_claims_.end() && now - known->second < kBoundFor) continue;
    const auto claim = client_.Get(kClaims, key, stop);
    if (!claim && claim.error().code == base::Code::kNotFound) {
      return InputRefusal{"NotModelled",
                          "the volume claim " + name + " does not exist yet; create and bind it first"};
    }
    if (!claim) return base::Fail(base::Error(claim.error()).In("read a volume claim"));
    const std::string volume = kube::StringAt(*claim, {"spec", "volumeName"});
    if (volume.empty()) {
      return InputRefusal{"NotModelled", "the volume claim " + name +
                                             " is not bound yet, so nobody knows where its "
                                             "volume will be; bind it first"};
    }
    ASSIGN_OR_RETURN(const kube::Json object, client_.Get(kVolumes, {"", volume}, stop), "read a volume");
    if (kube::Find(object, {"spec", "nodeAffinity", "required"}) == nullptr) {
      bound_claims_[key] = now;
      continue;
    }
    return InputRefusal{"NotModelled",
                        "the volume of the claim " + name +
                            " is tied to some nodes (spec.nodeAffinity), "
                            "which is not modelled for gangs; use a volume that every node reaches"};
  }
  return std::nullopt;
}

}  // namespace heddle::extender
