#include "cli/advice.h"

#include <gmock/gmock.h>

namespace heddle::cli {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(Advice, TellsAgesAsKubectlDoes) {
  const base::WallTime now{hours(1000)};
  const auto age = [now](auto ago) { return AgeText(now - ago, now); };
  EXPECT_EQ(age(seconds(95)), "95s");
  EXPECT_EQ(age(minutes(2)), "2m");
  EXPECT_EQ(age(minutes(119)), "119m");
  EXPECT_EQ(age(hours(47)), "47h");
  EXPECT_EQ(age(hours(48)), "2d");
  EXPECT_EQ(age(-hours(1)), "0s") << "somebody's clock is ahead";
  EXPECT_EQ(AgeText(std::nullopt, now), "-");
}

TEST(Advice, NamesTheFirst) {
  EXPECT_EQ(FirstNames({}), "");
  EXPECT_EQ(FirstNames({"a"}), "a");
  EXPECT_EQ(FirstNames({"a", "b"}), "a and b");
  EXPECT_EQ(FirstNames({"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(FirstNames({"a", "b", "c", "d"}), "a, b, … 2 more");
}

TEST(Advice, CutsBetweenCharacters) {
  EXPECT_EQ(Shortened("kurz", 4), "kurz");
  EXPECT_EQ(Shortened("länger", 4), "län…");
  EXPECT_EQ(Shortened("ä", 1), "ä");
}

TEST(Advice, StandsBelowItsRowWhereTheTerminalIsNarrow) {
  const std::vector<AdviceRow> rows{
      {{Cell("bad"), Cell("gpu-1")}, "look at the cable and at the leaf port behind it"},
      {{Cell("well"), Cell("a-long-name")}, ""}};
  EXPECT_EQ(AdviceText({"STATE", "WHO", "DO"}, rows, {.width = 40}),
            "STATE  WHO\n"
            "bad    gpu-1\n"
            "    look at the cable and at the leaf\n"
            "    port behind it\n"
            "well   a-long-name\n");
  EXPECT_EQ(AdviceText({"STATE", "WHO", "DO"}, rows, {}),
            "STATE  WHO          DO\n"
            "bad    gpu-1        look at the cable and at the leaf port behind it\n"
            "well   a-long-name  -\n");
}

TEST(Advice, StaysInItsColumnWhereThatIsWideEnough) {
  const std::vector<AdviceRow> rows{
      {{Cell("bad"), Cell("gpu-1")}, "look at the cable and at the leaf port behind it"},
      {{Cell("well"), Cell("2")}, ""}};
  EXPECT_EQ(AdviceText({"STATE", "WHO", "DO"}, rows, {.width = 50}),
            "STATE  WHO    DO\n"
            "bad    gpu-1  look at the cable and at the leaf\n"
            "              port behind it\n"
            "well   2\n");
  const std::string coloured = AdviceText({"STATE", "WHO", "DO"}, rows, {.colours = true, .width = 50});
  EXPECT_NE(coloured.find("  \x1b[2mDO\x1b[0m\n"), std::string::npos) << coloured;
  EXPECT_NE(coloured.find("\n              port behind it\n"), std::string::npos);
}

TEST(Advice, PutsColumnsBelowTheirRowWhereTheTerminalIsNarrow) {
  const std::vector<std::string> header{"AXIS", "BOUND BY", "AS", "MS"};
  const std::vector<std::vector<Cell>> rows{{Cell("tp"), Cell("NVLink 2952 Gb/s"), Cell("NVLS"), Cell("1.5")},
                                            {Cell("dp"), Cell(""), Cell("a\x1b[31m"), Cell("12.0")}};
  EXPECT_EQ(ColumnsText(header, rows, {1, 2}, {.width = 30}),
            "AXIS    MS\n"
            "tp     1.5\n"
            "    bound by NVLink 2952 Gb/s, as NVLS\n"
            "dp    12.0\n"
            "    as a?[31m\n");
  for (const std::size_t width : {0, 80})
    EXPECT_EQ(ColumnsText(header, rows, {1, 2}, {.width = width}), ColumnsText(header, rows, {}, {}));
}

TEST(Advice, BreaksSentencesAndNoRowsOfTables) {
  const std::string text =
      "A  ROW  OF A TABLE THAT IS RATHER LONG, AND STAYS SO\n\n"
      "\x1b[2m    to do: a sentence that is longer than the terminal\x1b[0m\nshort\n";
  EXPECT_EQ(ProseText(text, {.width = 40}),
            "A  ROW  OF A TABLE THAT IS RATHER LONG, AND STAYS SO\n\n"
            "\x1b[2m    to do: a sentence that is longer\n    than the terminal\x1b[0m\nshort\n");
  EXPECT_EQ(ProseText(text, {}), text);
  EXPECT_EQ(ProseText("\x1b", {.width = 40}), "\x1b\n");
  EXPECT_EQ(ProseText(std::string(100, ' '), {.width = 40}), std::string(100, ' ') + "\n");
}

TEST(Advice, KeepsControlCharactersFromTheTerminal) {
  const std::vector<AdviceRow> rows{{{Cell("a\x1b[31m")}, "do\x1b]0;x\x07 it"}};
  for (const std::size_t width : {0, 20}) {
    const std::string text = AdviceText({"A", "B"}, rows, {.width = width});
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace heddle::cli
