// Every node that the planner leaves out has a name in `status`, and none of its GPUs counts as free.
#include <gmock/gmock.h>

#include "cli/status_parts.h"
#include "crds/keys.h"

namespace heddle::cli {
namespace {

using crds::Json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr base::WallTime kAtNoon{std::chrono::seconds(1'800'000'000)};

Json DescribedNode(const std::string& name, int healthy, int all) {
  Json topology{{"metadata", {{"name", name}}}};
  topology["status"] = {{"observedAt", base::FormatTime(kAtNoon)}, {"gpus", Json::array()}};
  for (int i = 0; i < all; ++i)
    topology["status"]["gpus"].push_back({{"index", i}, {"health", i < healthy ? "Healthy" : "Unhealthy"}});
  return topology;
}

Json OfferingNode(const std::string& name, Json allocatable) {
  Json node{{"metadata", {{"name", name}}}};
  node["status"]["conditions"] = Json::array({{{"type", "Ready"}, {"status", "True"}}});
  node["status"]["allocatable"] = std::move(allocatable);
  return node;
}

Json RenewedLease(const std::string& node, std::chrono::seconds ago) {
  Json lease{{"metadata", {{"name", crds::keys::NodeLease(node)}}}};
  lease["spec"] = {{"leaseDurationSeconds", 240}, {"renewTime", base::FormatMicroTime(kAtNoon - ago)}};
  return lease;
}

// Two nodes of eight GPUs of which nothing is wrong.
StatusReading TwoSoundNodes() {
  StatusReading reading;
  reading.topologies = Objects{DescribedNode("a", 8, 8), DescribedNode("b", 8, 8)};
  reading.nodes =
      Objects{OfferingNode("a", {{"nvidia.com/gpu", "8"}}), OfferingNode("b", {{"nvidia.com/gpu", "8"}})};
  reading.leases =
      Objects{RenewedLease("a", std::chrono::seconds(9)), RenewedLease("b", std::chrono::seconds(9))};
  reading.now = kAtNoon;
  return reading;
}

std::vector<std::string> WhatsOf(const StatusReport& report) {
  std::vector<std::string> whats;
  for (const Trouble& one : report.troubles) whats.push_back(one.names.at(0) + ": " + one.what);
  return whats;
}

std::string WordOf(const StatusReading& reading, const std::string& node) {
  const auto unusable = FindUnusable(reading);
  const auto found = unusable.find(node);
  return found == unusable.end() ? "" : found->second.word;
}

TEST(StatusOfUnusableNodes, NamesOneWhoseDevicePluginOffersOtherGpusThanItsAgentFinds) {
  for (const Json& offered :
       {Json::object(), Json{{"nvidia.com/gpu", "0"}}, Json{{"nvidia.com/gpu", "7"}},
        Json{{"nvidia.com/gpu", "80"}}, Json{{"nvidia.com/gpu", "1k"}},
        Json{{"nvidia.com/gpu", "8"}, {"heddle.dev/gpu", 8}}, Json{{"nvidia.com/mig-1g.10gb", "8"}}}) {
    StatusReading reading = TwoSoundNodes();
    reading.nodes->back() = OfferingNode("b", offered);
    const StatusReport report = ReportStatus(reading);
    EXPECT_THAT(WhatsOf(report), ElementsAre("b: GPU count mismatch")) << offered;
    EXPECT_TRUE(report.wrong()) << offered;
    EXPECT_EQ(report.totals.free, 8) << offered;
    EXPECT_EQ(report.totals.out_of_use, 8) << offered;
    EXPECT_EQ(report.totals.unusable_nodes, 1) << offered;
  }
  StatusReading reading = TwoSoundNodes();
  reading.topologies->back() = DescribedNode("b", 7, 8);
  EXPECT_THAT(WhatsOf(ReportStatus(reading)), IsEmpty()) << "the plugin may see it a moment later";
  reading.nodes->back() = OfferingNode("b", {{"nvidia.com/gpu", "6"}});
  const StatusReport report = ReportStatus(reading);
  ASSERT_EQ(report.troubles.size(), 1u);
  EXPECT_EQ(report.troubles[0].gravity, Gravity::kProblem);
  EXPECT_EQ(report.troubles[0].reason, "GpuCountMismatch");
  EXPECT_EQ(report.troubles[0].message, "6 GPUs allocatable, and its agent finds 8, 7 of them healthy");
  EXPECT_THAT(report.troubles[0].remedy, HasSubstr("device plugin"));
}

TEST(StatusOfUnusableNodes, TellsNoCountsOfWhatIsOutForAnotherReason) {
  StatusReading reading = TwoSoundNodes();
  reading.nodes->back() = OfferingNode("b", Json::object());
  reading.nodes->back()["status"]["conditions"][0]["status"] = "Unknown";
  EXPECT_THAT(WhatsOf(ReportStatus(reading)), ElementsAre("b: not ready")) << "its plugin is away with it";
  reading.nodes->back()["status"].erase("allocatable");
  reading.nodes->back()["status"]["conditions"][0]["status"] = "True";
  EXPECT_THAT(WhatsOf(ReportStatus(reading)), IsEmpty()) << "a Node that was cut says nothing of its GPUs";
}

TEST(StatusOfUnusableNodes, NotesThoseThatAFabricExcludes) {
  StatusReading reading = TwoSoundNodes();
  reading.fabrics = Objects{Json::parse(
      R"({"metadata": {"name": "infiniband"}, "spec": {"excludedNodes": ["b", "never-there", 7]}})")};
  reading.nodes->back() = OfferingNode("b", Json::object());
  const StatusReport report = ReportStatus(reading);
  ASSERT_THAT(WhatsOf(report), ElementsAre("b: excluded"));
  EXPECT_EQ(report.troubles[0].gravity, Gravity::kNote) << "somebody wanted it so";
  EXPECT_EQ(report.troubles[0].remedy, "to use it, take it out of spec.excludedNodes of Fabric infiniband");
  EXPECT_FALSE(report.wrong());
  EXPECT_EQ(report.totals.free, 8);
}

TEST(StatusOfUnusableNodes, CountsNoGpusOfAnAgentThatFellSilent) {
  StatusReading reading = TwoSoundNodes();
  reading.leases->back() = RenewedLease("b", std::chrono::minutes(9));
  const StatusReport report = ReportStatus(reading);
  EXPECT_THAT(WhatsOf(report), ElementsAre("b: agent silent"));
  EXPECT_EQ(WordOf(reading, "b"), "TopologyStale");
  EXPECT_EQ(report.totals.free, 8);
  reading.leases->pop_back();
  EXPECT_EQ(WordOf(reading, "b"), "") << "the extender goes on with an agent that never had a Lease";
}

TEST(StatusOfUnusableNodes, NamesNodesOfWhichThereIsOnlyHalf) {
  StatusReading reading = TwoSoundNodes();
  reading.topologies->pop_back();
  reading.nodes->push_back(OfferingNode("without-gpus", {{"cpu", "64"}}));
  StatusReport report = ReportStatus(reading);
  ASSERT_THAT(WhatsOf(report), ElementsAre("b: GPUs without a NodeTopology"));
  EXPECT_EQ(report.troubles[0].message, "8 GPUs allocatable");
  EXPECT_TRUE(report.wrong());
  reading = TwoSoundNodes();
  reading.nodes->pop_back();
  report = ReportStatus(reading);
  EXPECT_THAT(WhatsOf(report), ElementsAre("b: its Node is gone"));
  EXPECT_FALSE(report.wrong());
  EXPECT_EQ(report.totals.free, 8);
}

TEST(StatusOfUnusableNodes, HasThePlannersWordForReportsThatItCannotUse) {
  StatusReading reading = TwoSoundNodes();
  const auto say = [&reading](const char* status, const char* reason) {
    reading.topologies->back()["status"]["conditions"] =
        Json::array({{{"type", "Ready"}, {"status", status}, {"reason", reason}}});
  };
  say("False", "Contradictory");
  EXPECT_EQ(WordOf(reading, "b"), "TopologyContradictory");
  say("Unknown", "BusUnreadable");
  EXPECT_EQ(WordOf(reading, "b"), "GpusUnread");
  say("False", "GpusUnreadable");
  EXPECT_EQ(WordOf(reading, "b"), "") << "its GPUs are unhealthy, and the planner sees that";
  reading.topologies->back()["status"].erase("observedAt");
  EXPECT_EQ(WordOf(reading, "b"), "NoTopology");
  EXPECT_THAT(WhatsOf(ReportStatus(reading)), ElementsAre("b: no agent has reported")) << "and that once";
}

TEST(StatusOfUnusableNodes, CondemnsNobodyForWhatCannotBeRead) {
  StatusReading reading = TwoSoundNodes();
  reading.nodes = base::Fail(base::Code::kForbidden, "no");
  reading.fabrics = base::Fail(base::Code::kForbidden, "no");
  reading.leases = base::Fail(base::Code::kForbidden, "no");
  EXPECT_TRUE(FindUnusable(reading).empty());
  reading.topologies = base::Fail(base::Code::kForbidden, "no");
  EXPECT_TRUE(FindUnusable(reading).empty());
}

}  // namespace
}  // namespace heddle::cli
