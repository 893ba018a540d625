#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <stop_token>

namespace heddle::base {

// What poll can wait for beside a pipe or a socket: the end of a process, a limit, and that stop is asked.

// A descriptor that becomes readable when the process is gone; -1 where a kernel or a container's filter refuses it.
int OpenProcess(pid_t process);

// Lets a timerfd become readable once, after the limit; a limit of zero is at once. False = it cannot.
bool Arm(int timer, std::chrono::milliseconds limit);

// A descriptor that becomes readable when stop is asked, so that whoever waits in poll need not wait any longer.
// Thread rule: one thread; stop may be asked on any.
class StopEvent {
 public:
  explicit StopEvent(std::stop_token stop);
  StopEvent(const StopEvent&) = delete;
  StopEvent& operator=(const StopEvent&) = delete;
  ~StopEvent();

  // -1, which poll passes over, where the kernel has no descriptor left.
  int get() const { return descriptor_; }

 private:
  struct Write {
    int descriptor;
    void operator()() const noexcept;
  };
  int descriptor_;
  std::optional<std::stop_callback<Write>> callback_;
};

}  // namespace heddle::base
