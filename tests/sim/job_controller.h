#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "tests/sim/actor.h"
#include "tests/sim/pod_row.h"
#include "tests/support/fake_api_server.h"

namespace heddle::sim {

// A Job as somebody submits it. How long its pods run once all of them do; nothing = until they are told to finish.
struct JobWords {
  std::string name;
  int pods = 1;
  int gpus = 8;
  std::string parallelism;
  int priority = 0;
  int backoff_limit = 100;
  std::optional<std::chrono::seconds> runs;
  kube::Json annotations = kube::Json::object();  // more of them, on the pod template
  int completions = 0;                            // 0 = as many as pods
  int sets = 0;                                   // > 0: a JobSet of so many Jobs, which share the pods
  bool queued = false;          // its pods are born behind a queue's gate as well as behind ours
  bool scaled = false;          // `pods` is what it was scaled to
  bool compute_domain = false;  // its pods ask for one
  int groups = 0;  // > 0: a LeaderWorkerSet of so many groups, which share the pods; parallelism is of each
};

inline const std::string kTeam = "team";  // the namespace of all Jobs

kube::Json JobSpec(const JobWords& words);
// What admission adds to a pod that asks for a ComputeDomain, once its owner and labels stand on it.
void AddClaim(kube::Json& pod);
// A Job that was scaled: its program trains with the ranks that it has.
bool IsElastic(const kube::Json& job);

// kube-controller-manager's Job controller, for Indexed Jobs: makes pods in any order, makes a failed one again after a
// back-off of its index, counts failures against backoffLimit (deleted pods too), suspends, completes and fails
// Jobs, and says in status.completedIndexes which indexes are done. A Job may be scaled (KEP-3715, Elastic Indexed Jobs):
// pods whose index is too high are deleted, which is no failure, and such an index is not done any more. Admission is part of it: its pods are born behind Heddle's gate. Thread rule: as Simulation.
class JobController {
 public:
  // Pods are born with this schedulerName, those of queued Jobs behind a gate more, which their queue lifts some time
  // later: from all pods at one time, and from those that are made anew soon after.
  JobController(Simulation& simulation, test::FakeApiServer& server, std::string scheduler);

  std::string Submit(const JobWords& words);  // returns the Job's UID
  // `kubectl patch job` of completions and parallelism together.
  void Scale(const std::string& name, int pods);
  void Look();
  void Kick() { pace_.Kick(); }
  // Deletes a pod as a DELETE of the API would: at once while it is on no node, else with a grace period.
  void DeletePod(const kube::ObjectKey& key, const std::string& why);

 private:
  struct State {
    std::map<std::string, int> pods;                // that were made: uid → index
    std::set<std::string> counted;                  // uids whose end was counted
    std::map<int, base::MonotonicTime> not_before;  // by index
    std::map<int, int> tries;                       // by index
    std::set<int> done;
    int failed = 0;
    std::optional<base::MonotonicTime> admitted;  // by its queue
  };
  void LookAt(const kube::Json& job, const std::vector<PodRow>& pods);
  void CountEnds(const kube::Json& job, State& state, const std::vector<PodRow>& pods);
  void DeleteSurplus(const kube::Json& job, State& state, const std::vector<PodRow>& pods);
  void MakePods(const kube::Json& job, State& state, const std::vector<PodRow>& pods);
  void MakePod(const kube::Json& job, State& state, int index);
  void LiftGate(const kube::ObjectKey& key, const std::string& uid);
  void End(const kube::Json& job, const std::string& type, const std::string& reason,
           const std::vector<PodRow>& pods);

  Simulation& simulation_;
  test::FakeApiServer& server_;
  const std::string scheduler_;
  base::Random random_;
  std::map<std::string, State> states_;  // by the Job's UID
  Pace pace_;
};

bool IsFinished(const kube::Json& job);

}  // namespace heddle::sim
