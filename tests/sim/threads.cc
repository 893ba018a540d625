// The simulation's std::thread. The code under test starts its threads as it does in production; these two members,
// which libstdc++ keeps in its shared library, are taken over for the whole binary. A thread that a thread of the
// simulation starts belongs to it from its first instruction on, so that its turn, too, is the seed's to give. Any
// other thread is started and joined as ever.
#include <pthread.h>

#include <memory>
#include <system_error>
#include <thread>

#include "tests/sim/simulation.h"

namespace {

struct Birth {
  std::thread::_State_ptr state;
  heddle::sim::Simulation* simulation = nullptr;
  heddle::sim::Thread* thread = nullptr;
};

void* Live(void* argument) {
  const std::unique_ptr<Birth> birth(static_cast<Birth*>(argument));
  if (birth->simulation == nullptr) {
    birth->state->_M_run();
    return nullptr;
  }
  birth->simulation->Begin(*birth->thread);
  birth->state->_M_run();
  // What it captured goes while it still has its turn: that may stop or join others.
  birth->state.reset();
  birth->simulation->Finish(*birth->thread);
  return nullptr;
}

}  // namespace

// NOLINTBEGIN(cert-dcl58-cpp): this is what the file is for

// Called by the constructor's template with the callable in `state`.
void std::thread::_M_start_thread(_State_ptr state, void (*)()) {
  heddle::sim::Simulation* simulation = heddle::sim::Simulation::Current();
  auto birth = std::make_unique<Birth>();
  birth->state = std::move(state);
  birth->simulation = simulation;
  if (simulation != nullptr) birth->thread = &simulation->Born(simulation->running()->process());
  heddle::sim::Thread* const child = birth->thread;
  pthread_t handle{};
  const int failed = pthread_create(&handle, nullptr, &Live, birth.get());
  if (failed != 0) throw std::system_error(failed, std::generic_category(), "start a thread");
  (void)birth.release();
  _M_id = id(handle);
  if (simulation != nullptr) simulation->SetHandle(*child, handle);
}

void std::thread::join() {
  heddle::sim::Simulation* simulation = heddle::sim::Simulation::Current();
  const pthread_t handle = native_handle();
  if (simulation != nullptr) simulation->Join(handle);
  const int failed = pthread_join(handle, nullptr);
  if (failed != 0) throw std::system_error(failed, std::generic_category(), "join a thread");
  _M_id = id();
}

// NOLINTEND(cert-dcl58-cpp)
