#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "extender/cluster_cache.h"
#include "extender/gang_decision.h"
#include "extender/look_rest.h"
#include "extender/metrics.h"
#include "extender/planning.h"
#include "extender/preempting.h"
#include "extender/slots_left.h"
#include "extender/snapshot_keeper.h"
#include "kube/events.h"
#include "kube/work_queue.h"

namespace heddle::extender {

struct ControllerOptions {
  Mode mode = Mode::kPlace;
  // Gangs of lower priority may be made to leave, and be restarted as a whole. Never in mode observe.
  bool preemption = true;
  int spares = 0;                            // see Snapshot
  std::string identity = "heddle-extender";  // in events
  // Changes of the cluster come in swarms; planning waits this long for the rest of one.
  std::chrono::nanoseconds settle = std::chrono::milliseconds(200);
  // Counts of a starting gang are written at most this often.
  std::chrono::nanoseconds count_period = std::chrono::seconds(1);
  // Of a release, so many requests are under way together.
  int releases_at_once = 1;
  kube::Log log;
};

// Takes gangs their way: read, decide, one write, events. All decisions fall on one thread and are made anew
// from the API objects each time, so a crash loses nothing. It writes only while it leads. Thread rule: Run
// on one thread, the rest from any.
class GangController {
 public:
  GangController(kube::Client& client, base::Clock& clock, base::Random random, Metrics& metrics,
                 ControllerOptions options);

  void Run(const std::stop_token& stop);  // blocks
  // Leadership begins with consistent reads and ends before the next write.
  void SetLeading(bool leading);
  bool leading() const { return leading_; }
  bool ready() const { return cache_.synced() && current() != nullptr; }

  // The cluster as last looked at, for prioritize; null before the first look.
  std::shared_ptr<const Snapshot> current() const;
  // Never null.
  std::shared_ptr<const KeptNodes> kept_nodes() const;
  std::shared_ptr<const SlotsLeftByNode> slots_left() const { return slots_left_.current(); }
  bool KnowsGangPod(const std::string& uid) const { return cache_.KnowsGangPod(uid); }
  std::string MetricsText();  // with what is only known when asked: how old the caches are
  void SetStaleNodes(std::set<std::string> nodes) { cache_.SetStaleNodes(std::move(nodes)); }

 private:
  // What a decision is made from, kept together because GangInput only refers to it.
  struct Look {
    std::shared_ptr<const crds::Gang> gang;
    GangMembers members;
    Shared<Snapshot> snapshot;
    bool preemption = true;
    GangInput Input(base::WallTime now) const { return {gang.get(), members, *snapshot, now, preemption}; }
    // New slots for lost ranks. Whether a restart would still help is asked by the same planning, or a gang that has a
    // place again is restarted for it all the same. Requires: the gang has a placement.
    PlanAnswer Repaired(const RepairRanks& repair) const;
  };
  // Where a gang stands in the queue; see TakeInNewcomers.
  using Place = std::tuple<bool, std::int64_t, base::WallTime, GangKey>;
  // One walk through the queue, from its head, in slices. Each gang is asked once.
  struct QueuePass {
    struct Turn {
      Place place = {};
      bool asked = false;
      std::set<std::string> keeps = {};  // nodes, apart from those that were kept ahead of it
    };
    std::vector<Turn> turns;          // in the order of the queue
    std::set<GangKey> known;          // whose these are
    KeptNodes emptied;                // kept nodes that others are made to leave
    bool making_room = false;         // for one gang at a time
    base::Status refused = {};        // what the server would not take of a gang, the last of it
    bool again = false;               // something has changed: another walk follows
    Shared<Snapshot> seen;            // as the last gang was asked
    base::MonotonicTime left_off;     // when it ended
    std::set<std::string> came_free;  // nodes with more room since, of which those ahead were not asked
    // Of the gang that is asked now.
    std::set<std::string> kept, keeps;  // nodes that wait for somebody ahead; that wait for it
    bool others_behind = false;
    bool waits_ahead = false;  // somebody who was asked has no place

