#include "base/poll.h"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace heddle::base {

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

StopEvent::StopEvent(std::stop_token stop) : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  callback_.emplace(std::move(stop), Write{descriptor_});
}

StopEvent::~StopEvent() {
  callback_.reset();  // first: it must not write into what somebody else opens under this number
  if (descriptor_ >= 0) ::close(descriptor_);
}

void StopEvent::Write::operator()() const noexcept {
  const std::uint64_t one = 1;
  if (descriptor >= 0) (void)!::write(descriptor, &one, sizeof(one));
}

}  // namespace heddle::base
