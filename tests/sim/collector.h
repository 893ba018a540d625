#pragma once

#include "tests/sim/actor.h"
#include "tests/sim/job_controller.h"
#include "tests/support/fake_api_server.h"

namespace heddle::sim {

// Garbage collection: pods, Gangs and ComputeDomains whose owners are all gone go too, some seconds later, and what has
// a finalizer when that is taken off. Thread rule: as Simulation.
class Collector {
 public:
  Collector(Simulation& simulation, test::FakeApiServer& server, JobController& jobs);
  void Look();
  void Kick() { pace_.Kick(); }
  // For a test of the checks: as if there were none.
  void Stop() { stopped_ = true; }

 private:
  Simulation& simulation_;
  test::FakeApiServer& server_;
  JobController& jobs_;
  bool stopped_ = false;
  Pace pace_;
};

}  // namespace heddle::sim
