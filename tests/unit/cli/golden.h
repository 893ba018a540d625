#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

namespace heddle::cli {

// Predicted times belong to the cost model's own tests.
inline std::string WithoutTimes(const std::string& text) {
  return std::regex_replace(text, std::regex(" +[0-9]+\\.[0-9]{3}\\b"), " <ms>");
}

// Compares with tests/golden/cli/<name>; UPDATE_GOLDEN=1 writes it instead.
inline void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = std::string(HEDDLE_SOURCE_DIR) + "/tests/golden/cli/" + name;
  const char* update = std::getenv("UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << " is missing: run once with UPDATE_GOLDEN=1 and read what it wrote";
  std::stringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(text, expected.str()) << "differs from " << path << "; if it should, run with UPDATE_GOLDEN=1";
}

}  // namespace heddle::cli
