#include "cli/of_files.h"

#include <gmock/gmock.h>

#include "tests/unit/cli/cluster_text.h"
#include "tests/unit/cli/shell_words.h"

namespace heddle::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr base::WallTime kNow{std::chrono::seconds(1'800'000'000)};

class CommandOfFiles : public testing::Test {
 protected:
  CommandOfFiles() {
    Json items = NodeTopologiesOf("su:1 node:2 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100");
    items.push_back(GangOn({{"node-00", 0, {}}}, "llama"));
    files_.texts["now.json"] = ListOf(std::move(items));
  }
  // What is said without a cluster; nothing where one is to be asked.
  std::optional<Output> Run(const std::string& words) {
    const CommandLine line = ReadWords(WordsOf("kubectl-heddle " + words));
    EXPECT_FALSE(line.instead) << words;
    return OfFiles(line.flags, files_.read, kNow, {});
  }

 private:
  Files files_;
};

TEST_F(CommandOfFiles, AsksTheClusterWhereThereIsNone) {
  for (const char* words : {"status", "explain job/llama", "observe", "topology", "fabric", "cables",
                            "doctor", "check job/llama", "bench gang/llama --image x/nccl", "release --all"})
    EXPECT_FALSE(Run(words)) << words;
}

TEST_F(CommandOfFiles, SaysWhatTheySay) {
  for (const char* words : {"topology", "fabric", "cables", "status"}) {
    const auto output = Run(std::string(words) + " --topology now.json");
    ASSERT_TRUE(output) << words;
    EXPECT_NE(output->out, "") << words << ": " << output->err;
  }
  for (const char* words : {"explain gang/llama", "observe", "bench gang/llama --image x/nccl"})
    EXPECT_TRUE(Run(std::string(words) + " --topology now.json")) << words;
  EXPECT_EQ(Run("status --topology nowhere.json")->exit_code, Output::kUsage);
}

TEST_F(CommandOfFiles, LooksAtTheNamespaceThatWasGiven) {
  EXPECT_THAT(Run("status --topology now.json")->out, Not(HasSubstr("0 gangs running, 0 waiting")));
  EXPECT_THAT(Run("status --topology now.json -n elsewhere")->out, HasSubstr("0 gangs running, 0 waiting"));
  EXPECT_THAT(Run("explain gang/llama --topology now.json -n elsewhere")->err, HasSubstr("hold none there"));
  EXPECT_THAT(Run("explain gang/llama --topology now.json -n train")->err, Not(HasSubstr("hold no gang")));
}

}  // namespace
}  // namespace heddle::cli
