#pragma once

#include <string>

#include "tests/sim/job_controller.h"

namespace heddle::sim {

// The JobSet of the simulation, as the extender knows it.
const kube::Resource& JobSetKind();
// Of a Job that a JobSet made: the JobSet's UID; else "".
std::string JobSetOf(const kube::Json& job);
// Of such a Job, which of the JobSet's pods its index 0 is.
int FirstIndex(const kube::Json& job);
bool IsFinishedSet(const kube::Json& set);

// jobset-controller-manager: makes the Jobs of a set, suspends them with it, and when one of them fails deletes all and
// makes them anew as the next attempt, at once: pods of attempt n still leave their nodes when those of n+1 come. A set
// that has been restarted often enough fails. Thread rule: as Simulation.
class JobSets {
 public:
  JobSets(Simulation& simulation, test::FakeApiServer& server);

  // `words.sets` Jobs of words.pods / words.sets pods each.
  void Submit(const JobWords& words);
  void Look();
  void Kick() { pace_.Kick(); }

 private:
  void LookAt(const kube::Json& set, const std::vector<kube::Json>& jobs);
  void MakeJob(const kube::Json& set, std::int64_t attempt, int index);
  void End(const kube::Json& set, const std::string& type, const std::string& reason);

  Simulation& simulation_;
  test::FakeApiServer& server_;
  Pace pace_;
};

}  // namespace heddle::sim
