// A pod that is bound and that the kubelet of its node does not admit: the rank's next one may go elsewhere.
#include "extender/refused_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "crds/node_topology.h"
#include "extender/resources.h"
#include "tests/unit/extender/cluster.h"

namespace heddle::extender {
namespace {

using kube::Json;
using std::chrono::minutes;
using std::chrono::seconds;
using test::Cluster;
using test::JobWords;
using test::RunningExtender;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

const base::WallTime kNow{seconds(1'800'000'000)};

// What stands in the API of pods of rank 1 that node n1 refused, so long ago each.
class Refusals {
 public:
  Refusals() { gang_.uid = "gang-uid"; }

  PodFacts& Add(seconds ago) {
    PodFacts pod;
    pod.key = {"train", "job-1-" + std::to_string(members_.leaving.size())};
    pod.node = "n1";
    pod.finished = true;
    pod.not_admitted = "OutOfcpu: Node didn't have enough resource: cpu";
    pod.plan = PodPlan{.rank = 1, .node = "n1", .gang_uid = "gang-uid"};
    pod.started = kNow - ago;
    auto own = std::make_shared<PodFacts>(std::move(pod));
    members_.leaving.push_back({own, nullptr});
    return *own;
  }
  bool Close(int rank, const std::string& node) const { return Read().Trouble(rank, node).has_value(); }
  RefusedPods Read() const { return RefusedPods({&gang_, members_, snapshot_, kNow}); }

 private:
  crds::Gang gang_;
  GangMembers members_;
  Snapshot snapshot_;
};

TEST(RefusedPods, CloseASlotFromTheSecondOn) {
  Refusals refusals;
  refusals.Add(seconds(40));
  EXPECT_FALSE(refusals.Close(1, "n1"));
  refusals.Add(seconds(10));
  EXPECT_EQ(refusals.Read().Trouble(1, "n1"),
            "the kubelet of n1 refused 2 pods of it, last job-1-1: OutOfcpu: Node didn't have enough "
            "resource: cpu");
  EXPECT_THAT(refusals.Read().Barred({0, 1, 2}), ElementsAre(Pair(1, ElementsAre("n1"))));
  EXPECT_THAT(refusals.Read().Barred({0, 2}), IsEmpty());
}

TEST(RefusedPods, CountForTheirOwnRankNodeAndGangAlone) {
  Refusals refusals;
  refusals.Add(seconds(40));
  refusals.Add(seconds(30)).node = "n2";
  refusals.Add(seconds(20)).plan->rank = 2;
  refusals.Add(seconds(10)).plan->gang_uid = "the one before it was suspended";
  refusals.Add(seconds(5)).not_admitted.clear();  // its program ended badly
  for (const int rank : {1, 2}) {
    for (const char* node : {"n1", "n2"}) EXPECT_FALSE(refusals.Close(rank, node)) << rank << node;
  }
}

TEST(RefusedPods, CloseASlotForAQuarterOfAnHourAfterTheLast) {
  Refusals refusals;
  refusals.Add(minutes(30));
  refusals.Add(minutes(15));
  EXPECT_FALSE(refusals.Close(1, "n1")) << "one more may try";
  refusals.Add(minutes(14));
  EXPECT_TRUE(refusals.Close(1, "n1"));
  Refusals at_once;
  at_once.Add(minutes(30));
  at_once.Add(seconds(1));
  EXPECT_TRUE(at_once.Close(1, "n1")) << "the one that tried again was refused, too";
}

JobWords Train(int pods) {
  return {.name = "train", .pods = pods, .parallelism = "tp=8,dp=" + std::to_string(pods)};
}

bool RunsToTheEnd(Cluster& cluster, RunningExtender& extender) {
  return extender.Until([&] {
    cluster.BindReleased();
    const auto pods = cluster.Pods("train");
    const bool bound = std::all_of(pods.begin(), pods.end(), [](const Json& pod) {
      return !kube::StringAt(pod, {"spec", "nodeName"}).empty();
    });
    return bound && cluster.Summary("train").starts_with("Running");
  });
}

std::string NodeOf(const Cluster& cluster, const std::string& pod) {
  return kube::StringAt(cluster.Pod(pod), {"spec", "nodeName"});
}

// A gang whose pods fail one after another, as its Job keeps them.
class FailingPods : public ::testing::Test {
 protected:
  void Start(Cluster& cluster, RunningExtender& extender, int pods) {
    pods_ = pods;
    uid_ = cluster.Submit(Train(pods));
    ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  }
  // The pod fails, and the Job makes another of its rank 1, as ever not within ten seconds of the one before.
  void Fail(Cluster& cluster, const std::string& pod, Json status, const std::string& next) {
    cluster.clock.Advance(seconds(10));
    status["phase"] = "Failed";
    status["startTime"] = base::FormatTime(cluster.clock.WallNow());
    cluster.server.Edit(kube::kPods, {"train", pod}, [&status](Json& one) { one["status"] = status; });
    cluster.PutPod(Train(pods_), uid_, 1, next);
  }
  void Refuse(Cluster& cluster, const std::string& pod, const std::string& next) {
    Fail(cluster, pod,
         {{"reason", "UnexpectedAdmissionError"},
          {"message", "Pod was rejected: Allocate failed due to no healthy devices present"}},
         next);
  }
  void Crash(Cluster& cluster, const std::string& pod, const std::string& next) {
    Fail(cluster, pod,
         {{"containerStatuses",
           Json::array({{{"name", "main"}, {"state", {{"terminated", {{"exitCode", 1}}}}}}})}},
         next);
  }

 private:
  int pods_ = 0;
  std::string uid_;
};

TEST_F(FailingPods, ThatAKubeletRefusedTwiceHaveAnotherNodeNextAndStayThere) {
  Cluster cluster("su:1 node:3 gpu:8 nic:8 rail:8");
  RunningExtender extender(cluster);
  Start(cluster, extender, 2);
  const std::string other = NodeOf(cluster, "train-0"), old = NodeOf(cluster, "train-1");
  Refuse(cluster, "train-1", "second");
  ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
  EXPECT_EQ(NodeOf(cluster, "second"), old) << "once may be a race";
  EXPECT_EQ(cluster.GangOf("train")->status.placement->epoch, 1);
  Refuse(cluster, "second", "third");
  ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
  const std::string now = NodeOf(cluster, "third");
  EXPECT_NE(now, old);
  EXPECT_NE(now, other);
  EXPECT_EQ(NodeOf(cluster, "train-0"), other) << "nobody else moved";
  std::string told;
  ASSERT_TRUE(extender.Until([&] {
    for (const Json& event : cluster.server.All(kube::kEvents)) {
      if (kube::StringAt(event, {"reason"}) == "Repairing") told = kube::StringAt(event, {"message"});
    }
    return !told.empty();
  }));
  EXPECT_THAT(told,
              HasSubstr("rank 1: the kubelet of " + old +
                        " refused 2 pods of it, last second: UnexpectedAdmissionError: Allocate failed"));
  Refuse(cluster, "third", "fourth");
  ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
  EXPECT_EQ(NodeOf(cluster, "fourth"), now) << "what the old node refused is not held against the new one";
  EXPECT_EQ(cluster.GangOf("train")->status.placement->epoch, 2);
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

TEST_F(FailingPods, WhoseProgramsEndBadlyStayWhereTheyAre) {
  Cluster cluster("su:1 node:3 gpu:8 nic:8 rail:8");
  RunningExtender extender(cluster);
  Start(cluster, extender, 2);
  const std::string node = NodeOf(cluster, "train-1");
  Crash(cluster, "train-1", "second");
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  Crash(cluster, "second", "third");
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  EXPECT_EQ(NodeOf(cluster, "third"), node);
  EXPECT_EQ(cluster.GangOf("train")->status.placement->epoch, 1);
}

TEST_F(FailingPods, ThatHaveNoOtherNodeWaitAtTheGateUntilTheRefusedOnesAreDeleted) {
  Cluster cluster("su:1 node:2 gpu:8 nic:8 rail:8");
  RunningExtender extender(cluster);
  Start(cluster, extender, 2);
  const std::string node = NodeOf(cluster, "train-1");
  Refuse(cluster, "train-1", "second");
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  Refuse(cluster, "second", "third");
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train").starts_with("Degraded"); }))
      << cluster.Summary("train");
  EXPECT_TRUE(ReadPod(cluster.Pod("third")).gated) << "each more that is refused counts against the Job";
  const std::string message = cluster.GangOf("train")->status.message;
  EXPECT_THAT(message, HasSubstr("the kubelet of " + node + " refused 2 pods of it"));
  EXPECT_THAT(message,
              HasSubstr("UnexpectedAdmissionError: Allocate failed due to no healthy devices present"));
  EXPECT_THAT(message, HasSubstr(node + " RefusesPods; mend the node and delete the pods that it refused"));
  cluster.server.Remove(kube::kPods, {"train", "train-1"});
  ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
  EXPECT_EQ(NodeOf(cluster, "third"), node);
}

// Or it would go to and fro: away from the refusals, and back to the rails.
TEST_F(FailingPods, ThatLeftARefusingNodeDoNotGoBackForItsFasterRails) {
  Cluster cluster("su:1 node:5 gpu:8 nic:8 rail:8");
  RunningExtender extender(cluster);
  Start(cluster, extender, 4);
  const std::string old = NodeOf(cluster, "train-1");
  Refuse(cluster, "train-1", "second");
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  Refuse(cluster, "second", "third");
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  const std::string now = NodeOf(cluster, "third");
  ASSERT_NE(now, old);
  cluster.server.Edit(kNodeTopologies, {"", now}, [](Json& object) {
    auto topology = crds::NodeTopologyFromJson(object);
    ASSERT_TRUE(topology);
    for (topology::NicPort& port : topology->status.node.nics[2].ports) {
      port.fault = topology::LinkFault::kErrors;
      port.usable_gbps /= 2;
    }
    object["status"] = crds::ToJson(*topology)["status"];
  });
  ASSERT_TRUE(extender.Until([&] { return extender.controller().current()->faulty.contains(now); }));
  Crash(cluster, "third", "fourth");
  ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
  EXPECT_EQ(NodeOf(cluster, "fourth"), now);
  EXPECT_EQ(cluster.GangOf("train")->status.placement->epoch, 2);
}

}  // namespace
}  // namespace heddle::extender
