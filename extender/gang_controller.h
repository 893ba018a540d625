#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>

#include "extender/cluster_cache.h"
#include "extender/gang_decision.h"
#include "extender/metrics.h"
#include "extender/planning.h"
#include "kube/events.h"
#include "kube/work_queue.h"

namespace heddle::extender {

struct ControllerOptions {
  Mode mode = Mode::kPlace;
  int spares = 0;                            // see Snapshot
  std::string identity = "heddle-extender";  // in events
  // Changes of the cluster come in swarms; planning waits this long for the rest of one.
  std::chrono::nanoseconds settle = std::chrono::milliseconds(200);
  // Counts of a starting gang are written at most this often.
  std::chrono::nanoseconds count_period = std::chrono::seconds(1);
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
  void SetStaleNodes(std::set<std::string> nodes) { cache_.SetStaleNodes(std::move(nodes)); }

 private:
  // What a decision is made from, kept together because GangInput only refers to it.
  struct Look {
    std::shared_ptr<const crds::Gang> gang;
    GangMembers members;
    Snapshot snapshot;
    GangInput Input(base::WallTime now) const { return {gang.get(), members, snapshot, now}; }
  };
  [[nodiscard]] base::Result<Look> LookAt(const GangKey& key, const std::stop_token& stop);
  // `without`: a gang whose own reservation is left out.
  SnapshotInputs Inputs(const std::optional<GangKey>& without);
  // What a controller says that cannot make its pods; empty when nothing is known.
  std::string FailedCreate(const crds::GangOwner& owner, const std::string& ns, const std::stop_token& stop);
  void NoteLapsed(const GangKey& key, const Look& look);

  void Work(const std::stop_token& stop);
  base::Status DoKey(const std::string& key, const std::stop_token& stop);
  base::Status BeginToLead(const std::stop_token& stop);
  void PublishSnapshot();
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
  base::Status Release(const GangKey& key, const Look& look, const ReleasePods& release,
                       const std::stop_token& stop);
  base::Status WriteRankFile(const Look& look, const std::stop_token& stop);
  base::Status BlameRankFile(const Look& look, const base::Status& failed, const std::stop_token& stop);
  base::Status PatchPod(const PodPatch& patch, const std::stop_token& stop);

  base::Status PlanWaiting(const std::stop_token& stop);
  base::Status PlanOne(const GangKey& key, bool others_behind, std::set<std::string>& kept,
                       const std::stop_token& stop);
  std::vector<GangKey> WaitingInOrder();
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
  kube::EventRecorder events_;
  ClusterCache cache_;
  std::atomic<bool> leading_{false};
  bool read_all_ = false;      // since leadership began; the worker's
  std::set<GangKey> waiting_;  // for a plan; found again by looking at every gang
  std::map<GangKey, base::MonotonicTime> counted_at_;
  std::map<GangKey, std::set<int>>
      lapsed_;  // ranks without a pod for so long that their slots are free; see NoteLapsed
  mutable std::mutex mutex_;
  std::set<std::string> warned_;  // owners whose pods passed the gate
  std::shared_ptr<const Snapshot> current_;
};

}  // namespace heddle::extender
