// A rank whose pod went away keeps its slot for five minutes, counted from when that pod went; so does one whose next
// pod waits for quota, and one that its owner wants no more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

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

// As of a Job that Kueue makes wait: its pods have its gate beside ours.
JobWords BehindKueue(JobWords words) {
  words.pod_spec["schedulingGates"] =
      kube::Json::array({{{"name", "heddle.dev/gang"}}, {{"name", "kueue.x-k8s.io/admission"}}});
  return words;
}

TEST(LostRank, WhoseNextPodWaitsForQuotaKeepsItsSlotNoLonger) {
  Cluster cluster(kThreeNodes);
  RunningExtender extender(cluster);
  const std::string uid = cluster.Submit(Train());
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  ASSERT_TRUE(Lose(cluster, extender, 1, "train-1"));
  const base::WallTime lost = MissingIn(cluster).at(0).since;
  cluster.PutPod(BehindKueue(Train()), uid, 1, "queued");
  cluster.Submit({.name = "next", .pods = 1, .parallelism = "tp=8"});
  PassUntil(cluster, extender, lost, seconds(270));
  EXPECT_EQ(Started(cluster), 0);
  EXPECT_EQ(MissingIn(cluster), (std::vector<crds::MissingRank>{{1, lost}}));
  const auto gang = cluster.GangOf("train");
  EXPECT_EQ(
      crds::FindCondition(gang->status.conditions, crds::kCollected)->message,
      "rank 1 waits for quota behind the gate kueue.x-k8s.io/admission; a slot is kept for five minutes");
  EXPECT_TRUE(extender.Until([&] { return Started(cluster) == 1; }, seconds(90)));
  EXPECT_GE(cluster.clock.WallNow(), lost + seconds(300));
  cluster.BindReleased();
  // Its quota comes, and its slot is another's: it waits for one, and takes that of nobody.
  cluster.server.Edit(kube::kPods, {"train", "queued"},
                      [](kube::Json& pod) { pod["spec"]["schedulingGates"].erase(1); });
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train").starts_with("Degraded"); }))
      << cluster.Summary("train");
  EXPECT_THAT(cluster.Violations(), IsEmpty());
  cluster.server.Remove(kube::kPods, {"train", "next-0"});
  cluster.server.Remove(kube::kJobs, {"train", "next"});
  EXPECT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
  EXPECT_THAT(MissingIn(cluster), IsEmpty());
}

