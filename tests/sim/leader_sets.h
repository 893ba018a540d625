#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/sim/job_controller.h"

namespace heddle::sim {

// The LeaderWorkerSet of the simulation, as the extender knows it.
const kube::Resource& LeaderSetKind();

// lws-controller-manager with its StatefulSets (lws v0.7, RecreateGroupOnPodRestart): each group is a leader, which
// comes first, and its workers; a pod that fails, or is on its way out, takes its whole group along, which is made anew
// under the same names; workers of a leader that is gone are garbage. A pod that is gone at once, as one at the gate
// is, only comes again. Nothing of it ever ends. The pods belong to the set itself here, without the StatefulSets in
// between. Thread rule: as Simulation.
class LeaderSets {
 public:
  // As of JobController.
  LeaderSets(Simulation& simulation, test::FakeApiServer& server, JobController& jobs, std::string scheduler);

  // `words.groups` groups of words.pods / words.groups pods each.
  void Submit(const JobWords& words);
  void Look();
  void Kick() { pace_.Kick(); }

 private:
  struct Row {
    PodRow pod;
    std::string leader;  // of a worker: the UID of the leader that it was made for
  };
  using Group = std::map<int, Row>;  // by worker index; the leader's is 0
  void LookAt(const kube::Json& set, int group, const Group& rows);
  bool LoseGroup(const kube::Json& set, int group, const Group& rows);
  void DeleteWorkers(const Group& rows, const std::string& of_leader, const std::string& why);
  void MakePod(const kube::Json& set, int group, int worker, const std::string& leader);

  Simulation& simulation_;
  test::FakeApiServer& server_;
  JobController& jobs_;
  const std::string scheduler_;
  base::Random random_;
  Pace pace_;
};

}  // namespace heddle::sim
