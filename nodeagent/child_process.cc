#include "nodeagent/child_process.h"

#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace heddle::nodeagent {

int OpenProcess(pid_t process) {
  // By its number: glibc 2.36 declares the call without C linkage.
  return int(::syscall(SYS_pidfd_open, process, 0));
}

bool Arm(int timer, std::chrono::milliseconds limit) {
  itimerspec when{};
  when.it_value.tv_sec = limit.count() / 1'000;
  when.it_value.tv_nsec = limit.count() % 1'000 * 1'000'000 + 1;  // zero would be never
  return ::timerfd_settime(timer, 0, &when, nullptr) == 0;
}

}  // namespace heddle::nodeagent
