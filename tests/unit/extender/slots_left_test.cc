#include "extender/slots_left.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/extender/cluster.h"

namespace heddle::extender {
namespace {

using test::Cluster;
using test::JobWords;
using test::RunningExtender;
using ::testing::IsEmpty;
using ::testing::SizeIs;

PodFacts PodOn(const std::string& node, const std::string& name) {
  PodFacts pod;
  pod.key = {"train", name};
  pod.gang = {"train", "job", 0};
  pod.node = node;
  return pod;
}

TEST(SlotsLeft, AreThoseThatTheLastSnapshotDoesNotKnow) {
  SlotsLeft left;
  EXPECT_THAT(*left.current(), IsEmpty());
  left.Add(PodOn("a", "first"));
  const auto before = left.current();
  const std::uint64_t read = left.Number();
  left.Add(PodOn("a", "second"));
  left.Add(PodOn("b", "third"));
  left.Forget(read);
  EXPECT_EQ(*before, (SlotsLeftByNode{{"a", {{"train/first", "train", "job"}}}})) << "who reads it goes on";
  EXPECT_EQ(*left.current(), (SlotsLeftByNode{{"a", {{"train/second", "train", "job"}}},
                                              {"b", {{"train/third", "train", "job"}}}}));
  left.Forget(read);
  EXPECT_THAT(*left.current(), SizeIs(2));
  left.Forget(left.Number());
  EXPECT_THAT(*left.current(), IsEmpty());
}

// A gang of two on two nodes, and its extender. Pods end as a test says.
class LeavingPods : public testing::Test {
 protected:
  void SetUp() override {
    cluster.Submit(words);
    ASSERT_TRUE(extender.Until([&] {
      cluster.BindReleased();
      return cluster.Summary("train") == "Running 2/2";
    }));
    node = kube::StringAt(cluster.Pod("train-0"), {"spec", "nodeName"});
    ASSERT_EQ(extender.controller().current()->Reservation(node), nullptr);
    // From now on only time makes a snapshot, and it stands: what is noted stays until Pass().
    extender.controller().SetLeading(false);
    extender.Pass(std::chrono::seconds(2));
  }
  void End(const char* phase, const char* pod = "train-0") {
    cluster.server.Edit(kube::kPods, {"train", pod},
                        [phase](kube::Json& object) { object["status"]["phase"] = phase; });
  }
  bool IsNoted(const std::string& at) {
    return cluster.server.WaitUntil([&] { return extender.controller().slots_left()->contains(at); });
  }
  void ExpectReservedAfterwards() {
    EXPECT_TRUE(extender.Until([&] {
      const auto snapshot = extender.controller().current();
      const Hold* hold = snapshot->Reservation(node);
      return hold != nullptr && hold->source == Hold::Source::kReserved &&
             extender.controller().slots_left()->empty();
    }));
  }

  JobWords words{.pods = 2, .parallelism = "tp=8,dp=2"};
  Cluster cluster{"su:1 node:2 gpu:8 nic:8 rail:8"};
  RunningExtender extender{cluster};
  std::string node;
};

TEST_F(LeavingPods, AreOnesThatFailed) {
  End("Failed");
  ASSERT_TRUE(IsNoted(node));
  ExpectReservedAfterwards();
}

TEST_F(LeavingPods, AreOnesThatWereDeletedWithoutAGracePeriod) {
  cluster.server.Remove(kube::kPods, {"train", "train-0"});
  ASSERT_TRUE(IsNoted(node));
  ExpectReservedAfterwards();
}

TEST_F(LeavingPods, AreNotOnesThatSucceeded) {
  const std::string other = kube::StringAt(cluster.Pod("train-1"), {"spec", "nodeName"});
  End("Succeeded");
  End("Failed", "train-1");  // which is heard after it
  ASSERT_TRUE(IsNoted(other));
  EXPECT_FALSE(extender.controller().slots_left()->contains(node));
  extender.Pass(std::chrono::seconds(5));
  EXPECT_EQ(extender.controller().current()->Reservation(node), nullptr);
}

}  // namespace
}  // namespace heddle::extender
