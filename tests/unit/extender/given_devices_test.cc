#include "extender/given_devices.h"

#include <gmock/gmock.h>

#include "crds/node_topology.h"
#include "extender/gang_key.h"
#include "extender/resources.h"
#include "tests/unit/extender/cluster.h"
#include "tests/unit/extender/snapshot_stage.h"

namespace heddle::extender {
namespace {

using test::Stage;
using testing::HasSubstr;
using testing::IsEmpty;

// A pod of the gang "job" with its plan, and what the kubelet of its node says that it holds.
class Given : public testing::Test {
 protected:
  PodFacts& Planned(int rank, std::uint32_t gpus) {
    PodFacts& pod = stage_.Bound("job-" + std::to_string(rank), node_, 2);
    pod.gang = {"train", "job", 0};
    pod.plan = PodPlan{.rank = rank, .node = node_, .gpus = gpus};
    return pod;
  }
  crds::Grant& Granted(int rank, const std::vector<int>& indexes) {
    crds::Grant grant;
    grant.pod_namespace = "other";
    grant.pod_name = "job-" + std::to_string(rank);
    for (const int index : indexes) grant.gpus.push_back({index, "GPU-" + std::to_string(index)});
    stage_.topologies[0]->status.grants.push_back(grant);
    return stage_.topologies[0]->status.grants.back();
  }
  GivenByGang Look() { return stage_.Take().given; }

