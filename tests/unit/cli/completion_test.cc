#include "cli/completion.h"

#include <gmock/gmock.h>

#include "cli/flags.h"

namespace heddle::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// What kubectl is answered when Tab is pressed behind these words.
std::string Tab(std::vector<const char*> words) {
  words.insert(words.begin(), {"kubectl-heddle", "__complete"});
  const CommandLine line = ReadCommandLine(int(words.size()), words.data());
  EXPECT_TRUE(line.instead);
  EXPECT_EQ(line.instead->exit_code, 0);
  EXPECT_EQ(line.instead->err, "");
  return line.instead->out;
}

TEST(Completion, OffersTheCommandsWithWhatTheyDo) {
  EXPECT_THAT(Tab({""}), AllOf(HasSubstr("explain\tWhy a gang"), HasSubstr("fabric\t"), EndsWith("\n:4\n")));
  EXPECT_EQ(Tab({}), Tab({""}));
}

TEST(Completion, OffersWhatBeginsAsTheTypedWord) {
  EXPECT_THAT(Tab({"ex"}), AllOf(StartsWith("explain\t"), Not(HasSubstr("fabric"))));
  EXPECT_THAT(Tab({"fabric", "im"}), StartsWith("import\t"));
  EXPECT_EQ(Tab({"xyz"}), ":4\n");
}

TEST(Completion, OffersKindsWithoutASpaceBehindThem) {
  EXPECT_EQ(Tab({"explain", "job"}), "job/\njobset/\n:2\n");
  EXPECT_EQ(Tab({"explain", "-n", "train", "mpi"}), "mpijob/\n:2\n");
  EXPECT_EQ(Tab({"explain", "job/llama", ""}), ":4\n");
}

TEST(Completion, OffersTheOptionsOfTheCommandAndOfAll) {
  EXPECT_THAT(Tab({"plan", "--gl"}), StartsWith("--global-batch\t"));
  EXPECT_THAT(Tab({"plan", "--name"}), StartsWith("--namespace\t"));
  EXPECT_EQ(Tab({"explain", "--gl"}), ":4\n");
  EXPECT_THAT(Tab({"fabric", "import", "--"}), AllOf(HasSubstr("--link-gbps\t"), HasSubstr("--output\t")));
  EXPECT_THAT(Tab({"fabric", "--to"}), StartsWith("--topology\t"));
  EXPECT_EQ(Tab({"fabric", "import", "--to"}), ":4\n");
}

TEST(Completion, OffersValuesWhereTheyAreFew) {
  EXPECT_EQ(Tab({"topology", "-o", ""}), "table\njson\nyaml\n:4\n");
  EXPECT_EQ(Tab({"topology", "--output", "y"}), "yaml\n:4\n");
  EXPECT_EQ(Tab({"plan", "--parallelism", ""}), ":4\n");
  EXPECT_EQ(Tab({"fabric", "design", "--machine", "gb"}), "gb200\tGB200 NVL72\n:4\n");
  EXPECT_EQ(Tab({"fabric", "design", "--wiring", "rail-on"}), "rail-only\n:4\n");
}

TEST(Completion, KnowsWhatToBench) {
  EXPECT_EQ(Tab({"bench", "gang"}), "gang/\n:2\n");
  EXPECT_EQ(Tab({"bench", "--collective", "all_"}), "all_reduce\nall_gather\n:4\n");
  EXPECT_EQ(Tab({"bench", "--results", ""}), ":0\n");
}

TEST(Completion, LeavesFilesToTheShell) {
  EXPECT_EQ(Tab({"lint", "pol"}), ":0\n");
  EXPECT_EQ(Tab({"lint", "policy.yaml", ""}), ":0\n");
  EXPECT_EQ(Tab({"--kubeconfig", ""}), ":0\n");
  EXPECT_EQ(Tab({"prepare", "-f", ""}), ":0\n");
  EXPECT_EQ(Tab({"fabric", "design", "--prices", ""}), ":0\n");
  for (const char* command : {"topology", "fabric", "cables", "check"})
    EXPECT_EQ(Tab({command, "--topology", ""}), ":0\n") << command;
}

TEST(Completion, SurvivesWordsThatAreNoCommandLine) {
  EXPECT_EQ(Tab({"nonsense", "--no-such", "x", "-", "=", ""}).back(), '\n');
  EXPECT_THAT(Tab({"-o"}), EndsWith(":4\n"));
  EXPECT_THAT(Tab({"--output="}), EndsWith(":4\n"));
}

TEST(Completion, IsInstalledByAFileThatCallsThisProgram) {
  const char* words[] = {"kubectl-heddle", "completion"};
  const CommandLine line = ReadCommandLine(2, words);
  ASSERT_TRUE(line.instead);
  EXPECT_THAT(line.instead->out,
              AllOf(StartsWith("#!/bin/sh\n"), HasSubstr("exec kubectl heddle __complete \"$@\"\n")));
}

}  // namespace
}  // namespace heddle::cli
