#include "operator/agent_leases.h"

#include <gtest/gtest.h>

namespace heddle::operators {
namespace {

using namespace std::chrono_literals;

kube::Json Lease(const std::string& node, const std::string& renewed) {
  kube::Json lease = kube::NewObject(kube::kLeases, {"heddle-system", "heddle-node-" + node});
  lease["spec"] = {{"holderIdentity", node}, {"leaseDurationSeconds", 40}, {"renewTime", renewed}};
  return lease;
}

const base::MonotonicTime kStart{1h};
using Names = std::set<std::string>;

TEST(AgentLeases, JudgesByItsOwnClockSinceTheLastChangeSeen) {
  AgentLeases leases;
  // renewTime is years ago: the agent's clock is wrong, and that is no reason.
  EXPECT_FALSE(leases.Observe({Lease("a", "2001-01-01T00:00:00.000000Z")}, {"a"}, kStart));
  EXPECT_EQ(leases.Stale(), Names{});
  leases.Observe({Lease("a", "2001-01-01T00:00:00.000000Z")}, {"a"}, kStart + 45s);
  EXPECT_EQ(leases.Stale(), Names{});
  EXPECT_TRUE(leases.Observe({Lease("a", "2001-01-01T00:00:00.000000Z")}, {"a"}, kStart + 46s));
  EXPECT_EQ(leases.Stale(), Names{"a"});
}

TEST(AgentLeases, ForgivesAtTheNextRenewal) {
  AgentLeases leases;
  leases.Observe({Lease("a", "1")}, {"a"}, kStart);
  leases.Observe({Lease("a", "1")}, {"a"}, kStart + 5min);
  EXPECT_EQ(leases.Stale(), Names{"a"});
  EXPECT_TRUE(leases.Observe({Lease("a", "2")}, {"a"}, kStart + 6min));
  EXPECT_EQ(leases.Stale(), Names{});
}

TEST(AgentLeases, CallsAnAgentWithoutLeaseStaleOnlyAfterATime) {
  AgentLeases leases;
  EXPECT_FALSE(leases.Observe({}, {"a"}, kStart));
  EXPECT_FALSE(leases.Observe({}, {"a"}, kStart + 30s));
  EXPECT_TRUE(leases.Observe({}, {"a"}, kStart + 46s));
}

TEST(AgentLeases, BlamesNobodyWhileTheServerCannotBeRead) {
  AgentLeases leases;
  leases.Observe({Lease("a", "1")}, {"a"}, kStart);
  EXPECT_EQ(leases.Stale(), Names{});  // an hour without Observe changes nothing
  EXPECT_FALSE(leases.Observe({Lease("a", "2")}, {"a"}, kStart + 1h));
  EXPECT_EQ(leases.Stale(), Names{});
}

TEST(AgentLeases, IgnoresOtherLeasesAndNodesThatAreGone) {
  AgentLeases leases;
  leases.Observe({Lease("a", "1"), Lease("b", "1")}, {"a", "b"}, kStart);
  kube::Json other = kube::NewObject(kube::kLeases, {"heddle-system", "heddle-operator"});
  other["spec"] = "nonsense";
  EXPECT_TRUE(leases.Observe({other, Lease("a", "1"), Lease("b", "1")}, {"b"}, kStart + 5min));
  EXPECT_EQ(leases.Stale(), Names{"b"});
}

}  // namespace
}  // namespace heddle::operators
