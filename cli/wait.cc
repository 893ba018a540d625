#include "cli/wait.h"

#include <signal.h>

namespace heddle::cli {

// The first process of a container dies of no signal that it does not ask for.
void WaitForSignal() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  int signal = 0;
  while (::sigwait(&signals, &signal) != 0) {
  }
}

}  // namespace heddle::cli
