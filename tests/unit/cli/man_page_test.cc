#include "cli/man_page.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>

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

}  // namespace
}  // namespace heddle::cli
