#include "nodeagent/leaf/memory.h"

#include <gmock/gmock.h>

#include "tests/support/fake_clock.h"
#include "tests/support/memory_file_tree.h"

namespace heddle::nodeagent {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using topology::LeafPort;
using topology::Missing;

const std::pair<std::string, int> kPort{"mlx5_0", 1};

LeafReadings Heard(const LeafFact& leaf, seconds proof = seconds(20)) {
  LeafReadings readings;
  readings.by_netdev["eth1"] = leaf;
  readings.proof["eth1"] = proof;
  return readings;
}

class LeafMemoryTest : public testing::Test {
 protected:
  LeafReadings Look(LeafReadings readings) {
    memory_.Apply(readings, clock_.Now(), clock_.WallNow());
    return readings;
  }
  LeafMemory memory_;
  test::FakeClock clock_;
};

TEST_F(LeafMemoryTest, ChangesNothingThatIsKnown) {
  EXPECT_EQ(Look(Heard(LeafPort{"tor-1", "1"})).by_netdev.at("eth1"), (LeafPort{"tor-1", "1"}));
  const LeafReadings moved = Look(Heard(LeafPort{"tor-2", "9"}));
  EXPECT_EQ(moved.by_netdev.at("eth1"), (LeafPort{"tor-2", "9"}));
  EXPECT_THAT(moved.problems, IsEmpty());
}

TEST_F(LeafMemoryTest, CallsANeighbourThatWentStaleAndSaysWhoItWasAndWhen) {
  (void)Look(Heard(LeafPort{"tor-1", "swp7"}));
  clock_.Advance(seconds(30));
  const LeafReadings gone = Look({});
  EXPECT_EQ(gone.by_netdev.at("eth1").missing(), Missing::kStale);
  EXPECT_THAT(gone.problems, ElementsAre("eth1: its leaf is stale: it was tor-1 port swp7, last confirmed at "
                                         "2027-01-15T08:00:00Z"));
  clock_.Advance(seconds(3'600));
  EXPECT_EQ(Look({}).problems, gone.problems) << "the sentence stays, or it would be written anew each look";
}

TEST_F(LeafMemoryTest, NeverCallsStaleWhatWasNeverKnown) {
  const LeafReadings readings = Look(Heard(Missing::kUnknown));
  EXPECT_EQ(readings.by_netdev.at("eth1").missing(), Missing::kUnknown);
  EXPECT_THAT(readings.problems, IsEmpty());
}

TEST_F(LeafMemoryTest, KeepsAValueUntilItsTimeToLiveWhileLldpdCannotBeAsked) {
  (void)Look(Heard(LeafPort{"tor-1", "1"}, seconds(20)));
  LeafReadings unasked;
  unasked.lldp_unanswered = true;
  clock_.Advance(seconds(19));
  EXPECT_TRUE(Look(unasked).by_netdev.at("eth1").known());
  clock_.Advance(seconds(1));
  EXPECT_EQ(Look(unasked).by_netdev.at("eth1").missing(), Missing::kStale);
}

TEST_F(LeafMemoryTest, TakesLldpdsWordThatANeighbourIsGoneBeforeItsTimeToLive) {
  (void)Look(Heard(LeafPort{"tor-1", "1"}, seconds(120)));
  EXPECT_EQ(Look({}).by_netdev.at("eth1").missing(), Missing::kStale);
}

TEST_F(LeafMemoryTest, KnowsANeighbourAgainThatComesBack) {
  (void)Look(Heard(LeafPort{"tor-1", "1"}));
  (void)Look({});
  const LeafReadings back = Look(Heard(LeafPort{"tor-1", "1"}));
  EXPECT_TRUE(back.by_netdev.at("eth1").known());
  EXPECT_THAT(back.problems, IsEmpty());
}

TEST_F(LeafMemoryTest, LeavesAmbiguousAlone) {
  (void)Look(Heard(LeafPort{"tor-1", "1"}));
  EXPECT_EQ(Look(Heard(Missing::kAmbiguous)).by_netdev.at("eth1").missing(), Missing::kAmbiguous);
}

TEST_F(LeafMemoryTest, KeepsAPortsLeafThroughALostAnswerAndNotThroughALostLink) {
  LeafReadings up;
  up.by_port[kPort] = LeafPort{"leaf-0", "7"};
  (void)Look(up);
  LeafReadings silent;
  silent.by_port[kPort] = Missing::kUnknown;
  silent.unanswered.insert(kPort);
  clock_.Advance(kIbProof - seconds(1));
  EXPECT_TRUE(Look(silent).by_port.at(kPort).known());
  LeafReadings down;
  down.by_port[kPort] = Missing::kUnknown;
  const LeafReadings lost = Look(down);
  EXPECT_EQ(lost.by_port.at(kPort).missing(), Missing::kStale);
  EXPECT_THAT(lost.problems,
              ElementsAre(HasSubstr("mlx5_0 port 1: its leaf is stale: it was leaf-0 port 7")));
  clock_.Advance(seconds(1));
  EXPECT_EQ(Look(silent).by_port.at(kPort).missing(), Missing::kStale);
}

TEST_F(LeafMemoryTest, ForgetsALeafWhereTheCableNowEndsInAHost) {
  LeafReadings up, host;
  up.by_port[kPort] = LeafPort{"leaf-0", "7"};
  host.by_port[kPort] = Missing::kNotApplicable;
  (void)Look(up);
  EXPECT_EQ(Look(host).by_port.at(kPort).missing(), Missing::kNotApplicable);
  EXPECT_THAT(Look({}).by_port, IsEmpty());
}

class Scripted final : public LeafSource {
 public:
  explicit Scripted(LeafReadings& next) : next_(next) {}
  LeafReadings Read(const RdmaReadings& /*rdma*/) override { return next_; }

 private:
  LeafReadings& next_;
};

TEST(RememberedLeaves, ForgetInterfacesThatTheMachineNoLongerHas) {
  test::MemoryFileTree with, without;
  with.Write("sys/class/net/eth1/mtu", "9000\n");
  without.Write("sys/class/net/eth2/mtu", "9000\n");
  for (const auto& [files, stale] : {std::pair(&with, 1u), std::pair(&without, 0u)}) {
    test::FakeClock clock;
    LeafReadings next = Heard(LeafPort{"tor-1", "1"});
    std::vector<std::unique_ptr<LeafSource>> sources;
    sources.push_back(std::make_unique<Scripted>(next));
    RememberedLeaves leaves(*files, clock, std::move(sources));
    EXPECT_TRUE(leaves.Read({}).by_netdev.at("eth1").known());
    next = {};
    EXPECT_EQ(leaves.Read({}).problems.size(), stale);
  }
}

}  // namespace
}  // namespace heddle::nodeagent
