#include "extender/fabric_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace heddle::extender {
namespace {

using kube::Json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json Object(Json spec, const std::string& uid = "1") {
  return {{"apiVersion", "heddle.dev/v1alpha1"},
          {"kind", "Fabric"},
          {"metadata", {{"name", "ib"}, {"uid", uid}}},
          {"spec", std::move(spec)}};
}

class FabricReaderTest : public ::testing::Test {
 protected:
  std::vector<std::string> Excluded(const Json& object) {
    const auto fabric = reader_.Read(object);
    return fabric == nullptr ? std::vector<std::string>{"null"} : fabric->spec.excluded_nodes;
  }

  std::vector<std::string> said_;
  FabricReader reader_{[this](std::string_view line) { said_.emplace_back(line); }};
};

const Json kOneNode = Json::array({"a1"});
constexpr const char* kNoNumber = "eight";

TEST_F(FabricReaderTest, TakesWhatIsDeclaredAndSaysNothing) {
  const auto fabric = reader_.Read(Object({{"rails", 8}, {"excludedNodes", kOneNode}}));
  ASSERT_NE(fabric, nullptr);
  EXPECT_EQ(fabric->name, "ib");
  EXPECT_EQ(fabric->spec.rails, 8);
  EXPECT_THAT(fabric->spec.excluded_nodes, ElementsAre("a1"));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(FabricReaderTest, KeepsNodesOutWhereTheRestOfTheSpecCannotBeRead) {
  const auto fabric =
      reader_.Read(Object({{"rails", kNoNumber}, {"firstRail", 1}, {"excludedNodes", kOneNode}}));
  ASSERT_NE(fabric, nullptr);
  EXPECT_EQ(fabric->name, "ib");
  EXPECT_THAT(fabric->spec.excluded_nodes, ElementsAre("a1"));
  EXPECT_EQ(fabric->spec.first_rail, crds::Fabric().spec.first_rail) << "nothing else of it counts";
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_THAT(said_[0],
              AllOf(HasSubstr("Fabric ib"), HasSubstr("rails"), HasSubstr("only excludedNodes counts")));
}

TEST_F(FabricReaderTest, FollowsTheListWhileTheRestCannotBeRead) {
  EXPECT_THAT(Excluded(Object({{"excludedNodes", kOneNode}})), ElementsAre("a1"));
  EXPECT_THAT(Excluded(Object({{"rails", kNoNumber}, {"excludedNodes", Json::array({"a2"})}})),
              ElementsAre("a2"));
  EXPECT_THAT(Excluded(Object({{"rails", kNoNumber}})), IsEmpty()) << "people took it back";
}

TEST_F(FabricReaderTest, KeepsOutWhatItLastReadWhereTheListCannotBeRead) {
  Excluded(Object({{"excludedNodes", kOneNode}}));
  EXPECT_THAT(Excluded(Object({{"excludedNodes", "a1"}})), ElementsAre("a1"));
  EXPECT_THAT(Excluded(Object("no object")), ElementsAre("a1"));
  Excluded(Object({{"rails", kNoNumber}, {"excludedNodes", Json::array({"a2"})}}));
  EXPECT_THAT(Excluded(Object({{"excludedNodes", 7}})), ElementsAre("a2"))
      << "from one that was read in part";
  ASSERT_FALSE(said_.empty());
  EXPECT_THAT(said_.back(), HasSubstr("as that last could be read"));
}

TEST_F(FabricReaderTest, SaysWhereNobodyKnowsWhatIsExcluded) {
  EXPECT_EQ(reader_.Read(Object({{"excludedNodes", 7}})), nullptr);
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_THAT(said_[0], AllOf(HasSubstr("excludedNodes"), HasSubstr("gangs may get the nodes")));
  Excluded(Object({{"excludedNodes", kOneNode}}));
  EXPECT_EQ(reader_.Read(Object({{"excludedNodes", 7}}, "2")), nullptr) << "another Fabric of that name";
}

TEST_F(FabricReaderTest, SaysEachTroubleOnce) {
  Excluded(Object({{"rails", kNoNumber}}));
  Excluded(Object({{"rails", kNoNumber}}));
  EXPECT_EQ(said_.size(), 1u);
  Excluded(Object({{"rails", 8}}));
  Excluded(Object({{"rails", kNoNumber}}));
  EXPECT_EQ(said_.size(), 2u) << "it was well between";
}

}  // namespace
}  // namespace heddle::extender