// Three pods of eight GPUs are one replica of the model, and two are none: it is not planned anew at that size.
TEST(LostRank, ThatItsOwnerWantsNoMoreKeepsItsSlotNoLonger) {
  Cluster cluster(kThreeNodes);
  RunningExtender extender(cluster);
  JobWords train = Train();
  train.parallelism = "tp=8,pp=3";
  cluster.Submit(train);
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  cluster.server.Edit(kube::kJobs, {"train", "train"},
                      [](kube::Json& job) { job["spec"]["completions"] = job["spec"]["parallelism"] = 2; });
  ASSERT_TRUE(extender.Until([&] { return cluster.GangOf("train")->status.reason == "WorldMismatch"; }))
      << cluster.Summary("train");
  EXPECT_THAT(MissingIn(cluster), IsEmpty()) << "its pod is there yet";
  ASSERT_TRUE(Lose(cluster, extender, 2, "train-2"));
  const base::WallTime lost = MissingIn(cluster).at(0).since;
  cluster.Submit({.name = "next", .pods = 1, .parallelism = "tp=8"});
  PassUntil(cluster, extender, lost, seconds(270));
  EXPECT_EQ(Started(cluster), 0);
  EXPECT_TRUE(extender.Until([&] { return Started(cluster) == 1; }, seconds(90)));
  EXPECT_GE(cluster.clock.WallNow(), lost + seconds(300));
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

// The first extender ends when others have a plan for both slots, and the pod for one of them is not let go yet.
TEST(LostRank, WhoseSlotLapsedDoesNotTakeItBackWhenAnotherExtenderGoesOn) {
  Cluster cluster(kThreeNodes);
  const JobWords next{.name = "next", .pods = 2, .parallelism = "tp=8,dp=2"};
  const std::string job = cluster.PutJob(next);  // so that its gang is looked at first
  ASSERT_LT(job, cluster.Submit(Train()));
  {
    RunningExtender first(cluster);
    ASSERT_TRUE(LoseTwo(cluster, first, seconds(0)));
    first.Pass(seconds(310));
    cluster.server.Intercept([](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
      if (request.method != "PATCH" || request.key.name != "next-1") return std::nullopt;
      return kube::HttpResponse{
          422, {}, R"({"kind":"Status","status":"Failure","reason":"Invalid","code":422})"};
    });
    for (const int rank : {0, 1}) cluster.PutPod(next, job, rank);
    ASSERT_TRUE(first.Until([&] { return Started(cluster) == 1; })) << cluster.Summary("next");
  }
  cluster.server.Intercept(nullptr);
  cluster.BindReleased();
  const auto planned = cluster.GangOf("next")->status.placement;
  RunningExtender extender(cluster);
  ASSERT_TRUE(extender.Until([&] {
    cluster.BindReleased();
    return cluster.Summary("next") == "Running 2/2";
  })) << cluster.Summary("next");
  const auto gang = cluster.GangOf("next");
  EXPECT_EQ(crds::ToRows(*gang->status.placement), crds::ToRows(*planned));
  EXPECT_EQ(crds::FindCondition(gang->status.conditions, crds::kDegraded), nullptr);
  EXPECT_EQ(crds::FindCondition(gang->status.conditions, crds::kRepairing), nullptr);
  EXPECT_EQ(RanksMissingIn(cluster), (std::vector<int>{1, 2}));
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

TEST(LostRank, HasLapsedFiveMinutesAfterTheTimeInItsGangAndNotBefore) {
  const base::WallTime now{seconds(1'800'000'000)};
  crds::Gang gang;
  EXPECT_THAT(LapsedRanks(gang, now), IsEmpty());
  gang.status.missing = {{1, now - seconds(300)}, {2, now - seconds(299)}, {5, now + seconds(60)}};
  EXPECT_EQ(LapsedRanks(gang, now), std::set<int>{1});
}

// Of an owner that wants two pods of four. It numbers what it wants anew, and slots are those of the pods that were told
// them.
TEST(LostRank, OfAnOwnerOfAnotherSizeIsOneThatNoLivePodWasTold) {
  const base::WallTime now{seconds(1'800'000'000)};
  const auto told = [](int rank) {
    Member member;
    member.OwnFacts().plan = PodPlan{.rank = rank, .node = "n"};
    return member;
  };
  const auto ranks = [now](const GangMembers& members) {
    crds::Gang gang;
    gang.spec.pods = 4;
    std::vector<int> missing;
    const Snapshot snapshot;
    for (const auto& one : MissingOf({&gang, members, snapshot, now})) missing.push_back(one.rank);
    return missing;
  };
  GangMembers members;
  members.spec.pods = 2;
  members.ranks.resize(2);
  members.done.resize(2);
  members.ranks[0] = told(0);
  members.ranks[1] = told(3);
  EXPECT_EQ(ranks(members), (std::vector<int>{1, 2}));
  members.leaving.push_back(told(2));
  EXPECT_EQ(ranks(members), std::vector<int>{1}) << "it is too many, and runs yet";
  members.leaving.back().OwnFacts().terminating = true;
  members.leaving.push_back(told(-1));
  members.leaving.push_back(told(4));
  EXPECT_EQ(ranks(members), (std::vector<int>{1, 2})) << "there are no such slots";
  // The owner cannot be read. A pod at the gate may be for any slot.
  members.unranked = {told(0), told(3)};
  members.ranks.clear();
  members.done.clear();
  EXPECT_EQ(ranks(members), (std::vector<int>{1, 2}));
  members.unranked.emplace_back().OwnFacts().gated = true;
  EXPECT_THAT(ranks(members), IsEmpty());
}

}  // namespace
}  // namespace heddle::extender
