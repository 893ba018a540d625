#include "base/counted.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace heddle::base {
namespace {

TEST(Counted, SaysOneOfOneAndMoreOfAnyOtherNumber) {
  EXPECT_EQ(Counted(1, "node"), "1 node");
  EXPECT_EQ(Counted(0, "node"), "0 nodes");
  EXPECT_EQ(Counted(std::size_t{2}, "GPU"), "2 GPUs");
  EXPECT_EQ(Counted(std::int64_t{-1}, "rail"), "-1 rails");
}

}  // namespace
}  // namespace heddle::base
