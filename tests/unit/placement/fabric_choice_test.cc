#include "placement/fabric_choice.h"

#include <gtest/gtest.h>

namespace heddle::placement {
namespace {

TEST(FabricChoice, TakesAPlanBeforeARefusalAndTheShorterStep) {
  const FabricAnswer slow{200, 8}, fast{100, 8}, refused{std::nullopt, 1000};
  EXPECT_TRUE(IsBetter(slow, refused));
  EXPECT_FALSE(IsBetter(refused, slow));
  EXPECT_TRUE(IsBetter(fast, slow));
  EXPECT_FALSE(IsBetter(slow, fast));
}

TEST(FabricChoice, OfRefusalsTakesTheLargerFabricsAndOfEqualsTheFirst) {
  const FabricAnswer large{std::nullopt, 1000}, small{std::nullopt, 8}, plan{100, 8};
  EXPECT_TRUE(IsBetter(large, small));
  EXPECT_FALSE(IsBetter(small, large));
  EXPECT_FALSE(IsBetter(large, large));
  EXPECT_FALSE(IsBetter(plan, {100, 1000})) << "equal steps: the size says nothing";
  EXPECT_FALSE(IsBetter({100, 1000}, plan));
}

}  // namespace
}  // namespace heddle::placement
