#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace heddle::test {

// tests/fixtures/lossless/<name>.
inline std::string LosslessFixture(const std::string& name) {
  std::ifstream file(std::string(HEDDLE_SOURCE_DIR) + "/tests/fixtures/lossless/" + name);
  EXPECT_TRUE(file.is_open()) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// `text` with the first `from` replaced.
inline std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

}  // namespace heddle::test
