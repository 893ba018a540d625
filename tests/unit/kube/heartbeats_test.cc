#include "kube/heartbeats.h"

#include <gtest/gtest.h>

namespace heddle::kube {
namespace {

using namespace std::chrono_literals;

Json Lease(const std::string& node, const std::string& renewed) {
  Json lease = NewObject(kLeases, {"heddle-system", "heddle-node-" + node});
  lease["spec"] = {{"holderIdentity", node}, {"leaseDurationSeconds", 40}, {"renewTime", renewed}};
  return lease;
}

Heartbeats OfNodes() {
  return Heartbeats({.prefix = "heddle-node-"});
}

const base::MonotonicTime kStart{1h};
using Names = std::set<std::string>;

TEST(Heartbeats, JudgesByItsOwnClockSinceTheLastChangeSeen) {
  Heartbeats heartbeats = OfNodes();
  // renewTime is years ago: the agent's clock is wrong, and that is no reason.
  EXPECT_FALSE(heartbeats.Observe({Lease("a", "2001-01-01T00:00:00.000000Z")}, {{"a"}}, kStart));
  EXPECT_EQ(heartbeats.Late(), Names{});
  heartbeats.Observe({Lease("a", "2001-01-01T00:00:00.000000Z")}, {{"a"}}, kStart + 45s);
  EXPECT_EQ(heartbeats.Late(), Names{});
  EXPECT_TRUE(heartbeats.Observe({Lease("a", "2001-01-01T00:00:00.000000Z")}, {{"a"}}, kStart + 46s));
  EXPECT_EQ(heartbeats.Late(), Names{"a"});
}

TEST(Heartbeats, ForgivesAtTheNextRenewal) {
  Heartbeats heartbeats = OfNodes();
  heartbeats.Observe({Lease("a", "1")}, {{"a"}}, kStart);
  heartbeats.Observe({Lease("a", "1")}, {{"a"}}, kStart + 5min);
  EXPECT_EQ(heartbeats.Late(), Names{"a"});
  EXPECT_TRUE(heartbeats.Observe({Lease("a", "2")}, {{"a"}}, kStart + 6min));
  EXPECT_EQ(heartbeats.Late(), Names{});
}

TEST(Heartbeats, CallsAnAgentWithoutLeaseStaleOnlyAfterATime) {
  Heartbeats heartbeats = OfNodes();
  EXPECT_FALSE(heartbeats.Observe({}, {{"a"}}, kStart));
  EXPECT_FALSE(heartbeats.Observe({}, {{"a"}}, kStart + 245s));
  EXPECT_TRUE(heartbeats.Observe({}, {{"a"}}, kStart + 246s));
}

TEST(Heartbeats, BlamesNobodyWhileTheServerCannotBeRead) {
  Heartbeats heartbeats = OfNodes();
  heartbeats.Observe({Lease("a", "1")}, {{"a"}}, kStart);
  EXPECT_EQ(heartbeats.Late(), Names{});  // an hour without Observe changes nothing
  EXPECT_FALSE(heartbeats.Observe({Lease("a", "2")}, {{"a"}}, kStart + 1h));
  EXPECT_EQ(heartbeats.Late(), Names{});
}

TEST(Heartbeats, IgnoresOtherLeasesAndNodesThatAreGone) {
  Heartbeats heartbeats = OfNodes();
  heartbeats.Observe({Lease("a", "1"), Lease("b", "1")}, {{"a", "b"}}, kStart);
  Json other = NewObject(kLeases, {"heddle-system", "heddle-operator"});
  other["spec"] = "nonsense";
  EXPECT_TRUE(heartbeats.Observe({other, Lease("a", "1"), Lease("b", "1")}, {{"b"}}, kStart + 5min));
  EXPECT_EQ(heartbeats.Late(), Names{"b"});
}

TEST(Heartbeats, JudgesOnlyThoseWhoHaveALeaseWhereNobodyIsExpected) {
  Heartbeats heartbeats = OfNodes();
  EXPECT_FALSE(heartbeats.Observe({Lease("a", "1"), Lease("b", "1")}, std::nullopt, kStart));
  EXPECT_TRUE(heartbeats.Observe({Lease("a", "2"), Lease("b", "1")}, std::nullopt, kStart + 1min));
  EXPECT_EQ(heartbeats.Late(), Names{"b"});
  EXPECT_TRUE(heartbeats.Observe({Lease("a", "2")}, std::nullopt, kStart + 65s)) << "its node is gone";
  EXPECT_EQ(heartbeats.Late(), Names{});
}

}  // namespace
}  // namespace heddle::kube
