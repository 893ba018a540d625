#include "cli/help_text.h"

#include <gmock/gmock.h>

#include <sstream>
#include <string>
#include <vector>

#include "cli/flags.h"
#include "tests/unit/cli/golden.h"

namespace heddle::cli {
namespace {

using ::testing::HasSubstr;

// Behind the program's name, by the words with spaces between.
std::string HelpOf(const std::string& command, std::size_t width) {
  std::vector<std::string> words{"kubectl-heddle"};
  std::istringstream stream(command + " --help");
  for (std::string word; stream >> word;) words.push_back(word);
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  const CommandLine line = ReadCommandLine(int(argv.size()), argv.data(), width);
  return line.instead ? line.instead->out : "";
}

std::vector<std::string> WordsOf(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool IsCommand(const std::string& line) {
  for (const char* part : {"kubectl ", "scp ", "for it in ", "      --"}) {
    if (line.find(part) != std::string::npos) return true;
  }
  return false;
}

TEST(HelpText, OfEveryCommandIsNoWiderThanTheTerminalButForWhatIsToBeCopied) {
  for (const char* command :
       {"",         "status",        "doctor",         "cables",        "explain", "observe",
        "topology", "fabric",        "fabric import",  "fabric design", "plan",    "lint",
        "switch",   "switch render", "switch compare", "check",         "bench",   "record",
        "prepare",  "release",       "completion",     "man",           "version"}) {
    const std::string unbroken = HelpOf(command, 0);
    EXPECT_THAT(unbroken, HasSubstr("Usage: kubectl heddle"));
    for (const std::size_t width : {std::size_t(80), std::size_t(132)}) {
      const std::string help = HelpOf(command, width);
      EXPECT_EQ(WordsOf(help), WordsOf(unbroken)) << command << " at " << width;
      for (const std::string& line : WiderThan(width, help)) {
        EXPECT_TRUE(line.starts_with("  ") && !line.starts_with("  -") && IsCommand(line))
            << command << " at " << width << ": " << line;
        EXPECT_THAT(unbroken, HasSubstr(line)) << "what is to be copied stays whole";
      }
    }
  }
}

TEST(HelpText, FillsParagraphsAnewAndKeepsExamplesWhole) {
  const std::string help =
      "What it does. \n[Exactly 1 of the following options is required]\nUsage: kubectl heddle x "
      "[OPTIONS]\n\n"
      "Options:\n  --last INT                  So many jobs at most, the latest of them first\n"
      "  --with-a-very-long-name TEXT\n                              what it is\n\n"
      "A paragraph that somebody broke\nat another width.\n\n"
      "Examples:\n  kubectl heddle x --with-a-very-long-name some/file/of/mine.json\n"
      "  kubectl heddle x --last 100 some/file    what it is for\n";
  EXPECT_EQ(HelpText(help, 0), help);
  EXPECT_EQ(
      HelpText(help, 50),
      "What it does.\n[Exactly 1 of the following options is required]\nUsage: kubectl heddle x [OPTIONS]\n\n"
      "Options:\n  --last INT\n      So many jobs at most, the latest of them\n      first\n"
      "  --with-a-very-long-name TEXT\n                              what it is\n\n"
      "A paragraph that somebody broke at another width.\n\n"
      "Examples:\n  kubectl heddle x --with-a-very-long-name some/file/of/mine.json\n"
      "  kubectl heddle x --last 100 some/file\n      what it is for\n");
}

TEST(HelpText, BreaksAnOptionsDescriptionInItsColumn) {
  EXPECT_EQ(
      HelpText("Options:\n  --last INT                  So many jobs at most, the latest of them first\n",
               66),
      "Options:\n  --last INT                  So many jobs at most, the latest of\n"
      "                              them first\n");
}

}  // namespace
}  // namespace heddle::cli
