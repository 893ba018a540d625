#pragma once

#include "tests/sim/actor.h"
#include "tests/support/fake_api_server.h"

namespace heddle::sim {

// The controller of NVIDIA's DRA driver, as far as it has a say over ComputeDomains: it puts its finalizer on each some
// time after it was made, and takes it off when it has cleared up behind one that is being deleted, which goes then. The
// claims of pods and their templates are not played. Thread rule: as Simulation.
class DomainDriver {
 public:
  DomainDriver(Simulation& simulation, test::FakeApiServer& server);
  void Look();
  void Kick() { pace_.Kick(); }

 private:
  Simulation& simulation_;
  test::FakeApiServer& server_;
  Pace pace_;
};

}  // namespace heddle::sim
