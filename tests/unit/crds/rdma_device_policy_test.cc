#include "crds/rdma_device_policy.h"

#include <gmock/gmock.h>

namespace heddle::crds {
namespace {

using testing::Optional;

RdmaResource Entry(std::string name, std::vector<int> rails = {}) {
  return {std::move(name), {}, std::move(rails), 1};
}

TEST(RdmaResource, HasAStemWhereItsNameEndsInTheMark) {
  EXPECT_THAT(RailStemOf("heddle.dev/rail{rail}"), Optional(std::string_view("heddle.dev/rail")));
  EXPECT_THAT(RailStemOf("{rail}"), Optional(std::string_view()));
  for (const char* other : {"", "heddle.dev/rail", "heddle.dev/rail{rail", "heddle.dev/{rail}x"})
    EXPECT_EQ(RailStemOf(other), std::nullopt) << other;
}

TEST(RdmaResource, ByRailComesToEachRailThatThereMayBe) {
  for (const char* name : {"a/r0", "a/r32", "a/r255"}) EXPECT_TRUE(ComesTo(Entry("a/r{rail}"), name)) << name;
  for (const char* name :
       {"a/r", "a/r256", "a/r032", "a/r+1", "a/r1x", "b/r1", "a/r{rail}", "a/r99999999999"})
    EXPECT_FALSE(ComesTo(Entry("a/r{rail}"), name)) << name;
  EXPECT_TRUE(ComesTo(Entry("a/r{rail}", {1, 40}), "a/r40"));
  EXPECT_FALSE(ComesTo(Entry("a/r{rail}", {1, 40}), "a/r2"));
}

TEST(RdmaResource, WithoutTheMarkComesToItsOwnNameOnly) {
  EXPECT_TRUE(ComesTo(Entry("a/rdma", {1}), "a/rdma"));
  EXPECT_FALSE(ComesTo(Entry("a/rdma"), "a/rdma1"));
}

}  // namespace
}  // namespace heddle::crds
