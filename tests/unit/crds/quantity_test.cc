#include "crds/quantity.h"

#include <gtest/gtest.h>

#include <limits>

namespace heddle::crds {
namespace {

TEST(Quantity, ReadsWhatKubernetesWrites) {
  EXPECT_EQ(ParseQuantity("8"), 8);
  EXPECT_EQ(ParseQuantity("2048Gi"), 2048LL << 30);
  EXPECT_EQ(ParseQuantity("1.5Gi"), 3LL << 29);
  EXPECT_EQ(ParseQuantity("2e3"), 2000);
  EXPECT_EQ(ParseQuantity("5E3"), 5000);
  EXPECT_EQ(ParseQuantity("1E"), 1'000'000'000'000'000'000);
  EXPECT_EQ(ParseQuantity("+3k"), 3000);
  EXPECT_EQ(ParseQuantity("0"), 0);
  EXPECT_EQ(ParseMilliQuantity("250m"), 250);
  EXPECT_EQ(ParseMilliQuantity("0.1"), 100);
  EXPECT_EQ(ParseMilliQuantity("128"), 128'000);
}

TEST(Quantity, RoundsUpAsTheSchedulerDoes) {
  EXPECT_EQ(ParseQuantity("100m"), 1);
  EXPECT_EQ(ParseQuantity("1001m"), 2);
  EXPECT_EQ(ParseMilliQuantity("1u"), 1);
}

TEST(Quantity, CapsWhatNoMachineHas) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(ParseQuantity("100E"), kMost);
  EXPECT_EQ(ParseQuantity("99999999999999999999999"), kMost);
  EXPECT_EQ(ParseMilliQuantity("9e18"), kMost);
}

TEST(Quantity, RefusesEverythingElse) {
  for (const char* text :
       {"", "-1", "x", "1x", "1.2.3", ".", "e3", "1e", "1e+", "1 Gi", "0x10", "1KiB", "1e12345"}) {
    EXPECT_FALSE(ParseQuantity(text)) << text;
  }
}

}  // namespace
}  // namespace heddle::crds
