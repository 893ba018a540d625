// What docs/looking.md shows of `status`, `doctor` and `cables` is what these say: each line of a block under a golden's
// name stands in that golden.
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

TEST(Looking, ShowsWhatTheCommandsSay) {
  const std::string top = std::string(HEDDLE_SOURCE_DIR) + "/";
  std::ifstream page(top + "docs/looking.md");
  int blocks = 0, compared = 0;
  std::set<std::string> golden;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with(kStart)) {
      golden = LinesOf(top + line.substr(5, line.find(" -->") - 5));
      ASSERT_FALSE(golden.empty()) << line;
      ++blocks;
    } else if (line.starts_with("```")) {
      if (inside) golden.clear();
      inside = !inside;
    } else if (inside && !golden.empty() && line != "…") {
      ++compared;
      EXPECT_TRUE(golden.contains(line)) << "the page shows another answer than the golden: " << line;
    }
  }
  EXPECT_EQ(blocks, 3);
  EXPECT_GT(compared, 30);
}

}  // namespace
}  // namespace heddle::cli
