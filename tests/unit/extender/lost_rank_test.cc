// A rank whose pod went away keeps its slot for five minutes, counted from when that pod went.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "extender/gang_status.h"
#include "extender/resources.h"
#include "tests/unit/extender/cluster.h"

namespace heddle::extender {
namespace {

using std::chrono::seconds;
using test::Cluster;
using test::JobWords;
using test::RunningExtender;
using ::testing::IsEmpty;

// The gang of these tests fills the cluster.
constexpr const char* kThreeNodes = "su:1 node:3 gpu:8 nic:8 rail:8";
JobWords Train() {
  return {.name = "train", .pods = 3, .parallelism = "tp=8,dp=3"};
}

bool RunsToTheEnd(Cluster& cluster, RunningExtender& extender) {
  return extender.Until([&] {
    cluster.BindReleased();
    return cluster.Summary("train") == "Running 3/3";
  });
}

std::vector<crds::MissingRank> MissingIn(const Cluster& cluster) {
  const auto gang = cluster.GangOf("train");
  return gang ? gang->status.missing : std::vector<crds::MissingRank>{};
}

std::vector<int> RanksMissingIn(const Cluster& cluster) {
  std::vector<int> ranks;
  for (const crds::MissingRank& one : MissingIn(cluster)) ranks.push_back(one.rank);
  return ranks;
}

// Takes a pod away, until the Gang says that its rank has none.
bool Lose(Cluster& cluster, RunningExtender& extender, int rank, const std::string& pod) {
  cluster.server.Remove(kube::kPods, {"train", pod});
  return extender.Until([&] {
    const std::vector<int> missing = RanksMissingIn(cluster);
    return std::find(missing.begin(), missing.end(), rank) != missing.end();
  });
}

// Two that wait for a node each.
void SubmitTwoThatWait(Cluster& cluster) {
  for (const char* name : {"next", "later"}) cluster.Submit({.name = name, .pods = 1, .parallelism = "tp=8"});
}

int Started(const Cluster& cluster) {
  return cluster.Released("next") + cluster.Released("later");
}

// The gang runs, and loses the pod of rank 1 and, so long after, that of rank 2.
bool LoseTwo(Cluster& cluster, RunningExtender& extender, seconds between) {
  if (!RunsToTheEnd(cluster, extender) || !Lose(cluster, extender, 1, "train-1")) return false;
  extender.Pass(between);
  return Lose(cluster, extender, 2, "train-2");
}

// Until so long after `since`.
void PassUntil(Cluster& cluster, RunningExtender& extender, base::WallTime since, seconds after) {
  extender.Pass(std::chrono::duration_cast<seconds>(since + after - cluster.clock.WallNow()));
}

// Of the two that are missing each slot goes to one of two that wait, and each five minutes after its own pod went. The
// first goes within `first` from now.
void ExpectEachItsOwnFiveMinutes(Cluster& cluster, RunningExtender& extender, seconds first) {
  const auto missing = MissingIn(cluster);
  ASSERT_EQ(missing.size(), 2u);
  SubmitTwoThatWait(cluster);
  ASSERT_TRUE(extender.Until([&] { return Started(cluster) > 0; }, first));
  EXPECT_GE(cluster.clock.WallNow(), missing[0].since + seconds(300));
  PassUntil(cluster, extender, missing[1].since, seconds(270));
  EXPECT_EQ(Started(cluster), 1) << "the slot of the rank that went last is kept";
  EXPECT_EQ(MissingIn(cluster), missing);
  EXPECT_TRUE(extender.Until([&] { return Started(cluster) == 2; }, seconds(90)));
  EXPECT_GE(cluster.clock.WallNow(), missing[1].since + seconds(300));
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

TEST(LostRank, KeepsItsSlotForFiveMinutesOfItsOwn) {
  Cluster cluster(kThreeNodes);
  RunningExtender extender(cluster);
  cluster.Submit(Train());
  ASSERT_TRUE(LoseTwo(cluster, extender, seconds(270)));
  ExpectEachItsOwnFiveMinutes(cluster, extender, seconds(60));
}

TEST(LostRank, HasItsTimeFromItsGangWhenAnotherExtenderGoesOn) {
  Cluster cluster(kThreeNodes);
  {
    RunningExtender first(cluster);
    cluster.Submit(Train());
    ASSERT_TRUE(LoseTwo(cluster, first, seconds(120)));
  }
  RunningExtender extender(cluster);
  // Two of its five minutes had passed before.
  ExpectEachItsOwnFiveMinutes(cluster, extender, seconds(240));
}

TEST(LostRank, IsTakenOutWhenItsPodIsThereAgainAndBeginsAnewWhenThatGoesToo) {
  Cluster cluster(kThreeNodes);
  RunningExtender extender(cluster);
  const std::string uid = cluster.Submit(Train());
  ASSERT_TRUE(LoseTwo(cluster, extender, seconds(60)));
  cluster.PutPod(Train(), uid, 1, "train-1-again");
  ASSERT_TRUE(extender.Until([&] {
    cluster.BindReleased();
    return RanksMissingIn(cluster) == std::vector<int>{2};
  }));
  extender.Pass(seconds(30));
  ASSERT_TRUE(Lose(cluster, extender, 1, "train-1-again"));
  const auto missing = MissingIn(cluster);
  ASSERT_EQ(missing.size(), 2u);
  EXPECT_GT(missing[0].since, missing[1].since);
  for (const int rank : {1, 2}) cluster.PutPod(Train(), uid, rank, "third-" + std::to_string(rank));
  ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
  EXPECT_THAT(MissingIn(cluster), IsEmpty());
}

// A gang whose pods do not say the same is looked at when something changes, and here nothing does.
TEST(LostRank, GivesItsSlotAwayInTimeWhereNothingElseHappens) {
  Cluster cluster(kThreeNodes);
  RunningExtender extender(cluster);
  cluster.Submit(Train());
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  ASSERT_TRUE(Lose(cluster, extender, 1, "train-1"));
  const base::WallTime lost = MissingIn(cluster).at(0).since;
  cluster.server.Edit(kube::kPods, {"train", "train-2"},
                      [](kube::Json& pod) { pod["metadata"]["annotations"]["heddle.dev/wait"] = "5m"; });
  ASSERT_TRUE(extender.Until([&] { return cluster.GangOf("train")->status.reason == "UnequalPods"; }));
  cluster.Submit({.name = "next", .pods = 1, .parallelism = "tp=8"});
  PassUntil(cluster, extender, lost, seconds(240));
  EXPECT_EQ(Started(cluster), 0);
  EXPECT_TRUE(extender.Until([&] { return Started(cluster) == 1; }, seconds(120)));
}

TEST(LostRank, IsNoneOfAGangThatIsCollected) {
  Cluster cluster(kThreeNodes);
  RunningExtender extender(cluster);
  const std::string uid = cluster.PutJob(Train());
  for (const int rank : {0, 1, 2}) {
    cluster.PutPod(Train(), uid, rank);
    ASSERT_TRUE(extender.Until([&] {
      const auto gang = cluster.GangOf("train");
      return gang && gang->status.progress.seen > rank;
    }));
  }
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  int statuses = 0;
  for (const auto& write : cluster.server.writes()) {
    if (write.plural != "gangs" || write.subresource != "status") continue;
    ++statuses;
    EXPECT_EQ(write.body.find("\"missing\""), std::string::npos) << write.body;
  }
  EXPECT_GE(statuses, 3);
}

// What a Gang has no room to say of each is said of the last that it names.
TEST(LostRank, BeyondThoseThatAGangNamesHasTheTimeOfTheLast) {
  const base::WallTime now{seconds(1'800'000'000)};
  constexpr int kPods = int(crds::kMaxMissing) + 10;
  GangMembers members;
  members.spec.pods = kPods;
  members.ranks.resize(std::size_t(kPods));
  members.done.resize(std::size_t(kPods));
  members.done[0] = true;
  crds::Gang gang;
  gang.spec = members.spec;
  gang.status.placement.emplace();
  Snapshot snapshot;
  crds::GangStatus status = gang.status;
  SayPods({&gang, members, snapshot, now}, status);
  gang.status = std::move(status);
  ASSERT_EQ(gang.status.missing.size(), crds::kMaxMissing);
  EXPECT_EQ(gang.status.missing.front(), (crds::MissingRank{1, now}));
  const auto later = MissingOf({&gang, members, snapshot, now + seconds(60)});
  ASSERT_EQ(later.size(), std::size_t(kPods) - 1);
  EXPECT_EQ(later.back(), (crds::MissingRank{kPods - 1, now}));
}

}  // namespace
}  // namespace heddle::extender
