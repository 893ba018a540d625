#include "crds/gpu_indexes.h"

#include <gtest/gtest.h>

namespace heddle::crds {
namespace {

TEST(GpuIndexes, AreWrittenAsAListAndReadBack) {
  EXPECT_EQ(FormatGpuIndexes(0b100011), "0,1,5");
  EXPECT_EQ(ParseGpuIndexes("0,1,5"), 0b100011u);
  EXPECT_EQ(ParseGpuIndexes(""), 0u);
  EXPECT_EQ(ParseGpuIndexes(FormatGpuIndexes(~0u)), ~0u);
  for (const char* text :
       {"x", "32", "-1", "1,,2", "1;2", "0 1", "1,", ",1", " 1", "1 ", "0x1", "99999999999999999999"}) {
    EXPECT_FALSE(ParseGpuIndexes(text)) << text;
  }
}

TEST(GpuIndexes, DifferFromPositionsWhereAGpuIsMissing) {
  topology::Node node;
  for (const int index : {0, 2, 3, -1, 40}) node.gpus.push_back({.index = index});
  EXPECT_EQ(AllIndexes(node), 0b1101u) << "what has no index, or one past 31, cannot be named";
  EXPECT_EQ(PositionsOf(node, 0b1100), 0b110u);
  EXPECT_EQ(IndexesOf(node, 0b110), 0b1100u);
  EXPECT_EQ(PositionsOf(node, 0b10), 0u) << "GPU 1 fell off the bus";
}

TEST(GpuCounts, AgreeFromTheHealthyToAllOfThem) {
  for (const int allocatable : {7, 8}) {
    EXPECT_TRUE((GpuCounts{.allocatable = allocatable, .healthy = 7, .all = 8}.agree())) << allocatable;
  }
  for (const int allocatable : {0, 6, 9, 80}) {
    EXPECT_FALSE((GpuCounts{.allocatable = allocatable, .healthy = 7, .all = 8}.agree())) << allocatable;
  }
  EXPECT_TRUE((GpuCounts{.allocatable = 0, .healthy = 0, .all = 0}.agree()));
  EXPECT_FALSE((GpuCounts{.allocatable = 33, .healthy = 33, .all = 33}.agree()))
      << "more than a set can hold";
}

TEST(GpuResources, AreKnownByName) {
  for (const std::string_view name : kGpuResources) EXPECT_TRUE(IsGpuResource(name));
  EXPECT_FALSE(IsGpuResource("nvidia.com/mig-1g.10gb"));
}

}  // namespace
}  // namespace heddle::crds
