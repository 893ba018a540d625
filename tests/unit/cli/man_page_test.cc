#include "cli/man_page.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <sstream>
#include <string>

#include "cli/flags.h"

namespace heddle::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string PageOfThisProgram() {
  const char* words[] = {"kubectl-heddle", "man"};
  return ReadCommandLine(2, words).instead->out;
}

TEST(ManPage, NamesEveryCommandWithItsOptionsAndExamples) {
  const std::string page = PageOfThisProgram();
  for (const char* command :
       {"explain", "topology", "fabric", "fabric import", "fabric design", "plan", "lint", "switch",
        "switch render", "switch compare", "check", "bench", "record", "release"}) {
    EXPECT_THAT(page, HasSubstr(std::string(".SS ") + command + "\n"));
  }
  EXPECT_THAT(page, HasSubstr("\\-\\-global\\-batch"));
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
