#include "cli/completion.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <functional>

#include "cli/complete_names.h"
#include "cli/flags.h"
#include "cli/flags_commands.h"
#include "cli/typed_words.h"
#include "tests/unit/cli/cluster_text.h"
#include "tests/unit/cli/stage.h"

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

// What is left to the cluster, or to files, when Tab is pressed behind these words.
NamesWanted Wanted(std::vector<const char*> words) {
  words.insert(words.begin(), {"kubectl-heddle", "__complete"});
  const CommandLine line = ReadCommandLine(int(words.size()), words.data());
  EXPECT_FALSE(line.instead);
  EXPECT_EQ(line.flags.command, Command::kComplete);
  return line.flags.names;
}

TEST(Completion, LeavesNamesToTheClusterThatTheOptionsBeforeThemName) {
  const NamesWanted owners =
      Wanted({"explain", "-n", "train", "--context=berlin", "--kubeconfig", "k.yaml", "job/ll"});
  EXPECT_EQ(owners.what, NamesWanted::What::kOwners);
  EXPECT_EQ(owners.typed, "job/ll");
  EXPECT_EQ(owners.ns, "train");
  EXPECT_EQ(owners.context, "berlin");
  EXPECT_EQ(owners.kubeconfig, "k.yaml");
  const NamesWanted as = Wanted({"--as", "ada", "explain", "--as-group=dev", "--as-group", "ops", "job/ll"});
  EXPECT_EQ(as.as, "ada");
  EXPECT_EQ(as.as_groups, (std::vector<std::string>{"dev", "ops"}));
  EXPECT_EQ(Wanted({"bench", "gang/"}).what, NamesWanted::What::kOwners);
  for (const char* command : {"topology", "cables", "record"}) {
    EXPECT_EQ(Wanted({command, "gpu-"}).what, NamesWanted::What::kNodes) << command;
    EXPECT_EQ(Wanted({command, "gpu-"}).typed, "gpu-") << command;
    EXPECT_EQ(Tab({command, "gpu-017", ""}), ":4\n") << command;
  }
  EXPECT_EQ(Wanted({"cables", "--node", ""}).what, NamesWanted::What::kNodes);
  EXPECT_THAT(Wanted({"topology", "--topology", "a.json", "--topology=b.json", ""}).topology,
              ::testing::ElementsAre("a.json", "b.json"));
}

class CompletedNames : public Stage {
 protected:
  std::string OfCluster(NamesWanted::What what, const std::string& typed) {
    const Output output = CompleteOfCluster(client, {.what = what, .typed = typed, .ns = "train"}, {});
    EXPECT_EQ(output.exit_code, 0);
    EXPECT_EQ(output.err, "");
    return output.out;
  }
};

TEST_F(CompletedNames, AreTheNodesAndOwnersThatBeginAsWhatWasTyped) {
  AddCluster("su:1 node:12 gpu:8 nic:8 rail:8");
  AddJob("llama", 2, "tp=8,dp=2");
  AddJob("bert", 2, "");
  EXPECT_EQ(OfCluster(NamesWanted::What::kNodes, "node-1"), "node-10\nnode-11\n:4\n");
  EXPECT_EQ(OfCluster(NamesWanted::What::kOwners, "job/"), "job/bert\njob/llama\n:4\n");
  EXPECT_EQ(OfCluster(NamesWanted::What::kOwners, "jobs/ll"), "jobs/llama\n:4\n");
  for (const test::ApiRequest& request : server.requests()) EXPECT_TRUE(request.metadata_only);
}

TEST_F(CompletedNames, AreNoneWhereNobodyCanTell) {
  AddCluster("su:1 node:1 gpu:8 nic:8 rail:8");
  EXPECT_EQ(OfCluster(NamesWanted::What::kOwners, "pods/"), ":4\n");
  EXPECT_EQ(OfCluster(NamesWanted::What::kOwners, "nonsense/"), ":4\n");
  EXPECT_EQ(OfCluster(NamesWanted::What::kOwners, "/"), ":4\n");
  EXPECT_EQ(OfCluster(NamesWanted::What::kOwners, "mpijob/"), ":4\n") << "the kind is not served";
  server.FailNext({.method = "GET", .path_contains = "nodetopologies", .status = 403});
  EXPECT_EQ(OfCluster(NamesWanted::What::kNodes, ""), ":4\n");
}

