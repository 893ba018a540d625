// What the fuzzers start from, and what they once broke, as an ordinary test: tests/fuzz/corpus/<target>/*.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "tests/fuzz/targets.h"

namespace heddle::fuzz {
namespace {

class Corpus : public testing::TestWithParam<Target> {};

std::map<std::filesystem::path, std::string> FilesOf(const Target& target) {
  std::map<std::filesystem::path, std::string> files;
  const std::filesystem::path folder = std::filesystem::path("tests/fuzz/corpus") / target.name;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    EXPECT_TRUE(file.is_open()) << entry.path();
    files[entry.path()] = std::string(std::istreambuf_iterator<char>(file), {});
  }
  return files;
}

TEST_P(Corpus, BreaksNothing) {
  for (const auto& [path, bytes] : FilesOf(GetParam())) {
    SCOPED_TRACE(path);
    EXPECT_LE(bytes.size(), 4096U) << "a corpus of small texts stays readable";
    (void)GetParam().run(bytes);
    (void)GetParam().run(bytes.substr(0, bytes.size() / 2));
  }
}

// Else the fuzzer has to find by chance what a sound file looks like, and until then tries the first refusal only.
TEST_P(Corpus, HasAFileThatIsRead) {
  const auto files = FilesOf(GetParam());
  const bool any =
      std::any_of(files.begin(), files.end(), [](const auto& file) { return GetParam().run(file.second); });
  EXPECT_TRUE(any) << "none of " << files.size() << " files is what the parser of " << GetParam().name
                   << " is for";
}

INSTANTIATE_TEST_SUITE_P(Targets, Corpus, testing::ValuesIn(kTargets),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace heddle::fuzz
