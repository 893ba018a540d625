#include "cli/wait.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/flags.h"

namespace heddle::cli {
namespace {

TEST(WaitCommand, EndsBySigterm) {
  // Blocked before the child is there, so that none comes too early.
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  const pid_t child = fork();
  if (child == 0) {
    WaitForSignal();
    _exit(7);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, WNOHANG), 0) << "it waits";
  kill(child, SIGTERM);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

// It is for the chart, and nobody is offered it.
TEST(WaitCommand, IsTakenAndNotShown) {
  const char* called[] = {"kubectl-heddle", "wait"};
  EXPECT_EQ(ReadCommandLine(2, called).flags.command, Command::kWait);
  for (const char* shown : {"--help", "man"}) {
    const char* words[] = {"kubectl-heddle", shown};
    EXPECT_EQ(ReadCommandLine(2, words).instead->out.find("  wait"), std::string::npos) << shown;
    EXPECT_EQ(ReadCommandLine(2, words).instead->out.find(".SS wait"), std::string::npos) << shown;
  }
  const char* tab[] = {"kubectl-heddle", "__complete", "wa"};
  EXPECT_EQ(ReadCommandLine(3, tab).instead->out, ":4\n");
}

}  // namespace
}  // namespace heddle::cli
