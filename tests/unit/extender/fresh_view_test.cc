#include "extender/fresh_view.h"

#include <gtest/gtest.h>

namespace heddle::extender {
namespace {

const kube::ObjectKey kName{"team", "train"};

kube::Json Object(const std::string& uid, const std::string& version) {
  kube::Json object = kube::Json::object();
  object["metadata"] = {
      {"namespace", kName.ns}, {"name", kName.name}, {"uid", uid}, {"resourceVersion", version}};
  return object;
}

// Over a cache that has seen nothing yet.
class FreshViewTest : public ::testing::Test {
 protected:
  std::string Version() const {
    const kube::ObjectPtr object = view_.Get(kName);
    return object == nullptr ? "" : kube::ResourceVersion(*object);
  }

  kube::Store store_;
  FreshView view_{store_};
  const base::MonotonicTime now_{std::chrono::hours(1)};
};

TEST_F(FreshViewTest, DoesNotGoBackToAnAnswerThatWasOvertakenByAWrite) {
  view_.Saw(Object("1", "12"), now_);
  view_.Saw(Object("1", "9"), now_);
  EXPECT_EQ(Version(), "12");
  view_.Saw(Object("1", "13"), now_);
  EXPECT_EQ(Version(), "13");
}

TEST_F(FreshViewTest, GivesUpWhatAConsistentListHasNotAndSaysSo) {
  view_.Saw(Object("1", "12"), now_);
  EXPECT_TRUE(view_.SawAll({.objects = {}, .unchanged = {}, .resource_version = "11"}, now_).empty());
  EXPECT_EQ(Version(), "12") << "the list is older";
  const kube::ObjectChanges with{.objects = {}, .unchanged = {kName}, .resource_version = "15"};
  EXPECT_TRUE(view_.SawAll(with, now_).empty());
  EXPECT_EQ(Version(), "12") << "the list has it";
  const auto vanished = view_.SawAll({.objects = {}, .unchanged = {}, .resource_version = "15"}, now_);
  ASSERT_EQ(vanished.size(), 1u);
  EXPECT_EQ(kube::Uid(*vanished[0]), "1");
  EXPECT_EQ(view_.Get(kName), nullptr);
  EXPECT_TRUE(view_.List().empty());
}

TEST_F(FreshViewTest, ListsTheVeryListOfTheLastTimeUntilSomethingIsLaidOverItOrTaken) {
  const kube::SortedObjects empty = view_.List();
  view_.Saw(Object("1", "12"), now_);
  const kube::SortedObjects one = view_.List();
  ASSERT_EQ(one.size(), 1u);
  EXPECT_TRUE(one.SharesWith(view_.List()));
  EXPECT_TRUE(empty.empty()) << "who has a list keeps it";
  view_.Saw(Object("1", "13"), now_);
  const kube::SortedObjects newer = view_.List();
  ASSERT_EQ(newer.size(), 1u);
  EXPECT_EQ(kube::ResourceVersion(*newer[0]), "13");
  view_.Forget(kName);
  EXPECT_TRUE(view_.List().empty());
  view_.Saw(Object("2", "14"), now_);
  EXPECT_EQ(view_.List().size(), 1u);
  view_.CacheLost(kName, "2");
  EXPECT_TRUE(view_.List().empty());
  view_.Saw(Object("3", "15"), now_);
  view_.Gone(kName, "3", now_);
  EXPECT_TRUE(view_.List().empty());
}

TEST_F(FreshViewTest, IsOverdueHalfAMinuteAfterItWasLastReadAlsoWhereItIsAsItWas) {
  view_.Saw(Object("1", "12"), now_);
  const base::MonotonicTime later = now_ + std::chrono::seconds(30);
  EXPECT_EQ(view_.Overdue(later).size(), 1u);
  const kube::ObjectChanges same{.objects = {Object("1", "12")}, .unchanged = {}, .resource_version = "15"};
  EXPECT_TRUE(view_.SawAll(same, later).empty());
  EXPECT_TRUE(view_.Overdue(later).empty());
  EXPECT_EQ(view_.Overdue(later + std::chrono::seconds(30)).size(), 1u);
}

TEST_F(FreshViewTest, TakesTheEndOfOneForNoEndOfTheNextOfItsName) {
  view_.Saw(Object("2", "12"), now_);
  view_.Gone(kName, "1", now_);
  EXPECT_EQ(Version(), "12");
  view_.Gone(kName, "2", now_);
  EXPECT_EQ(Version(), "");
}

}  // namespace
}  // namespace heddle::extender
