// What docs/looking.md shows of `status`, `doctor` and `cables`, docs/bench.md of `bench` and docs/priority.md of
// `explain`, is what these say: each line of a block under a golden's name stands in that golden.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace heddle::cli {
namespace {

constexpr std::string_view kStart = "<!-- tests/golden/cli/";

std::set<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::set<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.insert(line);
  return lines;
}

struct Compared {
  int blocks = 0, lines = 0;
};

Compared CompareBlocksOf(const std::string& name) {
  const std::string top = std::string(HEDDLE_SOURCE_DIR) + "/";
  std::ifstream page(top + name);
  Compared compared;
  std::set<std::string> golden;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with(kStart)) {
      golden = LinesOf(top + line.substr(5, line.find(" -->") - 5));
      EXPECT_FALSE(golden.empty()) << line;
      ++compared.blocks;
    } else if (line.starts_with("```")) {
      if (inside) golden.clear();
      inside = !inside;
    } else if (inside && !golden.empty() && line != "…") {
      ++compared.lines;
      EXPECT_TRUE(golden.contains(line)) << name << " shows another answer than the golden: " << line;
    }
  }
  return compared;
}

TEST(Looking, ShowsWhatTheCommandsSay) {
  const Compared looking = CompareBlocksOf("docs/looking.md"), bench = CompareBlocksOf("docs/bench.md");
  EXPECT_EQ(looking.blocks, 3);
  EXPECT_GT(looking.lines, 30);
  EXPECT_EQ(bench.blocks, 1);
  EXPECT_GT(bench.lines, 10);
  const Compared priority = CompareBlocksOf("docs/priority.md");
  EXPECT_EQ(priority.blocks, 1);
  EXPECT_GT(priority.lines, 10);
}

}  // namespace
}  // namespace heddle::cli
