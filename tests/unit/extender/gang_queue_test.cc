// What it costs that gangs wait: requests for their volumes, and writes of the words that they are told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "extender/resources.h"
#include "tests/unit/extender/cluster.h"

namespace heddle::extender {
namespace {

using std::chrono::seconds;
using test::Cluster;
using test::JobWords;
using test::RunningExtender;
using ::testing::HasSubstr;

constexpr const char* kTwoNodes = "su:1 node:2 gpu:8 nic:8 rail:8";
const kube::Resource kClaims{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true};
const kube::Resource kVolumes{"", "v1", "persistentvolumes", "PersistentVolume", false};

// Two pods of whole nodes with one claim.
JobWords WithClaim(const std::string& name) {
  return {.name = name,
          .pods = 2,
          .parallelism = "tp=8,dp=2",
          .pod_spec = kube::Json::parse(
              R"({"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"data"}}]})")};
}

void PutBoundClaim(Cluster& cluster) {
  cluster.server.Put(kVolumes, kube::NewObject(kVolumes, {"", "disk"}));
  kube::Json claim = kube::NewObject(kClaims, {"train", "data"});
  claim["spec"]["volumeName"] = "disk";
  cluster.server.Put(kClaims, claim);
}

class Queue : public testing::Test {
 protected:
  explicit Queue(const char* line = kTwoNodes) : cluster(line) {
    cluster.server.Serve(kClaims);
    cluster.server.Serve(kVolumes);
  }
  std::string Name(int node) const {
    return kube::Name(cluster.server.All(kube::kNodes).at(std::size_t(node)));
  }
  int Asked(std::string_view plural) const {
    int asked = 0;
    for (const test::ApiRequest& request : cluster.server.requests()) {
      asked += request.plural == plural && request.method == "GET" ? 1 : 0;
    }
    return asked;
  }
  std::string Message(const std::string& job) const {
    const auto gang = cluster.GangOf(job);
    return gang ? gang->status.message : "";
  }

  int Told(const std::string& job) const {
    const auto gang = cluster.GangOf(job);
    int told = 0;
    for (const test::ApiRequest& write : cluster.server.writes()) {
      told += gang && write.plural == "gangs" && write.key.name == gang->name ? 1 : 0;
    }
    return told;
  }

  Cluster cluster;
};

TEST_F(Queue, ReadsTheBoundClaimOfAGangOnceHoweverOftenTheQueueIsWalked) {
  PutBoundClaim(cluster);
  cluster.PutLonePod("first", Name(0), 8);
  RunningExtender extender(cluster);
  cluster.Submit(WithClaim("train"));
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Waiting: NotEnoughFree"; }))
      << cluster.Summary("train");
  for (int i = 0; i < 5; ++i) {
    cluster.PutLonePod("more-" + std::to_string(i), Name(1), 1);
    extender.Pass(seconds(1));
  }
  // The last of them stands in its words, so it was asked for a place all the while.
  ASSERT_TRUE(extender.Until([&] { return Message("train").find("6 pods of no gang") != std::string::npos; }))
      << Message("train");
  EXPECT_EQ(Asked("persistentvolumeclaims"), 1);
  EXPECT_EQ(Asked("persistentvolumes"), 1);

  cluster.server.Remove(kube::kPods, {"other", "first"});
  for (int i = 0; i < 5; ++i) cluster.server.Remove(kube::kPods, {"other", "more-" + std::to_string(i)});
  ASSERT_TRUE(extender.Until([&] { return cluster.Released("train") == 2; })) << cluster.Summary("train");
  EXPECT_EQ(Asked("persistentvolumeclaims"), 1);
}

TEST_F(Queue, AsksForNoVolumeOfAGangThatHasNoPlaceOnThisCluster) {
  RunningExtender extender(cluster);
  JobWords large = WithClaim("train");
  large.parallelism = "tp=16";
  cluster.Submit(large);
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Waiting: TooLargeForDomain"; }))
      << cluster.Summary("train");
  EXPECT_EQ(Asked("persistentvolumeclaims"), 0);
}

// It would be refused when the room is there.
TEST_F(Queue, MakesNoRoomForAGangWhoseVolumeIsNotBound) {
  RunningExtender extender(cluster);
  cluster.Submit({.name = "low", .pods = 2, .parallelism = "tp=8,dp=2"});
  ASSERT_TRUE(extender.Until([&] {
    cluster.BindReleased();
    return cluster.Summary("low").starts_with("Running");
  })) << cluster.Summary("low");
  JobWords high = WithClaim("high");
  high.priority = 100;
  cluster.Submit(high);
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("high") == "Waiting: NotModelled"; }))
      << cluster.Summary("high");
  EXPECT_THAT(Message("high"), HasSubstr("the volume claim data does not exist yet"));
  extender.Pass(seconds(20));
  EXPECT_TRUE(cluster.Summary("low").starts_with("Running")) << cluster.Summary("low");

  PutBoundClaim(cluster);  // which is no reason to walk
  EXPECT_TRUE(
      extender.Until([&] { return !cluster.Summary("low").starts_with("Running"); }, std::chrono::minutes(2)))
      << Message("high");
}

class Words : public Queue {
 protected:
  Words() : Queue("su:1 node:4 gpu:8 nic:8 rail:8") { cluster.PutLonePod("first", Name(0), 8); }
};

TEST_F(Words, OfTheSameReasonAreWrittenOnceInHalfAMinuteAndTheLastOfThemByThemselves) {
  RunningExtender extender(cluster);
  cluster.Submit({.pods = 4, .parallelism = "tp=8,dp=4"});
  ASSERT_TRUE(extender.Until([&] { return Message("train").find("1 pod of no gang") != std::string::npos; }))
      << Message("train");
  cluster.server.ClearRequests();
  for (int i = 0; i < 6; ++i) {
    cluster.PutLonePod("more-" + std::to_string(i), Name(1), 1);
    extender.Pass(seconds(2));
  }
  EXPECT_EQ(Told("train"), 0) << "it was told why twelve seconds ago";
  ASSERT_TRUE(extender.Until([&] { return Told("train") > 0; }, seconds(40)));
  EXPECT_THAT(Message("train"), HasSubstr("7 pods of no gang hold 14 GPUs"));
  extender.Pass(seconds(60));
  EXPECT_EQ(Told("train"), 1);
}

TEST_F(Words, OfAnotherReasonAreWrittenAtOnce) {
  RunningExtender extender(cluster);
  JobWords words = WithClaim("train");
  words.pods = 4;
  words.parallelism = "tp=8,dp=4";
  cluster.Submit(words);
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Waiting: NotModelled"; }))
      << cluster.Summary("train");
  PutBoundClaim(cluster);
  cluster.PutLonePod("second", Name(1), 8);  // a reason to walk
  EXPECT_TRUE(
      extender.Until([&] { return cluster.Summary("train") == "Waiting: NotEnoughFree"; }, seconds(5)))
      << cluster.Summary("train");
}

}  // namespace
}  // namespace heddle::extender
