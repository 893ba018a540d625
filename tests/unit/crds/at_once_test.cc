#include "crds/at_once.h"

#include <gtest/gtest.h>

#include <vector>

namespace heddle::crds {
namespace {

struct Init {
  std::int64_t count = 0;
  bool sidecar = false;
};

std::int64_t Most(const std::vector<Init>& init, const std::vector<std::int64_t>& main) {
  AtOnce<CountAtOnce> all;
  for (const Init& one : init) all.AddInit({one.count}, one.sidecar);
  for (const std::int64_t count : main) all.AddMain({count});
  return all.Most().count;
}

TEST(AtOnce, IsOfContainersTheirSumAndOfInitContainersTheLargest) {
  EXPECT_EQ(Most({}, {}), 0);
  EXPECT_EQ(Most({}, {2, 3}), 5);
  EXPECT_EQ(Most({{4}, {3}}, {2, 1}), 4);
  EXPECT_EQ(Most({{4}, {3}}, {2, 3}), 5);
}

TEST(AtOnce, CountsSidecarsBesideAllThatStartsBehindThem) {
  EXPECT_EQ(Most({{3, true}}, {2}), 5);
  EXPECT_EQ(Most({{3, true}, {4}}, {2}), 7) << "while the second starts";
  EXPECT_EQ(Most({{4}, {3, true}}, {2}), 5) << "the first has ended by then";
  EXPECT_EQ(Most({{1, true}, {6}, {1, true}}, {1}), 7);
  EXPECT_EQ(Most({{1, true}, {1, true}}, {}), 2);
}

}  // namespace
}  // namespace heddle::crds
