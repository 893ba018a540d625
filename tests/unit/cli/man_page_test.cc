#include "cli/man_page.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <sstream>
#include <string>

#include "cli/flags.h"
#include "cli/flags_commands.h"

namespace heddle::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string PageOfThisProgram() {
  const char* words[] = {"kubectl-heddle", "man"};
  return ReadCommandLine(2, words).instead->out;
}

// The page without what makes it one: "--global-batch" is "\-\-global\-batch" there.
std::string Plain(std::string page) {
  page.erase(std::remove(page.begin(), page.end(), '\\'), page.end());
  return page;
}

// What stands under the heading of a command.
std::string SectionOf(const std::string& page, const std::string& command) {
  const std::string heading = "\n.SS " + command + "\n";
  const std::size_t start = page.find(heading);
  if (start == std::string::npos) return "";
  return page.substr(start, page.find("\n.S", start + heading.size()) - start);
}

TEST(ManPage, NamesEveryCommandWithItsOptionsAndExamples) {
  const std::string page = Plain(PageOfThisProgram());
  Flags flags;
  std::string output;
  CLI::App app("", "x");
  DefineProgram(app, flags, output);
  int commands = 0, options = 0;
  const std::function<void(const CLI::App&, const std::string&)> look = [&](const CLI::App& at,
                                                                            const std::string& path) {
    for (const CLI::App* sub : at.get_subcommands([](const CLI::App*) { return true; })) {
      if (sub->get_group().empty()) continue;  // nobody is shown it
      const std::string name = path + sub->get_name();
      const std::string section = SectionOf(page, name);
      EXPECT_THAT(section, HasSubstr("Exit codes: 0 ")) << name;
      ++commands;
      for (const CLI::Option* option : sub->get_options()) {
        if (option->check_name("--help")) continue;
        ++options;
        for (const std::string& word : option->get_lnames())
          EXPECT_THAT(section, HasSubstr("--" + word)) << name;
        EXPECT_THAT(section, HasSubstr(Plain(option->get_description()))) << name;
      }
      look(*sub, name + " ");
    }
  };
  look(app, "");
  EXPECT_GE(commands, 22) << "none was looked at";
  EXPECT_GE(options, 80);
  EXPECT_THAT(page, HasSubstr("kubectl heddle lint policy.yaml"));
}

TEST(ManPage, TakesNoLineOfItsTextForARequest) {
  CLI::App app(".SH of the app", "x");
  app.footer("\n'quoted\n.TH \\fBbold");
  const std::string page = ManPage(app);
  EXPECT_THAT(page, HasSubstr("\\&.SH of the app"));
  EXPECT_THAT(page, HasSubstr("\\&'quoted\n\\&.TH \\efBbold"));
  EXPECT_THAT(page, Not(HasSubstr("\n.TH \\f")));
}

TEST(ManPage, LeavesParagraphsToTheReadersWidthAndKeepsExamplesWhole) {
  CLI::App app("What it is.", "x");
  app.footer("\nA paragraph\nof two lines, such as\n  a: table\n\nExamples:\n  one\n  two\n\nExit codes: 0.");
  EXPECT_THAT(ManPage(app), HasSubstr(".PP\nA paragraph\nof two lines, such as\n.nf\n  a: table\n.fi\n"
                                      ".PP\nExamples:\n.nf\n  one\n  two\n.fi\n.PP\nExit codes: 0.\n"));
}

TEST(ManPage, EndsEveryStretchThatItKeepsWhole) {
  std::istringstream page(PageOfThisProgram());
  bool whole = false;
  for (std::string line; std::getline(page, line);) {
    if (line == ".nf" || line == ".fi") {
      EXPECT_NE(whole, line == ".nf");
      whole = line == ".nf";
    } else if (!line.starts_with('.')) {
      EXPECT_EQ(whole, line.starts_with(' ')) << line;
    }
  }
  EXPECT_FALSE(whole);
}

}  // namespace
}  // namespace heddle::cli
