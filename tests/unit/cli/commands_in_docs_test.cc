// Every `kubectl heddle …` that the docs, the notes of the chart and its alerts tell a person to type is one that the
// command takes: who copies it at night gets an answer and not a usage error.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/unit/cli/shell_words.h"

namespace heddle::cli {
namespace {

struct Told {
  std::string where, command;
};

std::string Text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> Pages() {
  const std::filesystem::path root(HEDDLE_SOURCE_DIR);
  std::vector<std::filesystem::path> pages{root / "README.md", root / "charts/heddle/templates/NOTES.txt",
                                           root / "charts/heddle/rules/heddle.yaml"};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "docs")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  return pages;
}

// What stands behind "kubectl heddle " up to where the shell, the prose or the page goes on.
std::vector<Told> CommandsOf(const std::filesystem::path& page) {
  std::vector<Told> found;
  const std::string text = std::regex_replace(Text(page), std::regex("\\\\\n *"), " ");
  const std::regex command(R"(kubectl[ -]heddle( [^`\n]*))");
  for (auto it = std::sregex_iterator(text.begin(), text.end(), command); it != std::sregex_iterator();
       ++it) {
    const std::size_t at = std::size_t(it->position());
    const bool quoted = at > 0 && text[at - 1] == '`';
    const std::size_t line = text.rfind('\n', at) + 1;
    // A command begins its line, follows a pipe, or stands in backquotes; the rest is prose.
    const std::string before = text.substr(line, at - line);
    const bool typed = before.find_first_not_of(" $") == std::string::npos || before.ends_with("| ") ||
                       before.ends_with("description: ");
    if (!quoted && !typed) continue;
    std::string words = (*it)[1];
    words = std::regex_replace(words, std::regex("(; | +(#|\\||>|<|&&|names|says|on a) ?).*| {2,}.*"), "");
    found.push_back({std::filesystem::relative(page, HEDDLE_SOURCE_DIR), words});
  }
  return found;
}

TEST(CommandsInDocs, AreThoseThatTheCommandTakes) {
  int whole = 0;
  for (const std::filesystem::path& page : Pages()) {
    for (const Told& told : CommandsOf(page)) {
      std::vector<std::string> words = WordsOf("heddle" + told.command);
      if (words.size() == 1) continue;
      // A verb alone, or with …, is named and not typed.
      const bool named = words.size() == 2 || told.command.find("…") != std::string::npos ||
                         told.command.find("...") != std::string::npos;
      if (named) {
        words.resize(2);
        words.emplace_back("--help");
      }
      const CommandLine line = ReadWords(words);
      const bool taken = !line.instead || line.instead->exit_code == Output::kOk;
      EXPECT_TRUE(taken) << told.where << ": kubectl heddle" << told.command << "\n" << line.instead->err;
      whole += named ? 0 : 1;
    }
  }
  EXPECT_GT(whole, 40) << "the commands are not found any more";
}

}  // namespace
}  // namespace heddle::cli
