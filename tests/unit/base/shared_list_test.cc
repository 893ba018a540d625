#include "base/shared_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::base {
namespace {

using ::testing::ElementsAre;

TEST(SharedList, IsSharedByItsCopiesAndByNobodyElse) {
  const SharedList<int> list{3, 1, 2};
  const SharedList<int> copy = list;
  EXPECT_TRUE(copy.SharesWith(list));
  EXPECT_EQ(copy.items().data(), list.items().data());
  EXPECT_FALSE((SharedList<int>{3, 1, 2}).SharesWith(list)) << "nobody has looked at what is in them";
  EXPECT_THAT(copy.items(), ElementsAre(3, 1, 2));
  EXPECT_EQ(copy[1], 1);
}

TEST(SharedList, IsEmptyWhereNothingWasPutIntoIt) {
  const SharedList<int> list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.size(), 0u);
  EXPECT_EQ(list.begin(), list.end());
  EXPECT_TRUE(list.SharesWith({}));
}

TEST(SharedList, StaysAsItWasWhenAnotherIsMadeWithoutSomeOfIt) {
  const SharedList<int> list{3, 1, 2};
  EXPECT_THAT(list.Without([](int one) { return one > 1; }).items(), ElementsAre(1));
  EXPECT_THAT(list.items(), ElementsAre(3, 1, 2));
}

}  // namespace
}  // namespace heddle::base