    std::set<std::string> Closed() const;  // to the gang that is asked now
  };
  // Who holds slots by which plan: UIDs of Gangs with their plans' epochs and times, sorted.
  using Plans = std::vector<std::tuple<std::string, std::int64_t, std::optional<base::WallTime>>>;
  // A release that is done in slices.
  struct Releasing {
    std::vector<PodPatch> patches;
    std::size_t in_order = 0;        // see ReleasePods
    std::vector<std::string> nodes;  // of each; empty = it could not be used when that was decided
    std::string gang;                // its "ns/name"
    std::string version;             // the Gang's resourceVersion when it was decided
    Plans plans;                     // all that stood then
    std::uint64_t term = 0;
    base::MonotonicTime until;  // then it is decided anew
    std::size_t next = 0;       // of the patches
    int refusals = 0;
    base::Status refused = {};  // the last of them
    bool given_up = false;      // for that, before the end
  };
  // Somebody who holds GPUs, and the object to write to.
  struct Holding {
    Holder holder;
    std::shared_ptr<const crds::Gang> gang;  // null: it is a pod of no gang
    kube::ObjectPtr pod;                     // null: it is a gang
  };
  // Keys of work that is not about one gang.
  static constexpr std::string_view kLeadKey = "~lead", kPlanKey = "~plan", kWalkKey = "~walk",
                                    kYieldKey = "~yield", kCapacityKey = "~capacity", kSettleKey = "~settle",
                                    kCountKey = "~count";
  [[nodiscard]] base::Result<Look> LookAt(const GangKey& key, const std::stop_token& stop);
  // A pod names its PodGroup and no version of it.
  base::Result<kube::ObjectPtr> OwnerOf(const GangKey& key, crds::GangOwner owner,
                                        const std::stop_token& stop);
  // `without`: a gang whose own reservation is left out.
  SnapshotInputs Inputs(const std::optional<GangKey>& without);
  // What a controller says that cannot make its pods, as of ten seconds ago at most; empty when nothing is known.
  std::string TroubleOf(const GangKey& key, const crds::GangOwner& owner, const std::stop_token& stop);
  std::string FailedCreate(const crds::GangOwner& owner, const std::string& ns, const std::stop_token& stop);
  void NoteLapsed(const GangKey& key, const Look& look);

  void Work(const std::stop_token& stop);
  base::Status DoKey(const std::string& key, const std::stop_token& stop);
  base::Status BeginToLead(const std::stop_token& stop);
  void PublishSnapshot();
  void Publish(Shared<Snapshot> snapshot);  // of the Inputs that were read last
  void CapacityChanged();

  base::Status Reconcile(const GangKey& key, const std::stop_token& stop);
  base::Status Perform(const GangKey& key, Look& look, Action action, const std::stop_token& stop);
  base::Status Create(const CreateGang& create, const std::stop_token& stop);
  base::Status Delete(const crds::Gang& gang, const std::string& why, const std::stop_token& stop);
  base::Status WriteStatus(const crds::Gang& gang, crds::GangStatus status, const std::optional<Note>& note,
                           const std::stop_token& stop);
  base::Status WriteCounts(const GangKey& key, const crds::Gang& gang, UpdateStatus update,
                           const std::stop_token& stop);
  base::Status Repair(const Look& look, const RepairRanks& repair, const std::stop_token& stop);
  base::Status Release(const GangKey& key, const std::stop_token& stop);
  base::Status ReadGangs(const std::stop_token& stop);
  bool WasReadSinceItsPlan(const GangKey& key);
  base::Status Settle(const Look& look, const std::stop_token& stop);
  base::Status LetGo(const GangKey& key, Releasing releasing, const std::stop_token& stop);
  // The patches before `end`, or as many as are begun before `until`; returns once all that were begun are answered.
  void LetSomeGo(Releasing& releasing, std::size_t end, int at_once, base::MonotonicTime until,
                 const std::stop_token& stop);
  std::optional<Releasing> LeftToRelease(const GangKey& key);
  Plans PlansThatStand();
  std::string OtherGangOf(const kube::Json& rank_file, const crds::Gang& gang);
  base::Status WriteRankFile(const Look& look, const std::stop_token& stop);
  base::Status MakeComputeDomain(const Look& look, const std::stop_token& stop);
  // Says on the Gang what only a person can clear.
  base::Status Blamed(const Look& look, const std::string& reason, base::Error error,
                      const std::stop_token& stop);
  base::Status PatchPod(const PodPatch& patch, const std::stop_token& stop);

  // One slice of a walk, the first where there is none.
  base::Status PlanWaiting(const std::stop_token& stop);
  base::Result<bool> PlanSlice(QueuePass& pass, const std::stop_token& stop);  // whether more is left
  void TakeInNewcomers(QueuePass& pass);
  void NoteWhatCameFree(QueuePass& pass, const Shared<Snapshot>& is);
  base::Status Commit(const Look& look, PlannedGang plan, const std::stop_token& stop);
  base::Status PlanOne(const GangKey& key, QueuePass& pass, const std::stop_token& stop);
  // `news`: words that are written at once, although the reason is the same.
  base::Status Refuse(const Look& look, const std::string& reason, const std::string& sentence, bool news,
                      const std::stop_token& stop);
  // Whether a gang that was told the reason just now is told its newest words later.
  bool HoldsWordsBack(const GangKey& key);
  void PublishKept(KeptNodes kept);

