#include "base/json_bounds.h"

#include <gtest/gtest.h>

namespace heddle::base {
namespace {

TEST(JsonBounds, CountsWhatWouldBecomeValues) {
  const auto count = [](std::string_view json) { return CountValues(json, 100, 8); };
  EXPECT_EQ(count("1"), 1u);
  EXPECT_EQ(count(R"({"a":[1,2],"b":3})"), 5u);
  EXPECT_EQ(count(R"(["a,b","[{",{"c\",":1}])"), 5u) << "nothing in strings counts";
  EXPECT_EQ(count("[]"), 2u) << "one too many, and never one too few";
}

TEST(JsonBounds, SaysNothingOfWhatIsTooDeepOrTooMuch) {
  EXPECT_EQ(CountValues("[[1]]", 100, 1), std::nullopt);
  EXPECT_EQ(CountValues("[[1]]", 100, 2), 3u);
  EXPECT_EQ(CountValues("[1,2,3]", 2, 8), std::nullopt);
  EXPECT_TRUE(IsBounded("[1,2,3]", 3, 8));
  EXPECT_FALSE(IsBounded("[1,2,3]", 2, 8));
}

}  // namespace
}  // namespace heddle::base
