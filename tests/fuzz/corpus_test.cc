// What the fuzzers start from, and what they once broke, as an ordinary test: tests/fuzz/corpus/<target>/*.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/fuzz/targets.h"

namespace heddle::fuzz {
namespace {

class Corpus : public testing::TestWithParam<Target> {};

TEST_P(Corpus, BreaksNothing) {
  const std::filesystem::path folder = std::filesystem::path("tests/fuzz/corpus") / GetParam().name;
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.insert(entry.path());
  EXPECT_FALSE(files.empty()) << folder;
  for (const std::filesystem::path& path : files) {
    SCOPED_TRACE(path);
    std::ifstream file(path, std::ios::binary);
    ASSERT_TRUE(file.is_open());
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_LE(bytes.size(), 4096U) << "a corpus of small texts stays readable";
    GetParam().run(bytes);
    GetParam().run(bytes.substr(0, bytes.size() / 2));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Corpus, testing::ValuesIn(kTargets),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace heddle::fuzz
