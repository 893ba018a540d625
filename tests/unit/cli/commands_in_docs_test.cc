// Every `kubectl heddle …` that the docs, the notes of the chart and its alerts tell a person to type is one that the
// command takes: who copies it at night gets an answer and not a usage error.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "cli/fabric_design.h"
#include "tests/unit/cli/cluster_text.h"
#include "tests/unit/cli/from_disk.h"
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

// Who copies a page's commands one after the other is not told that there is no such node.
TEST(CommandsInDocs, NameNodesOfTheFileThatTheirPageDesigns) {
  const std::filesystem::path page = std::filesystem::path(HEDDLE_SOURCE_DIR) / "docs/design.md";
  std::set<std::string> nodes;
  for (const Told& told : CommandsOf(page)) {
    const CommandLine line = ReadWords(WordsOf("heddle" + told.command));
    if (line.instead || line.flags.command != Command::kDesign || line.flags.design.topology.empty())
      continue;
    FabricDesignOptions options = line.flags.design;
    options.topology = "-";
    options.model = "llama3-8b";  // whose times are predicted soonest
    options.now = base::WallTime(std::chrono::seconds(1'800'000'000));
    const WriteFile nowhere = [](const std::string& path, const std::string&) -> base::Status {
      return base::Fail(base::Code::kInternal, path + " cannot be written");
    };
    const Output written = FabricDesign(options, FromDisk, nowhere, {});
    ASSERT_EQ(written.exit_code, Output::kOk) << written.err;
    const Json list = Json::parse(written.out, nullptr, false);
    ASSERT_TRUE(list.contains("items")) << told.command;
    for (const Json& item : list.at("items")) nodes.insert(item.at("metadata").at("name").get<std::string>());
  }
  ASSERT_FALSE(nodes.empty()) << "the page's command that writes a file is not found any more";
  const std::string text = Text(page);
  const std::regex named("node-[0-9]+");
  int count = 0;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), named); it != std::sregex_iterator(); ++it) {
    EXPECT_TRUE(nodes.contains(it->str())) << it->str();
    ++count;
  }
  EXPECT_GT(count, 0) << "the page names no node any more";
}

}  // namespace
}  // namespace heddle::cli
