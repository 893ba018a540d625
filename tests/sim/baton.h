#pragma once

#include <semaphore.h>

#include <chrono>
#include <ctime>

namespace heddle::sim {

// What is handed from thread to thread a million times a minute. Not std::binary_semaphore: libstdc++'s spins and
// sleeps a growing while before it asks the kernel to wait, and a turn is over sooner than that.
class Baton {
 public:
  Baton() { (void)sem_init(&semaphore_, 0, 0); }
  ~Baton() { (void)sem_destroy(&semaphore_); }
  Baton(const Baton&) = delete;
  Baton& operator=(const Baton&) = delete;

  void Give() { (void)sem_post(&semaphore_); }
  void Take() {
    while (sem_wait(&semaphore_) != 0) {
    }
  }
  // False after the limit.
  bool TakeWithin(std::chrono::seconds limit) {
    timespec until{};
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += limit.count();
    while (sem_timedwait(&semaphore_, &until) != 0) {
      timespec now{};
      (void)clock_gettime(CLOCK_REALTIME, &now);
      if (now.tv_sec > until.tv_sec) return false;
    }
    return true;
  }

 private:
  sem_t semaphore_;
};

}  // namespace heddle::sim
