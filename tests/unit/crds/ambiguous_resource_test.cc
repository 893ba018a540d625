#include "crds/ambiguous_resource.h"

#include <gmock/gmock.h>

namespace heddle::crds {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

RdmaResource Entry(std::string name, std::vector<int> rails = {}) {
  return {std::move(name), {}, std::move(rails), 1};
}

RdmaDevicePolicySpec Spec(std::vector<RdmaResource> resources) {
  RdmaDevicePolicySpec spec;
  spec.mode = DeviceMode::kNics;
  spec.resources = std::move(resources);
  return spec;
}

std::string FirstName(std::vector<RdmaResource> resources) {
  return FirstAmbiguous(Spec(std::move(resources))).name;
}

TEST(AmbiguousResource, IsANameThatALiteralAndOneByRailComeTo) {
  const auto found = FirstAmbiguous(Spec({Entry("heddle.dev/rail0"), Entry("heddle.dev/rail{rail}")}));
  EXPECT_EQ(found.name, "heddle.dev/rail0");
  EXPECT_THAT(found.entries, ElementsAre("heddle.dev/rail0", "heddle.dev/rail{rail}"));
  EXPECT_EQ(WhyAmbiguous(found.entries),
            "several entries of one policy come to this name; rename one, or give one with {rail} a list of "
            "rails that "
            "leaves this name out: heddle.dev/rail0 and heddle.dev/rail{rail}");
}

TEST(AmbiguousResource, IsTheSameWhateverRailsNodesHave) {
  EXPECT_EQ(FirstName({Entry("a/rail255"), Entry("a/rail{rail}")}), "a/rail255");
  EXPECT_EQ(FirstName({Entry("a/rail256"), Entry("a/rail{rail}")}), "") << "no rail is called so";
  EXPECT_EQ(FirstName({Entry("a/rail0"), Entry("a/rail{rail}", {1, 2})}), "") << "left out";
  EXPECT_EQ(FirstName({Entry("a/rail2"), Entry("a/rail{rail}", {1, 2})}), "a/rail2");
}

TEST(AmbiguousResource, IsANameThatTwoByRailComeTo) {
  const auto found = FirstAmbiguous(Spec({Entry("a/r1{rail}"), Entry("a/r{rail}")}));
  EXPECT_EQ(found.name, "a/r10");
  EXPECT_THAT(found.entries, ElementsAre("a/r1{rail}", "a/r{rail}"));
  EXPECT_EQ(FirstName({Entry("a/r1{rail}"), Entry("a/r{rail}", {0, 1, 2, 3})}), "");
}

TEST(AmbiguousResource, IsNoNameThatOnlyBeginsAlike) {
  for (const char* other : {"a/rail", "a/rail00", "a/rail01", "a/rail-1", "a/rail1x", "b/rail1",
                            "a/rail-storage{rail}", "a/rail99999999999"})
    EXPECT_EQ(FirstName({Entry(other), Entry("a/rail{rail}")}), "") << other;
}

TEST(AmbiguousResource, NamesTwoOfSeveralEntries) {
  const auto found = FirstAmbiguous(Spec({Entry("a/r10"), Entry("a/r1{rail}"), Entry("a/r{rail}")}));
  EXPECT_THAT(WhyAmbiguous(found.entries), EndsWith(": a/r10 and a/r1{rail} and 1 more"));
  EXPECT_EQ(WhyAmbiguous({"a/r10"}), "");
}

}  // namespace
}  // namespace heddle::crds
