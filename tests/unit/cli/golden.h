#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/table.h"

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

// Lines that a terminal of so many columns would break.
inline std::vector<std::string> WiderThan(std::size_t columns, const std::string& text) {
  std::vector<std::string> wide;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (DisplayWidth(line) > columns) wide.push_back(line);
  }
  return wide;
}

inline std::string WithoutColours(const std::string& text) {
  return std::regex_replace(text, std::regex("\x1b\\[[0-9;]*m"), "");
}

// A sentence: words with one space between them. Rows of tables have two somewhere, and what stands in quotation marks
// is to be copied whole.
inline bool IsProse(const std::string& line) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  return line.find("  ", begin) == std::string::npos && line.find(' ', begin) != std::string::npos &&
         line.compare(begin, 1, "\"") != 0;
}

// What `print` makes at 80 and at 200 columns: colours change nothing but colours, no sentence is wider than the
// terminal, and none is lost on the way.
inline void ExpectFits(const std::function<std::string(const Style&)>& print) {
  const auto words = [](const std::string& text) {
    std::istringstream stream(text);
    std::multiset<std::string> all;
    for (std::string word; stream >> word;) all.insert(word);
    return all;
  };
  const std::multiset<std::string> unbroken = words(print({}));
  EXPECT_FALSE(unbroken.empty());
  for (const std::size_t width : {std::size_t(80), std::size_t(200)}) {
    const std::string plain = print({.width = width}), coloured = print({.colours = true, .width = width});
    EXPECT_EQ(WithoutColours(coloured), plain) << "at " << width;
    EXPECT_EQ(plain.find('\x1b'), std::string::npos) << "at " << width;
    for (const std::string& line : WiderThan(width, plain))
      EXPECT_FALSE(IsProse(line)) << width << ": " << line;
    for (const std::string& word : unbroken) {
      // Headings of columns that stand under their rows are small letters there.
      if (word.find_first_of("abcdefghijklmnopqrstuvwxyz0123456789") == std::string::npos) continue;
      EXPECT_NE(plain.find(word), std::string::npos) << width << ": lost \"" << word << '"';
    }
  }
}

}  // namespace heddle::cli
