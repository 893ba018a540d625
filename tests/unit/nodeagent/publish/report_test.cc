#include "nodeagent/publish/report.h"

#include <gmock/gmock.h>

#include "nodeagent/health/conditions.h"
#include "tests/support/builders.h"

namespace heddle::nodeagent {
namespace {

using topology::LeafPort;
using topology::Missing;

// A host of EFA, of whose network no one on it can tell.
Observation EfaHost() {
  Observation seen;
  seen.node = test::NodeNamed("n").Gpus(1).Rail(0, "");
  seen.node.nics[0].transport = topology::Transport::kEfa;
  seen.node.nics[0].ports[0].leaf_port = Missing::kUnknown;
  return seen;
}

TEST(Report, TakesTheLeafOfEfaFromTheLabelsInTheSpec) {
  crds::NodeTopology current;
  current.name = "n";
  const base::WallTime now{};
  const crds::NodeTopology unlabelled = Report(current, EfaHost(), now);
  EXPECT_FALSE(crds::IsTrue(unlabelled.status.conditions, kLeavesKnown));
  current = unlabelled;
  current.spec.labels = {{"topology.k8s.aws/network-node-layer-3", "nn-3"}};
  const crds::NodeTopology labelled = Report(current, EfaHost(), now + std::chrono::minutes(1));
  EXPECT_EQ(labelled.status.node.nics[0].ports[0].leaf_port, (LeafPort{"nn-3", ""}));
  EXPECT_TRUE(crds::IsTrue(labelled.status.conditions, kLeavesKnown));
  EXPECT_EQ(labelled.status.hash, topology::ContentHash(labelled.status.node));
  EXPECT_EQ(labelled.status.observed_at, now + std::chrono::minutes(1)) << "the facts changed";
  EXPECT_EQ(Report(labelled, EfaHost(), now + std::chrono::hours(1)).status, labelled.status);
}

TEST(Report, KeepsTheTimeSinceWhichDiscoveryIsIncompleteWhileAPassIsStuck) {
  const base::WallTime now{std::chrono::seconds(1'800'000'000)};
  crds::NodeTopology current;
  current.name = "n";
  current = Report(current, EfaHost(), now);
  ASSERT_TRUE(crds::IsTrue(current.status.conditions, kDiscoveryComplete));
  const std::vector<StuckPass> stuck{{Pass::kCounterPass, now}};
  const auto next = [&current, &stuck](base::WallTime at) {
    crds::NodeTopology report = Report(current, EfaHost(), at);
    ReportStuck(current, stuck, at, report);
    current = report;
    return *crds::FindCondition(report.status.conditions, kDiscoveryComplete);
  };
  const crds::Condition first = next(now + std::chrono::minutes(1));
  EXPECT_EQ(first.status, crds::ConditionStatus::kFalse);
  EXPECT_EQ(first.reason, "Stuck");
  EXPECT_EQ(first.message, StuckText(stuck));
  EXPECT_EQ(first.last_transition, now + std::chrono::minutes(1));
  EXPECT_EQ(next(now + std::chrono::minutes(2)), first);
  current = Report(current, EfaHost(), now + std::chrono::minutes(3));
  EXPECT_TRUE(crds::IsTrue(current.status.conditions, kDiscoveryComplete));
}

// The kubelet is asked before the first look is there, and what a whole node is follows from that and the spec.
TEST(Report, NamesWhatPodsHoldAsTheDevicesAreKnownNowAndNotAsTheyWereWhenItWasHeard) {
  GrantReadings grants;
  grants.state = GrantsState::kRead;
  grants.containers = {{"train", "a", "w", {{"heddle.dev/rdma", false, {"node"}}}}};
  const Observation seen = EfaHost();
  const std::string nic = seen.node.nics[0].name;
  DeviceNews news;
  news.own[{"heddle.dev/rdma", "node"}] = {nic};
  crds::NodeTopology current;
  current.name = "n";
  const auto status = Report(current, seen, base::WallTime{}, &grants, &news).status;
  ASSERT_EQ(status.grants.size(), 1U);
  EXPECT_EQ(status.grants[0].nics, std::vector<std::string>{nic});
  EXPECT_TRUE(status.grants[0].unmatched.empty());
}

// What a newer chart writes into a spec may be any text; half a character is refused by the API server.
TEST(Report, CutsLongMessagesBetweenCharacters) {
  for (std::size_t before = 0; before < 3; ++before) {
    std::string field(before, 'x');
    for (int i = 0; i < 1000; ++i) field += "…";
    crds::NodeTopology current;
    current.name = "n";
    current.spec.cables = {{{"mlx5_0:1"}, lossless::LosslessVerdict::kContradiction, 100, field}};
    const std::vector<std::string> not_understood{field};
    const crds::NodeTopology report =
        Report(current, EfaHost(), base::WallTime(), nullptr, nullptr, nullptr, not_understood);
    for (const std::string_view type : {kSpecUnderstood, kCablesLossless}) {
      const crds::Condition* condition = crds::FindCondition(report.status.conditions, type);
      ASSERT_NE(condition, nullptr) << type;
      EXPECT_LE(condition->message.size(), 1000u);
      EXPECT_THAT(condition->message, testing::EndsWith("…")) << type;
    }
    EXPECT_NO_THROW((void)crds::ToJson(report).dump()) << "strict, as of UTF-8";
  }
}

TEST(Report, BoundsCongestionInWhatItWrites) {
  Observation seen = EfaHost();
  for (int i = 0; i < 10'000; ++i)
    seen.congestion[{"mlx5_" + std::to_string(i), 1}] = {base::WallTime(), std::string(10'000, '\xff')};
  crds::NodeTopology current;
  current.name = "n";
  const crds::NodeTopology report = Report(current, seen, base::WallTime());
  const crds::Json json = crds::ToJson(report);
  EXPECT_EQ(json["status"]["congestion"].size(), crds::kMaxCongestedPorts);
  EXPECT_TRUE(crds::NodeTopologyFromJson(json));
  EXPECT_TRUE(Report(report, EfaHost(), base::WallTime()).status.congestion.empty());
}

}  // namespace
}  // namespace heddle::nodeagent
