#include "base/nearest_word.h"

#include <gtest/gtest.h>

namespace heddle::base {
namespace {

const std::vector<std::string> kWords{"status", "doctor", "topology", "plan", "check", "man"};

TEST(NearestWord, IsTheOneThatTheFewestLettersMake) {
  EXPECT_EQ(NearestWord("statuss", kWords), "status");
  EXPECT_EQ(NearestWord("stauts", kWords), "status") << "two letters that changed places are one mistake";
  EXPECT_EQ(NearestWord("plam", kWords), "plan");
  EXPECT_EQ(NearestWord("chekc", kWords), "check");
  EXPECT_EQ(NearestWord("topo", kWords), "topology");
}

TEST(NearestWord, IsNoneWhereNoneIsNear) {
  for (const char* typed : {"", "x", "logs", "describe", "statistics-of-all"})
    EXPECT_EQ(NearestWord(typed, kWords), "") << typed;
  EXPECT_EQ(NearestWord(std::string(100'000, 'a'), kWords), "");
  EXPECT_EQ(NearestWord("plan", {}), "");
}

TEST(NearestWord, ReadsWordsOut) {
  EXPECT_EQ(OneOf({}), "");
  EXPECT_EQ(OneOf({"a"}), "a");
  EXPECT_EQ(OneOf({"a", "b", "c"}), "a, b or c");
}

}  // namespace
}  // namespace heddle::base
