#include "base/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

namespace heddle::base {
namespace {

// Runs in a process of its own: signals are of the whole process. The child's exit status is the answer.
int StatusOfChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(StopSignals, TurnTheFirstSignalIntoAStop) {
  EXPECT_EQ(StatusOfChild([] {
              StopSignals signals;
              int told = 0;
              const std::stop_token stop = signals.Wait([&told](int signal) { told = signal; });
              kill(getpid(), SIGTERM);
              while (!stop.stop_requested()) sched_yield();
              return told;
            }),
            SIGTERM);
}

TEST(StopSignals, EndTheProcessAtTheSecondSignal) {
  EXPECT_EQ(StatusOfChild([] {
              StopSignals signals;
              (void)signals.Wait([](int signal) { kill(getpid(), signal); });
              kill(getpid(), SIGINT);
              for (;;) pause();
              return 0;
            }),
            128 + SIGINT);
}

TEST(ReplicaIdentity, IsTheHostAndSomethingOfItsOwn) {
  Random random(1);
  const std::string first = ReplicaIdentity(random), second = ReplicaIdentity(random);
  EXPECT_NE(first, second);
  EXPECT_THAT(first, testing::StartsWith(HostName() + "_"));
}

}  // namespace
}  // namespace heddle::base
