#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace heddle::test {

// A file of ../shared/data: real, public and read where it lies.
inline std::string SharedData(const std::string& name) {
  const std::string path = std::string(HEDDLE_SOURCE_DIR) + "/../shared/data/" + name;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace heddle::test
