// What the README shows of `plan` is what `plan` says. Times and the names of nodes are left out: they belong to the
// cost model's and the search's own tests.
#include <gmock/gmock.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "cli/flags.h"
#include "tests/unit/cli/cluster_text.h"
#include "tests/unit/cli/shell_words.h"

namespace heddle::cli {
namespace {

using ::testing::HasSubstr;

std::string Readme() {
  std::ifstream file(std::string(HEDDLE_SOURCE_DIR) + "/README.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The block between ``` lines that begins with `start`, and nothing where there is none.
std::string BlockOf(const std::string& text, const std::string& start) {
  const std::size_t begin = text.find("\n" + start);
  if (begin == std::string::npos) return "";
  return text.substr(begin + 1, text.find("\n```", begin) - begin);
}

std::string Shape(std::string line) {
  line = std::regex_replace(line, std::regex("[0-9]+\\.[0-9]+"), "N");
  line = std::regex_replace(line, std::regex("[0-9]+ Gb/s"), "N Gb/s");
  line = std::regex_replace(line, std::regex("node-[0-9]+"), "node-N");
  return std::regex_replace(line, std::regex(" +"), " ");
}

TEST(Readme, ShowsWhatPlanSays) {
  const std::string readme = Readme();
  const std::string command = BlockOf(readme, "kubectl heddle plan --synthetic");
  std::vector<std::string> words = WordsOf(command);
  ASSERT_GT(words.size(), 2u);
  words.erase(words.begin());  // kubectl
  const CommandLine line = ReadWords(words);
  ASSERT_FALSE(line.instead) << line.instead->err;
  const Output output = Plan(line.flags.plan, Files().read, {});
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  const std::string said = Shape(output.out);
  std::istringstream shown(BlockOf(readme, "72 pods of 8 GPUs"));
  int lines = 0;
  for (std::string one; std::getline(shown, one);) {
    if (one == "…" || one.empty()) continue;
    ++lines;
    EXPECT_THAT(said, HasSubstr(Shape(one) + "\n"))
        << "the README shows another answer: put in what it says now";
  }
  EXPECT_GT(lines, 5);
}

}  // namespace
}  // namespace heddle::cli