  Stage stage_;
  const std::string node_ = stage_.topologies[0]->name;
};

TEST_F(Given, IsAsPlannedWhereEveryPodHoldsTheGpusOfItsPlan) {
  Planned(0, 0b0011);
  Planned(1, 0b1100);
  Granted(0, {0, 1});
  Granted(1, {2, 3});
  const GivenByGang given = Look();
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given.at("job").compared, 2);
  EXPECT_EQ(given.at("job").differ, 0);
}

TEST_F(Given, NamesTheLowestRankThatHoldsOthers) {
  Planned(0, 0b000011);
  Planned(2, 0b001100);
  Planned(1, 0b110000);
  Granted(0, {0, 1});
  Granted(2, {4, 5});
  Granted(1, {2, 3});  // the two are exchanged
  const GivenDevices job = Look().at("job");
  EXPECT_EQ(job.compared, 3);
  EXPECT_EQ(job.differ, 2);
  EXPECT_EQ(job.first, "pod other/job-1 (rank 1) holds GPU 2,3 of " + node_ + " where its plan says GPU 4,5");
}

TEST_F(Given, ContainersOfOnePodCountTogether) {
  Planned(0, 0b0011);
  Granted(0, {0});
  Granted(0, {1});
  EXPECT_EQ(Look().at("job").differ, 0);
}

TEST_F(Given, SaysNothingWhereNobodyCanKnow) {
  EXPECT_THAT(Look(), IsEmpty());
  Planned(0, 0b0011);
  EXPECT_THAT(Look(), IsEmpty()) << "nothing has been read yet";
  Granted(0, {4});
  EXPECT_THAT(Look(), IsEmpty()) << "one of two is read";
  Granted(0, {-1});
  EXPECT_THAT(Look(), IsEmpty()) << "the other has no index";
  stage_.topologies[0]->status.grants.clear();
  Granted(0, {4, 5}).pod_uid = "of-the-pod-before";
  EXPECT_THAT(Look(), IsEmpty());
  stage_.topologies[0]->status.grants.clear();
  stage_.Bound("job-7", node_, 2);  // outside of a gang
  Granted(7, {6, 7});
  EXPECT_THAT(Look(), IsEmpty());
  PodFacts& whole = Planned(1, 0xFF);
  Granted(1, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(Look(), IsEmpty()) << "of a whole node there is no choice";
  whole.terminating = true;
  EXPECT_THAT(Look(), IsEmpty());
}

TEST_F(Given, SaysThatANicIsOnNoneOfTheRailsOfThePlan) {
  Planned(0, 0b0011);
  const topology::Node& node = stage_.topologies[0]->status.node;
  crds::Grant& grant = Granted(0, {0, 1});
  grant.nics = {node.NicOfGpu(1)->name};
  EXPECT_EQ(Look().at("job").differ, 0) << "one of its own is enough";
  const std::string stray = node.NicOfGpu(5)->name;
  stage_.topologies[0]->status.grants[0].nics = {stray};
  const GivenDevices job = Look().at("job");
  EXPECT_EQ(job.differ, 1);
  EXPECT_EQ(job.first, "pod other/job-0 (rank 0) holds " + stray + " of " + node_ +
                           ", on rail 5, and none of its GPU 0,1 is there");
}

TEST_F(Given, TheConditionSaysItOnceAndTakesItBack) {
  std::vector<crds::Condition> conditions;
  const base::WallTime now{std::chrono::seconds(1'800'000'000)};
  const GivenDevices good{2, 0, 0, ""}, bad{2, 2, 1, "pod train/job-1 (rank 1) holds GPU 2,3"};
  EXPECT_THAT(
      SayGiven(bad, now, 1, conditions),
      HasSubstr("pod train/job-1 (rank 1) holds GPU 2,3; so do 1 more. They run, and may cross rails"));
  EXPECT_FALSE(crds::IsTrue(conditions, crds::kDevicesAsPlanned));
  EXPECT_THAT(SayGiven(bad, now, 1, conditions), IsEmpty()) << "it was said";
  EXPECT_THAT(SayGiven(good, now, 1, conditions), IsEmpty());
  EXPECT_TRUE(crds::IsTrue(conditions, crds::kDevicesAsPlanned));
  EXPECT_EQ(crds::FindCondition(conditions, crds::kDevicesAsPlanned)->message,
            "2 pods hold what their plans say");
}

TEST_F(Given, AGangThatSaysSoAlreadyNeedsNoLook) {
  Planned(0, 0b0011);
  Granted(0, {4, 5});
  crds::Gang gang;
  gang.ns = "train";
  gang.spec.owner.uid = "job";
  EXPECT_TRUE(SaysGiven(gang, {})) << "there is nothing to say";
  const GivenByGang given = Look();
  EXPECT_FALSE(SaysGiven(gang, given));
  SayGiven(given.at("job"), {}, 1, gang.status.conditions);
  EXPECT_TRUE(SaysGiven(gang, given));
}

// Of a gang that runs: the agents publish what the kubelets gave.
TEST(RunningGang, SaysThatItsPodsHoldOtherGpusThanPlannedAndWhenTheyDoNot) {
  test::Cluster cluster("su:1 node:2 gpu:8 nic:8 rail:8");
  test::RunningExtender extender(cluster);
  cluster.Submit({.pods = 4, .gpus = 4, .parallelism = "tp=4,dp=4"});
  ASSERT_TRUE(extender.Until([&] {
    cluster.BindReleased();
    return cluster.Summary("train").starts_with("Running");
  })) << cluster.Summary("train");
  // Each pod gets its GPUs, moved on by so many.
  const auto grant = [&cluster](unsigned shift) {
    std::map<std::string, std::vector<crds::Grant>> by_node;
    for (const kube::Json& pod : cluster.Pods("train")) {
      const PodPlan plan = *ReadPod(pod).plan;
      crds::Grant given;
      given.pod_namespace = kube::Namespace(pod);
      given.pod_name = kube::Name(pod);
      for (unsigned index = 0; index < 8; ++index) {
        if ((plan.gpus >> index & 1u) != 0) given.gpus.push_back({int((index + shift) % 8), ""});
      }
      by_node[plan.node].push_back(given);
    }
    for (auto& [node, grants] : by_node) {
      cluster.server.Edit(kNodeTopologies, {"", node}, [&grants = grants](kube::Json& object) {
        auto topology = crds::NodeTopologyFromJson(object);
        ASSERT_TRUE(topology);
        topology->status.grants = grants;
        object["status"] = crds::ToJson(*topology)["status"];
      });
    }
  };
  const auto condition = [&cluster]() -> crds::Condition {
    const auto gang = cluster.GangOf("train");
    const auto* found = crds::FindCondition(gang->status.conditions, crds::kDevicesAsPlanned);
    return found == nullptr ? crds::Condition() : *found;
  };
  EXPECT_THAT(condition().type, IsEmpty()) << "nobody has said what they hold";
  grant(4);
  // A look may come between what the agents of two nodes say.
  ASSERT_TRUE(extender.Until([&] {
    return condition().status == crds::ConditionStatus::kFalse &&
           condition().message.find("; so do 3 more") != std::string::npos;
  })) << condition().message;
  EXPECT_EQ(condition().reason, "Differs");
  EXPECT_THAT(condition().message, HasSubstr("(rank 0) holds GPU "));
  EXPECT_EQ(cluster.GangOf("train")->status.reason, "") << "it runs, and nothing is broken";
  const auto told = [&cluster] {
    const auto events = cluster.server.All(kube::kEvents);
    return std::count_if(events.begin(), events.end(), [](const kube::Json& event) {
      return kube::StringAt(event, {"reason"}) == kDevicesDiffer;
    });
  };
  EXPECT_TRUE(extender.Until([&] { return told() == 1; }));
  grant(0);
  ASSERT_TRUE(extender.Until([&] { return condition().status == crds::ConditionStatus::kTrue; }));
  EXPECT_EQ(condition().message, "4 pods hold what their plans say");
  EXPECT_EQ(told(), 1);
}

}  // namespace
}  // namespace heddle::extender
