#include "extender/milestones.h"

#include <gtest/gtest.h>

namespace heddle::extender {
namespace {

using std::chrono::seconds;

base::WallTime At(int second) {
  return base::WallTime(seconds(second));
}

void Put(crds::GangStatus& status, std::string_view type, bool on, int second, std::string reason = "Word") {
  crds::SetCondition(status.conditions,
                     {.type = std::string(type),
                      .status = on ? crds::ConditionStatus::kTrue : crds::ConditionStatus::kFalse,
                      .reason = std::move(reason),
                      .message = "sentence",
                      .last_transition = At(second)});
}

crds::GangStatus Planned(crds::GangStatus status, int second, std::int64_t epoch = 1) {
  status.placement = crds::ToColumns({{"a", 0xFF, {}}}, epoch);
  status.planned_at = At(second);
  status.predicted = placement::Quality{.step_micros = 1500};
  Put(status, crds::kCollected, true, second);
  Put(status, crds::kPlanned, true, second);
  return status;
}

crds::Gang NewGang() {
  crds::Gang gang;
  gang.created_at = At(100);
  return gang;
}

TEST(Milestones, AGangThatIsPlannedAtOnceWaitsFromItsCreation) {
  const crds::Gang gang = NewGang();
  const Milestones reached = MilestonesOf(gang, Planned(gang.status, 101), At(101));
  EXPECT_EQ(reached.until_planned, seconds(1));
  EXPECT_TRUE(reached.at_once);
  ASSERT_TRUE(reached.planned);
  EXPECT_EQ(reached.planned->step_micros, 1500);
  EXPECT_FALSE(reached.repair);
  EXPECT_FALSE(reached.until_running);
}

TEST(Milestones, AGangThatWasRefusedWaitsFromTheMomentThatItsPodsWereThere) {
  crds::Gang gang = NewGang();
  Put(gang.status, crds::kCollected, true, 110);
  Put(gang.status, crds::kPlanned, false, 110);
  const Milestones reached = MilestonesOf(gang, Planned(gang.status, 400), At(400));
  EXPECT_EQ(reached.until_planned, seconds(290));
  EXPECT_FALSE(reached.at_once);
}

TEST(Milestones, PodsThatComeLateAreNoWaitForAPlan) {
  crds::Gang gang = NewGang();
  Put(gang.status, crds::kCollected, false, 101);
  EXPECT_EQ(MilestonesOf(gang, Planned(gang.status, 400), At(400)).until_planned, seconds(0));
}

TEST(Milestones, AStartIsCountedWhenRunningBecomesTrueAndNotAgainWhileItIs) {
  crds::Gang gang = NewGang();
  gang.status = Planned(gang.status, 110);
  crds::GangStatus running = gang.status;
  Put(running, crds::kRunning, true, 130);
  const Milestones reached = MilestonesOf(gang, running, At(130));
  EXPECT_EQ(reached.until_running, seconds(20));
  EXPECT_TRUE(reached.at_once);
  EXPECT_FALSE(reached.planned) << "the plan was counted when it was committed";
  gang.status = running;
  EXPECT_FALSE(MilestonesOf(gang, running, At(140)).until_running);
}

TEST(Milestones, ARepairIsAPlanAndAFollowedBindingIsNone) {
  crds::Gang gang = NewGang();
  gang.status = Planned(gang.status, 110);
  crds::GangStatus moved = Planned(gang.status, 200, 2);
  EXPECT_FALSE(MilestonesOf(gang, moved, At(200)).planned);
  Put(moved, crds::kRepairing, true, 200, "SlotLost");
  const Milestones reached = MilestonesOf(gang, moved, At(200));
  EXPECT_TRUE(reached.planned);
  EXPECT_TRUE(reached.repair);
  EXPECT_FALSE(reached.until_planned);
}

TEST(Milestones, AClockThatIsBehindMakesNoNegativeWait) {
  const crds::Gang gang = NewGang();
  EXPECT_EQ(MilestonesOf(gang, Planned(gang.status, 90), At(90)).until_planned, seconds(0));
}

}  // namespace
}  // namespace heddle::extender
