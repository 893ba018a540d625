// Mode observe against a fake API server: whatever happens, no pod is written.
#include "extender/observing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "crds/fabric.h"
#include "crds/observation.h"
#include "extender/census.h"
#include "extender/resources.h"
#include "tests/unit/extender/cluster.h"

namespace heddle::extender {
namespace {

using kube::Json;
using test::Cluster;
using test::JobWords;
using test::RunningExtender;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kTwoUnits = "su:2 node:8 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100";

// A Job as it is without Heddle, and its pods where another scheduler put them.
void Place(Cluster& cluster, JobWords words, const std::vector<std::string>& nodes) {
  words.pods = int(nodes.size());
  words.pod_spec["schedulingGates"] = nullptr;
  words.pod_spec["schedulerName"] = "default-scheduler";
  cluster.Submit(words);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    cluster.server.Edit(kube::kPods, {"train", words.name + "-" + std::to_string(i)}, [&](Json& pod) {
      pod["spec"]["nodeName"] = nodes[i];
      pod["status"]["phase"] = "Running";
    });
  }
}

bool Observed(const Cluster& cluster, const std::string& job) {
  const auto gang = cluster.GangOf(job);
  return gang && crds::WasPriced(gang->status);
}

// How many gangs the extender counts in that state.
int Counted(const Cluster& cluster, const std::string& job, GangState state) {
  const auto gang = cluster.GangOf(job);
  if (!gang) return 0;
  return CountGangs({std::make_shared<const crds::Gang>(*gang)})[std::size_t(state)];
}

std::vector<std::string> PodWrites(const Cluster& cluster) {
  std::vector<std::string> writes;
  for (const auto& request : cluster.server.writes()) {
    if (request.plural == "pods") writes.push_back(request.Line());
  }
  return writes;
}

int GangWrites(const Cluster& cluster) {
  int writes = 0;
  for (const auto& request : cluster.server.writes()) writes += request.plural == "gangs" ? 1 : 0;
  return writes;
}

// The agent of the node has not reported yet; what it is going to report.
Json Silence(Cluster& cluster, const std::string& node) {
  auto report = cluster.server.Find(kNodeTopologies, {"", node});
  EXPECT_TRUE(report) << node;
  if (!report) return {};
  report->at("metadata").erase("uid");
  cluster.server.Remove(kNodeTopologies, {"", node});
  return *report;
}

class Observing : public testing::Test {
 protected:
  Cluster cluster{kTwoUnits};
};

TEST_F(Observing, PricesWhatAnotherSchedulerDidBesideWhatHeddleWouldHave) {
  Place(cluster, {.parallelism = "tp=8,dp=4"}, {"node-00", "node-08", "node-01", "node-09"});
  cluster.server.ClearRequests();
  RunningExtender extender(cluster, cluster.server, Mode::kObserve);
  ASSERT_TRUE(extender.Until([&] { return Observed(cluster, "train"); })) << cluster.Summary("train");
  const auto gang = cluster.GangOf("train");
  const auto dp = std::size_t(placement::Axis::kDp);
  EXPECT_GT(gang->status.predicted->leaf_crossings[dp], 0);
  ASSERT_TRUE(gang->status.observed->heddle) << gang->status.observed->refusal;
  EXPECT_EQ(gang->status.observed->heddle->leaf_crossings[dp], 0) << "eight nodes of one unit were free";
  EXPECT_LT(gang->status.observed->heddle->step_micros, gang->status.predicted->step_micros);
  EXPECT_FALSE(gang->status.observed->assumed_parallelism);
  EXPECT_TRUE(gang->status.observed->assumed_gpus);
  EXPECT_FALSE(gang->status.placement) << "nothing is reserved";
  EXPECT_THAT(PodWrites(cluster), IsEmpty());
}

TEST_F(Observing, LeavesRoomOfOthersAlone) {
  for (int node = 0; node < 8; ++node) {
    cluster.PutLonePod("other-" + std::to_string(node), "node-0" + std::to_string(node), 4);
  }
  for (int node = 10; node < 16; ++node) {
    cluster.PutLonePod("other-" + std::to_string(node), "node-" + std::to_string(node), 4);
  }
  Place(cluster, {.parallelism = "tp=8,dp=2"}, {"node-08", "node-09"});
  RunningExtender extender(cluster, cluster.server, Mode::kObserve);
  ASSERT_TRUE(extender.Until([&] { return Observed(cluster, "train"); })) << cluster.Summary("train");
  const auto gang = cluster.GangOf("train");
  ASSERT_TRUE(gang->status.observed->heddle) << gang->status.observed->refusal;
  EXPECT_EQ(*gang->status.observed->heddle, *gang->status.predicted)
      << "its own two nodes were all that is free";
}

TEST_F(Observing, TakesAJobThatSaysNothingToCutItsModelWithinAPod) {
  Place(cluster, {.parallelism = ""}, {"node-00", "node-08"});
  RunningExtender extender(cluster, cluster.server, Mode::kObserve);
  ASSERT_TRUE(extender.Until([&] { return Observed(cluster, "train"); })) << cluster.Summary("train");
  const auto gang = cluster.GangOf("train");
  EXPECT_TRUE(gang->status.observed->assumed_parallelism);
  EXPECT_EQ(gang->spec.parallelism->tp, 8);
}

TEST_F(Observing, SaysWhatItWouldHaveRefused) {
  Place(cluster, {.parallelism = "tp=16,dp=1"}, {"node-00", "node-01"});
  RunningExtender extender(cluster, cluster.server, Mode::kObserve);
  ASSERT_TRUE(extender.Until([&] { return Observed(cluster, "train"); })) << cluster.Summary("train");
  const auto gang = cluster.GangOf("train");
  EXPECT_FALSE(gang->status.observed->heddle);
  EXPECT_THAT(gang->status.observed->refusal, HasSubstr("NVLink domain"));
}

TEST_F(Observing, SaysWhatIsWrongWithAnAnnotationBeforeAnythingWaitsForIt) {
  Place(cluster, {.parallelism = "tp=8,dp=3"}, {"node-00", "node-01"});
  RunningExtender extender(cluster, cluster.server, Mode::kObserve);
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Running 2/2: WorldMismatch"; }))
      << cluster.Summary("train") << ": it asks nobody whether it may run";
  const auto gang = cluster.GangOf("train");
  EXPECT_TRUE(gang->status.observed);
  EXPECT_FALSE(gang->status.predicted);
  EXPECT_THAT(gang->status.message, HasSubstr("24"));
  EXPECT_EQ(Counted(cluster, "train", GangState::kWaiting), 0) << "or HeddleGangWaitsLong would fire";
  EXPECT_EQ(Counted(cluster, "train", GangState::kRunning), 1);
  EXPECT_THAT(PodWrites(cluster), IsEmpty());
}

TEST_F(Observing, CountsNoGangAsWaitingThatItCannotPrice) {
  Place(cluster, {.parallelism = "tp=8,dp=2"}, {"node-00", "nowhere"});
  RunningExtender extender(cluster, cluster.server, Mode::kObserve);
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Running 2/2: NotPriced"; }))
      << cluster.Summary("train");
  EXPECT_THAT(cluster.GangOf("train")->status.message, HasSubstr("nobody knows the GPUs of pod"));
  EXPECT_EQ(Counted(cluster, "train", GangState::kWaiting), 0);
  EXPECT_FALSE(Observed(cluster, "train"));
}

TEST_F(Observing, PricesAGangOnceItCan) {
  Place(cluster, {.parallelism = "tp=8,dp=2"}, {"node-00", "nowhere"});
  RunningExtender extender(cluster, cluster.server, Mode::kObserve);
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Running 2/2: NotPriced"; }))
      << cluster.Summary("train");
  cluster.server.Edit(kube::kPods, {"train", "train-1"},
                      [](Json& pod) { pod["spec"]["nodeName"] = "node-08"; });
  ASSERT_TRUE(extender.Until([&] { return Observed(cluster, "train"); })) << cluster.Summary("train");
  EXPECT_EQ(cluster.Summary("train"), "Running 2/2");
  EXPECT_TRUE(cluster.GangOf("train")->status.observed->heddle);
}

TEST_F(Observing, PricesAGangThatRanBeforeTheAgentOfItsNodeReported) {
  const Json late = Silence(cluster, "node-08");
  Place(cluster, {.parallelism = "tp=8,dp=2"}, {"node-00", "node-08"});
  RunningExtender extender(cluster, cluster.server, Mode::kObserve);
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Running 2/2: NotPriced"; }))
      << cluster.Summary("train");
  extender.Pass(std::chrono::minutes(5));
  ASSERT_TRUE(extender.Until([&] {
    return cluster.GangOf("train")->status.message.ends_with("node-08: does heddle-nodeagent run there?");
  })) << cluster.GangOf("train")->status.message;
  cluster.server.Put(kNodeTopologies, late);
  ASSERT_TRUE(extender.Until([&] { return Observed(cluster, "train"); })) << cluster.Summary("train");
  EXPECT_EQ(cluster.Summary("train"), "Running 2/2");
}

TEST_F(Observing, WaitsWithAPriceForNodesThatAreStillToReport) {
  std::vector<Json> late;
  for (const char* node : {"node-01", "node-02", "node-09", "node-10"})
    late.push_back(Silence(cluster, node));
  for (const char* node : {"node-03", "node-04", "node-05", "node-06", "node-07", "node-11", "node-12",
                           "node-13", "node-14", "node-15"}) {
    cluster.PutLonePod(std::string("other-on-") + node, node, 8);
  }
  Place(cluster, {.parallelism = "tp=8,dp=2"}, {"node-00", "node-08"});
  RunningExtender extender(cluster, cluster.server, Mode::kObserve);
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Running 2/2: NotPriced"; }))
      << cluster.Summary("train") << ": of what has reported its own nodes alone are free";
  EXPECT_THAT(cluster.GangOf("train")->status.message,
              HasSubstr("some nodes with GPUs have not reported yet"));
  EXPECT_EQ(Counted(cluster, "train", GangState::kWaiting), 0);
  extender.Pass(std::chrono::seconds(5));
  cluster.server.ClearRequests();
  cluster.server.Put(kNodeTopologies, late[2]);
  cluster.server.Put(kNodeTopologies, late[3]);
  extender.Pass(std::chrono::seconds(65));
  EXPECT_EQ(GangWrites(cluster), 0) << "the answer was the same";
  EXPECT_FALSE(Observed(cluster, "train"));
  cluster.server.Put(kNodeTopologies, late[0]);
  cluster.server.Put(kNodeTopologies, late[1]);
  ASSERT_TRUE(extender.Until([&] { return Observed(cluster, "train"); })) << cluster.Summary("train");
  const auto gang = cluster.GangOf("train");
  const auto dp = std::size_t(placement::Axis::kDp);
  EXPECT_GT(gang->status.predicted->leaf_crossings[dp], 0);
  ASSERT_TRUE(gang->status.observed->heddle) << gang->status.observed->refusal;
  EXPECT_EQ(gang->status.observed->heddle->leaf_crossings[dp], 0) << "three nodes of each unit were free";
  EXPECT_EQ(gang->status.explanation.size(), 1u);
  EXPECT_EQ(cluster.Summary("train"), "Running 2/2");
}

TEST_F(Observing, WaitsForNoNodeLongerThanItSaysAlsoWhereItIsStartedAgain) {
  Silence(cluster, "node-15");
  Place(cluster, {.parallelism = "tp=8,dp=2"}, {"node-00", "node-08"});
  {
    RunningExtender extender(cluster, cluster.server, Mode::kObserve);
    ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Running 2/2: NotPriced"; }))
        << cluster.Summary("train");
    const auto gang = cluster.GangOf("train");
    EXPECT_THAT(gang->status.message,
                HasSubstr(base::FormatTime(gang->status.observed->at + std::chrono::minutes(5))));
    extender.Pass(std::chrono::seconds(200));
    EXPECT_FALSE(Observed(cluster, "train"));
  }
  RunningExtender again(cluster, cluster.server, Mode::kObserve);
  again.Pass(std::chrono::seconds(90));
  ASSERT_TRUE(again.Until([&] { return Observed(cluster, "train"); })) << cluster.Summary("train");
  EXPECT_THAT(cluster.GangOf("train")->status.explanation,
              testing::Contains("priced without 1 node with GPUs that had not reported"));
}

TEST_F(Observing, WaitsForNoNodeThatIsExcludedOrNotReady) {
  Silence(cluster, "node-14");
  Silence(cluster, "node-15");
  cluster.server.Edit(kube::kNodes, {"", "node-14"},
                      [](Json& node) { node["status"]["conditions"][0]["status"] = "False"; });
  crds::Fabric fabric;
  fabric.name = "infiniband";
  fabric.spec.excluded_nodes = {"node-15"};
  cluster.server.Put(kFabrics, crds::ToJson(fabric));
  Place(cluster, {.parallelism = "tp=8,dp=2"}, {"node-00", "node-08"});
  RunningExtender extender(cluster, cluster.server, Mode::kObserve);
  ASSERT_TRUE(extender.Until([&] { return Observed(cluster, "train"); })) << cluster.Summary("train");
  EXPECT_EQ(cluster.GangOf("train")->status.explanation.size(), 1u);
}

TEST_F(Observing, ForgetsARefusalThatWasPutRightBeforeItCanPrice) {
  Place(cluster, {.parallelism = "tp=8,dp=3"}, {"node-00", "node-01"});
  RunningExtender extender(cluster, cluster.server, Mode::kObserve);
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Running 2/2: WorldMismatch"; }))
      << cluster.Summary("train");
  cluster.server.Edit(kube::kPods, {"train", "train-1"}, [](Json& pod) {
    pod["spec"].erase("nodeName");
    pod["status"]["phase"] = "Pending";
  });
  for (const char* name : {"train-0", "train-1"}) {
    cluster.server.Edit(kube::kPods, {"train", name}, [](Json& pod) {
      pod["metadata"]["annotations"]["heddle.dev/parallelism"] = "tp=8,dp=2";
    });
  }
  EXPECT_TRUE(extender.Until([&] { return cluster.GangOf("train")->status.reason.empty(); }))
      << cluster.Summary("train");
  EXPECT_FALSE(Observed(cluster, "train"));
}

TEST_F(Observing, TakesNoGangForItsOwnThatWaitsAtTheGateFromBefore) {
  cluster.Submit({.pods = 2, .parallelism = "tp=8,dp=3"});
  RunningExtender extender(cluster, cluster.server, Mode::kObserve);
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Waiting: WorldMismatch"; }))
      << cluster.Summary("train");
  EXPECT_FALSE(cluster.GangOf("train")->status.observed);
  EXPECT_EQ(Counted(cluster, "train", GangState::kWaiting), 1)
      << "nobody lets it go, and somebody should know";
}

TEST_F(Observing, KeepsWhatItFoundWhenTheJobIsGone) {
  Place(cluster, {.parallelism = "tp=8,dp=2"}, {"node-00", "node-08"});
  {
    RunningExtender extender(cluster, cluster.server, Mode::kObserve);
    ASSERT_TRUE(extender.Until([&] { return Observed(cluster, "train"); })) << cluster.Summary("train");
    EXPECT_TRUE(cluster.GangOf("train")->owners.empty()) << "or it would be collected with its Job";
    for (const Json& pod : cluster.Pods("train")) cluster.server.Remove(kube::kPods, kube::KeyOf(pod));
    cluster.server.Remove(kube::kJobs, {"train", "train"});
    ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Ended"; }))
        << cluster.Summary("train");
  }
  RunningExtender again(cluster, cluster.server, Mode::kObserve);
  again.Pass(std::chrono::seconds(30));
  EXPECT_TRUE(Observed(cluster, "train")) << "a restart forgets nothing";
}

TEST_F(Observing, ForgetsAGangThatNeverHadAllItsNodes) {
  cluster.Submit({.pods = 2, .parallelism = "tp=8,dp=2", .pod_spec = {{"schedulingGates", nullptr}}});
  RunningExtender extender(cluster, cluster.server, Mode::kObserve);
  ASSERT_TRUE(extender.Until([&] { return cluster.GangOf("train").has_value(); }));
  for (const Json& pod : cluster.Pods("train")) cluster.server.Remove(kube::kPods, kube::KeyOf(pod));
  cluster.server.Remove(kube::kJobs, {"train", "train"});
  EXPECT_TRUE(extender.Until([&] { return !cluster.GangOf("train"); })) << cluster.Summary("train");
}

TEST_F(Observing, NeverLooksAtPodsWithoutGpusOrJobsOfOnePod) {
  Place(cluster, {.name = "alone", .parallelism = ""}, {"node-00"});
  Place(cluster, {.name = "cpu", .gpus = 0, .parallelism = ""}, {"node-00", "node-01"});
  RunningExtender extender(cluster, cluster.server, Mode::kObserve);
  Place(cluster, {.name = "seen", .parallelism = ""}, {"node-02", "node-03"});
  ASSERT_TRUE(extender.Until([&] { return Observed(cluster, "seen"); }));
  EXPECT_FALSE(cluster.GangOf("alone"));
  EXPECT_FALSE(cluster.GangOf("cpu"));
}

TEST(SurplusObservations, AreTheOldestOfEndedOwners) {
  std::vector<Shared<crds::Gang>> gangs;
  for (int i = 0; i < 5; ++i) {
    crds::Gang gang;
    gang.name = "g" + std::to_string(i);
    gang.status.observed = crds::Observed{.at = base::WallTime(std::chrono::seconds(i))};
    if (i != 0) {
      crds::SetCondition(gang.status.conditions,
                         {.type = std::string(crds::kEnded), .status = crds::ConditionStatus::kTrue});
    }
    gangs.push_back(std::make_shared<const crds::Gang>(gang));
  }
  std::vector<std::string> names;
  for (const crds::Gang& gang : SurplusObservations(gangs, 2)) names.push_back(gang.name);
  EXPECT_THAT(names, testing::ElementsAre("g2", "g1")) << "g0 still runs";
}

}  // namespace
}  // namespace heddle::extender
