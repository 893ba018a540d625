#include "nodeagent/leaf/command.h"

#include <gmock/gmock.h>

#include <stop_token>
#include <thread>

namespace heddle::nodeagent {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// Far beyond what any of these takes; only those that are meant to hang meet a short one.
constexpr milliseconds kLong{60'000};

CommandOptions Shell(const std::string& script, milliseconds deadline = kLong) {
  CommandOptions options;
  options.arguments = {"/bin/sh", "-c", script};
  options.deadline = deadline;
  return options;
}

TEST(Command, GivesWhatTheProgramWrote) {
  Command command(Shell("printf 'one\\ntwo'; echo aside >&2"));
  EXPECT_EQ(command.Run(), "one\ntwo");
  EXPECT_EQ(command.Run(), "one\ntwo");
}

TEST(Command, GivesTheProgramNoInputAndNothingOfOurEnvironment) {
  Command command(Shell("cat; echo \"$LC_ALL,${HOME-none}\""));
  EXPECT_EQ(command.Run(), "C,none\n");
}

TEST(Command, SaysThatTheProgramIsNotInstalled) {
  CommandOptions options;
  options.arguments = {"heddle-no-such-program"};
  const auto result = Command(options).Run();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, base::Code::kNotFound);
  EXPECT_EQ(result.error().message, "heddle-no-such-program is not installed");
}

TEST(Command, SaysThatWeMayNotStartIt) {
  CommandOptions options;
  options.arguments = {"/etc/passwd"};
  const auto result = Command(options).Run();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, base::Code::kForbidden);
}

TEST(Command, QuotesWhatAFailedProgramComplainedOf) {
  const auto result = Command(Shell("echo partial; echo 'no socket' >&2; exit 3")).Run();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, base::Code::kInternal);
  EXPECT_EQ(result.error().message, "/bin/sh failed with status 3: no socket");
}

TEST(Command, SaysWhichSignalEndedTheProgram) {
  const auto result = Command(Shell("kill -SEGV $$")).Run();
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("signal 11"));
}

TEST(Command, EndsAProgramThatHangsWithAllThatItStarted) {
  Command command(Shell("sleep 1000 & sleep 1000", milliseconds(50)));
  const auto result = command.Run();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, base::Code::kTimeout);
  EXPECT_THAT(result.error().message, HasSubstr("50 ms"));
}

TEST(Command, EndsAProgramThatHangsAfterClosingItsOutput) {
  const auto result = Command(Shell("exec >&- 2>&-; sleep 1000", milliseconds(50))).Run();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, base::Code::kTimeout);
}

TEST(Command, EndsAProgramThatTalksWithoutEnd) {
  CommandOptions options = Shell("while :; do echo endless; done");
  options.max_output = 10'000;
  const auto result = Command(options).Run();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, base::Code::kTooLarge);
}

TEST(Command, IsNotStoppedByEndlessComplaints) {
  const auto result =
      Command(Shell("i=0; while [ $i -lt 20000 ]; do echo complaint >&2; i=$((i+1)); done; echo done")).Run();
  EXPECT_EQ(result, "done\n");
}

TEST(Command, IsNotWaitedForOnceStopIsAsked) {
  std::stop_source stop;
  CommandOptions options = Shell("echo begun; exec cat /dev/zero > /dev/null");
  options.stop = stop.get_token();
  Command command(options);
  std::jthread ends([&stop] { stop.request_stop(); });
  const auto result = command.Run();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, base::Code::kCancelled);
  EXPECT_EQ(command.Run().error().code, base::Code::kCancelled);
}

}  // namespace
}  // namespace heddle::nodeagent
