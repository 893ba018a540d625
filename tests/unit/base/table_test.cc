#include "base/table.h"

#include <gtest/gtest.h>

namespace heddle::base {
namespace {

TEST(Table, AlignsWordsLeftAndNumbersRight) {
  Table table({"NAME", "N", "WORD"});
  table.Add({"a", "1", "x"});
  table.Add({"longer", "1000", "yes"});
  EXPECT_EQ(table.Format({}),
            "NAME       N  WORD\n"
            "a          1  x\n"
            "longer  1000  yes\n");
}

TEST(Table, CountsCharactersAndNotBytes) {
  Table table({"A", "B"});
  table.Add({"…", "x"});
  EXPECT_EQ(table.Format({}), "A  B\n…  x\n");
}

TEST(Table, ShowsADashForNothing) {
  Table table({"A"});
  table.Add({""});
  EXPECT_EQ(table.Format({}), "A\n-\n");
}

TEST(Table, LetsNoControlCharacterReachATerminal) {
  Table table({"A"});
  table.Add({"\x1b[2Jevil\n"});
  EXPECT_EQ(table.Format({}), "A\n?[2Jevil?\n");
}

TEST(Table, ColoursOnlyWhenAsked) {
  Table table({"A", "B"});
  table.Add({Cell("bad", Colour::kBad), "x"});
  EXPECT_EQ(table.Format({}).find('\x1b'), std::string::npos);
  EXPECT_NE(table.Format({.colours = true}).find("\x1b[31mbad\x1b[0m"), std::string::npos);
}

TEST(Table, ColoursNoHeadingThatIsEmpty) {
  Table table({"", "B"});
  table.Add({"a", Cell("x", Colour::kGood)});
  EXPECT_EQ(table.Format({.colours = true}), "   \x1b[2mB\x1b[0m\na  \x1b[32mx\x1b[0m\n");
}

}  // namespace
}  // namespace heddle::base
