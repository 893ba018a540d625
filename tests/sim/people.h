#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/world.h"

namespace heddle::sim {

// How often things happen to a cluster, a minute each.
struct Trouble {
  double submit = 4;
  double delete_job = 0, suspend = 0, delete_pod = 0, delete_gang = 0, edit_gang = 0, lone_pod = 0;
  double kill_extender = 0, freeze_extender = 0, fail_over = 0;
  double server_down = 0, throttle = 0, compact = 0, cut_watches = 0;
  double restart_scheduler = 0, edit_pod = 0, remove_node = 0, crash_pod = 0, slow_disk = 0;
  double kill_node = 0, cordon = 0, break_gpu = 0, flap_gpu = 0, kill_agent = 0, edit_fabric = 0;
  double hold_plan = 0, scale = 0, serve = 0;
  double remake_job = 0;
  double restart_whole = 0;   // the chance that a gang asks to be restarted where a lost rank finds no place
  double compute_domain = 0;  // the chance that a gang asks for one, where there are any
};

// Users, administrators and bad luck: what happens to a World, by its seed. Thread rule: as Simulation.
class People {
 public:
  People(World& world, const Trouble& trouble, int most_jobs);

  // Goes on until Rest.
  void Begin();
  // Nothing happens from now on, and everything that was broken is mended.
  void Rest();
  // Of those that were submitted and not deleted.
  const std::map<std::string, JobWords>& jobs() const { return jobs_; }
  int submitted() const { return submitted_; }
  void DeleteJob(const std::string& name);
  void DeleteLonePods();
  // A Job that was scaled before it had started, which Heddle takes for a mistake, gets its first size again.
  void ScaleBack(const std::string& name);

 private:
  void Happen(double per_minute, void (People::*what)());
  void Submit();
  void DeleteAJob();
  void RemakeJob();
  void Suspend();
  void DeletePod();
  void DeleteGang();
  void EditGang();
  void LonePod();
  void KillExtender();
  void FreezeExtender();
  void FailOver();
  void ServerDown();
  void Throttle();
  void Compact();
  void CutWatches();
  void KillNode();
  void RemoveNode();
  void RestartScheduler();
  void EditPod();
  void CrashPod();
  void SlowDisk();
  void HoldPlan();
  void Scale();
  void Serve();
  bool AsksForDomain(int pods);
  void Cordon();
  void BreakGpu();
  void FlapGpu();
  void KillAgent();
  void EditFabric();
  std::string AnyNode();
  std::string AnyJob();
  // Its JobSet or LeaderWorkerSet, or the Job itself.
  const kube::Resource& KindOf(const std::string& job) const;
  void SetSuspended(const std::string& job, bool on);
  void SetCordoned(const std::string& node, bool on);
  // Writes excluded_ into every Fabric that is there.
  void DeclareExcluded();

  World& world_;
  Simulation& simulation_;
  const Trouble trouble_;
  const int most_jobs_;
  base::Random random_;
  bool resting_ = false;
  int submitted_ = 0;
  std::map<std::string, JobWords> jobs_;
  std::map<std::string, int> first_sizes_;  // of Jobs that were scaled
  std::set<std::string> suspended_, cordoned_, excluded_;
  std::set<std::pair<std::string, int>> broken_;
  int lone_pods_ = 0, served_ = 0;
};

}  // namespace heddle::sim
