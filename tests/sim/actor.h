#pragma once

#include <chrono>
#include <functional>

#include "base/random.h"
#include "tests/sim/simulation.h"

namespace heddle::sim {

// When an actor looks at the cluster: some time after something has changed, once for many changes.
class Pace {
 public:
  Pace(Simulation& simulation, std::chrono::milliseconds average, std::function<void()> look)
      : simulation_(simulation), random_(simulation.Fork()), average_(average), look_(std::move(look)) {}

  void Kick() { KickAfter(average_ / 2 + random_.Jitter(average_)); }
  // The earliest of several counts.
  void KickAfter(std::chrono::nanoseconds delay) {
    const base::MonotonicTime due = simulation_.now() + delay;
    if (due_ && *due_ <= due) return;
    due_ = due;
    simulation_.At(due, [this, due] {
      if (due_ != due) return;
      due_.reset();
      look_();
    });
  }

 private:
  Simulation& simulation_;
  base::Random random_;
  const std::chrono::nanoseconds average_;
  const std::function<void()> look_;
  std::optional<base::MonotonicTime> due_;
};

}  // namespace heddle::sim