  // In gang_preemption.cc. Adds what it does to the sentence of the refusal.
  base::Status MakeRoom(const Look& look, Spares spares, QueuePass& pass, std::string& sentence,
                        const std::stop_token& stop);
  base::Result<std::vector<Holding>> Holdings(const Look& look, const std::stop_token& stop);
  base::Result<Holding> HoldingOf(const Look& look, const std::shared_ptr<const crds::Gang>& gang,
                                  const std::stop_token& stop);
  Holding HoldingOf(const PodFacts& pod, const kube::ObjectPtr& object,
                    const std::vector<std::shared_ptr<const crds::Gang>>& gangs) const;
  base::Status Preempt(const Look& look, const std::vector<Holding>& holdings, const RoomChoice& choice,
                       const std::stop_token& stop);
  // Whatever was told to leave and has not left, one step further; and back, when its pods are gone.
  base::Status YieldAll(const std::stop_token& stop);
  base::Status YieldOne(const crds::Gang& gang, const std::stop_token& stop);
  // Whether a gang that is about to be stopped for its own sake still needs that.
  base::Result<bool> RestartHelps(const GangKey& key, const std::stop_token& stop);
  base::Status Spare(const crds::Gang& gang, const std::string& reason, const std::string& why,
                     const std::stop_token& stop);
  base::Status Suspend(const crds::Gang& gang, const kube::Json& owner, const std::stop_token& stop);
  base::Status Evict(const crds::Gang& gang, const std::stop_token& stop);
  base::Status EvictPod(const kube::Json& pod,
                        const std::stop_token& stop);  // kThrottled: a budget forbids it now
  base::Status Resume(const kube::Json& owner, const std::stop_token& stop);
  // Why the gang is not restarted as a whole; empty: it is from now on.
  base::Result<std::string> Restart(const Look& look, crds::GangStatus status, const std::stop_token& stop);
  // Volumes that tie pods to a place are found only by reading them.
  base::Result<std::optional<InputRefusal>> VolumeRefusal(const GangMembers& members,
                                                          const std::stop_token& stop);

  void WarnUngated(const kube::Json& pod);
  void Tell(const crds::GangOwner& owner, const std::string& ns, const Note& note);
  void Say(const std::string& line) const;

  kube::Client& client_;
  base::Clock& clock_;
  Metrics& metrics_;
  const ControllerOptions options_;
  kube::WorkQueue queue_;
  LookRest look_rest_;
  kube::EventRecorder events_;
  SlotsLeft slots_left_;
  ClusterCache cache_;
  // The worker's: it leads, and has read what others wrote before. Leadership that was lost and won again within one
  // request has begun anew, since somebody else may have led between.
  bool may_write() const { return leading_ && read_in_term_ == term_; }
  std::atomic<bool> leading_{false};
  std::atomic<std::uint64_t> term_{0};  // how often leadership has begun
  SnapshotKeeper snapshots_;            // the worker's
  Shared<Snapshot> counted_;            // the worker's: that the metrics are of
  std::uint64_t read_in_term_ = 0;      // the last that has read all; the worker's
  std::uint64_t left_when_read_ = 0;    // of SlotsLeft, when Inputs were last read; the worker's
  // For a plan, and when each was last told why it has none; found again by looking at every gang.
  std::map<GangKey, std::optional<base::MonotonicTime>> waiting_;
  std::map<GangKey, base::MonotonicTime> counted_at_;
  // Versions of Gangs from which a status may still be written: by us, where the answer never came, or by who led
  // before. Of all that hold slots, when leadership begins.
  std::map<GangKey, std::string> in_doubt_;
  // Consistent reads of all Gangs that went well: how many, and when the last began.
  std::uint64_t gang_reads_ = 0;
  base::MonotonicTime gangs_read_at_;
  // Plans that we wrote and let nobody go by yet. Without one a release reads, which is always right.
  struct Committed {
    std::string version;      // the Gang's resourceVersion with it
    std::uint64_t reads = 0;  // gang_reads_ once it was written
  };
  std::map<GangKey, Committed> committed_;
  // Between two slices; found again in the pods that are still gated.
  std::map<GangKey, Releasing> releasing_;
  std::unique_ptr<QueuePass> pass_;  // between two slices, else null; found again by walking anew
  base::MonotonicTime walked_at_;    // through the queue, to its end
  // Claims whose volume is there and ties no pod to a node, and when that was read; see VolumeRefusal.
  std::map<kube::ObjectKey, base::MonotonicTime> bound_claims_;
  std::string pod_groups_;  // the version in which one was found last
  struct Trouble {
    base::MonotonicTime asked;
    std::string sentence;
  };
  std::map<GangKey, Trouble> troubles_;  // of gangs whose pods do not come; see TroubleOf
  std::map<GangKey, std::set<int>>
      lapsed_;  // ranks without a pod for so long that their slots are free; see NoteLapsed
  mutable std::mutex mutex_;
  std::set<std::string> warned_;  // owners whose pods passed the gate
  std::shared_ptr<const Snapshot> current_;
  std::shared_ptr<const KeptNodes> kept_nodes_ = std::make_shared<const KeptNodes>();
};

}  // namespace heddle::extender