TEST_F(CompletedNames, ComeFromFilesAndNeverFromTheTerminal) {
  AddCluster("su:1 node:2 gpu:8 nic:8 rail:8");
  const auto list = client.List(ResourceOf(keys::kNodeTopology), {}, {});
  ASSERT_TRUE(list);
  const std::string text = Json{{"kind", "List"}, {"apiVersion", "v1"}, {"items", list->items}}.dump();
  const ReadFile read = [&text](const std::string& path) -> base::Result<std::string> {
    EXPECT_NE(path, "-");
    if (path == "a.json") return text;
    return base::Fail(base::Code::kNotFound, path + " is not there");
  };
  EXPECT_EQ(CompleteOfFiles({.typed = "n", .topology = {"a.json"}}, read).out, "node-00\nnode-01\n:4\n");
  EXPECT_EQ(CompleteOfFiles({.topology = {"b.json"}}, read).out, ":4\n");
  EXPECT_EQ(CompleteOfFiles({.topology = {"-"}}, read).out, ":4\n");
}

TEST_F(CompletedNames, AreThoseOfGangsInFilesAndOfWhatMadeThem) {
  Json items = NodeTopologiesOf("su:1 node:2 gpu:8 nic:8 rail:8");
  for (const char* name : {"llama", "bert"}) items.push_back(GangOn({{"node-00", 0, {}}}, name));
  const std::string text = ListOf(std::move(items));
  const ReadFile read = [&text](const std::string&) -> base::Result<std::string> { return text; };
  const auto offered = [&read](const std::string& typed, const std::string& ns) {
    return CompleteOfFiles(
               {.what = NamesWanted::What::kOwners, .typed = typed, .ns = ns, .topology = {"a.json"}}, read)
        .out;
  };
  EXPECT_EQ(offered("gang/", ""), "gang/bert\ngang/llama\n:4\n");
  EXPECT_EQ(offered("job/ll", "train"), "job/llama\n:4\n");
  EXPECT_EQ(offered("job/", "elsewhere"), ":4\n");
  EXPECT_EQ(offered("mpijob/", ""), ":4\n");
  EXPECT_EQ(offered("nonsense/", ""), ":4\n");
}

TEST(Completion, OffersTheOptionsOfTheCommandAndOfAll) {
  EXPECT_THAT(Tab({"plan", "--gl"}), StartsWith("--global-batch\t"));
  EXPECT_THAT(Tab({"plan", "--name"}), StartsWith("--namespace\t"));
  EXPECT_THAT(Tab({"status", "--as"}), AllOf(StartsWith("--as\t"), HasSubstr("--as-group\t")));
  EXPECT_THAT(Tab({"status", "--all-"}), StartsWith("--all-namespaces\t"));
  EXPECT_EQ(Tab({"explain", "--all-"}), ":4\n");
  EXPECT_EQ(Tab({"explain", "--gl"}), ":4\n");
  EXPECT_THAT(Tab({"fabric", "import", "--"}), AllOf(HasSubstr("--link-gbps\t"), HasSubstr("--output\t")));
  EXPECT_THAT(Tab({"fabric", "--to"}), StartsWith("--topology\t"));
  EXPECT_EQ(Tab({"fabric", "import", "--to"}), ":4\n");
}

TEST(Completion, OffersEveryCommandThatIsShownAndEveryOptionOfIt) {
  Flags flags;
  std::string output;
  CLI::App app("", "x");
  DefineProgram(app, flags, output);
  int commands = 0;
  const std::function<void(const CLI::App&, const std::vector<const char*>&)> look =
      [&](const CLI::App& at, const std::vector<const char*>& words) {
        std::vector<const char*> next = words;
        next.push_back("");
        const std::string offered = "\n" + Tab(next);
        for (const CLI::App* sub : at.get_subcommands([](const CLI::App*) { return true; })) {
          const bool hidden = sub->get_group().empty();
          const std::string line = "\n" + sub->get_name() + "\t";
          EXPECT_EQ(offered.find(line) == std::string::npos, hidden) << sub->get_name();
          if (hidden) continue;
          ++commands;
          std::vector<const char*> inner = words;
          const std::string name = sub->get_name();
          inner.push_back(name.c_str());
          std::vector<const char*> dashes = inner;
          dashes.push_back("--");
          const std::string options = "\n" + Tab(dashes);
          for (const CLI::Option* option : sub->get_options()) {
            for (const std::string& word : option->get_lnames())
              EXPECT_THAT(options, HasSubstr("\n--" + word + "\t")) << name;
          }
          if (!SubcommandsOf(*sub).empty()) look(*sub, inner);
        }
      };
  look(app, {});
  EXPECT_GE(commands, 22) << "none was looked at";
}

TEST(Completion, OffersTheCommandsBehindHelp) {
  EXPECT_EQ(Tab({"help", ""}), Tab({""}));
  EXPECT_THAT(Tab({"help", "fabric", "im"}), StartsWith("import\t"));
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
  for (const char* command : {"topology", "fabric", "cables", "check", "status", "explain", "observe"})
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
