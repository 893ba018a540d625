#include "kube/completed_indexes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::kube {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CompletedIndexes, AreThoseThatAJobListsBelowItsPods) {
  EXPECT_THAT(ReadIndexes("0-2,5", 8), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(ReadIndexes("7", 8), ElementsAre(7));
  EXPECT_THAT(ReadIndexes("2-9000000000000", 4), ElementsAre(2, 3));
  EXPECT_THAT(ReadIndexes("4", 4), IsEmpty());
  EXPECT_THAT(ReadIndexes("", 4), IsEmpty());
}

TEST(CompletedIndexes, AreOnlyThoseThatCanBeRead) {
  EXPECT_THAT(ReadIndexes("x,1,,2-,-3,3-3,", 4), ElementsAre(1, 3));
  EXPECT_THAT(ReadIndexes("99999999999999999999,0", 4), ElementsAre(0));
  EXPECT_THAT(ReadIndexes(",", 4), IsEmpty());
}

}  // namespace
}  // namespace heddle::kube
