#include "nodeagent/assembly/rails.h"

#include <gmock/gmock.h>

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using topology::Missing;
using topology::NicRole;
using topology::PciDistance;
using topology::Transport;
using enum topology::PciDistance;

RailNic Nic(std::vector<PciDistance> distance, int gbps = 400, Transport transport = Transport::kInfiniBand) {
  return {transport, gbps, gbps > 0, std::move(distance)};
}

// The rail of each NIC; -1 = compute without a known rail, -2 = storage, -3 = management.
std::vector<int> RailsOf(int gpus, const std::vector<RailNic>& nics) {
  std::vector<int> rails;
  for (const RailPlace& place : MeasureRails(gpus, nics).places) {
    rails.push_back(place.role == NicRole::kStorage      ? -2
                    : place.role == NicRole::kManagement ? -3
                                                         : place.rail.value_or(-1));
  }
  return rails;
}

TEST(Rails, FollowTheGpuBehindTheSameSwitchWhateverTheOrderOfTheNics) {
  EXPECT_THAT(RailsOf(2, {Nic({kSys, kPix}), Nic({kPix, kSys})}), ElementsAre(1, 0));
}

TEST(Rails, GiveEachOfTwoGpusBehindOneSwitchANicOfItsOwn) {
  EXPECT_THAT(RailsOf(4, {Nic({kPix, kPix, kNode, kNode}), Nic({kPix, kPix, kNode, kNode}),
                          Nic({kNode, kNode, kPix, kPix}), Nic({kNode, kNode, kPix, kPix})}),
              ElementsAre(0, 1, 2, 3));
}

TEST(Rails, GiveFourEfaDevicesOfAGpuItsRail) {
  std::vector<RailNic> nics;
  for (int i = 0; i < 8; ++i) {
    nics.push_back(Nic(i < 4 ? std::vector{kPix, kNode} : std::vector{kNode, kPix}, 100, Transport::kEfa));
  }
  EXPECT_THAT(RailsOf(2, nics), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
}

TEST(Rails, CountNicsWhereTwoGpusShareOne) {
  EXPECT_THAT(RailsOf(4, {Nic({kPix, kPix, kSys, kSys}), Nic({kSys, kSys, kPix, kPix})}), ElementsAre(0, 1));
}

TEST(Rails, LeaveTheNumberOfAMissingNicFree) {
  EXPECT_THAT(RailsOf(3, {Nic({kPix, kNode, kNode}), Nic({kNode, kNode, kPix})}), ElementsAre(0, 2));
}

TEST(Rails, KeepANicWhoseCableWasPulled) {
  EXPECT_THAT(RailsOf(2, {Nic({kPix, kSys}), Nic({kSys, kPix}, 0)}), ElementsAre(0, 1));
}

TEST(Rails, KeepANicThatTrainedToHalfOfItsLanes) {
  EXPECT_THAT(RailsOf(2, {Nic({kPix, kSys}), Nic({kSys, kPix}, 200)}), ElementsAre(0, 1));
}

TEST(Rails, AreNotForNicsFarFromEveryGpu) {
  EXPECT_THAT(RailsOf(1, {Nic({kPix}), Nic({kNode}), Nic({kSys}, 25, Transport::kRoce),
                          Nic({kNode}, 400, Transport::kEthernet)}),
              ElementsAre(0, -2, -3, -3));
}

TEST(Rails, AreNotForTheSlowOrOtherNicBehindAGpusSwitch) {
  EXPECT_THAT(RailsOf(2, {Nic({kPix, kSys}), Nic({kPix, kSys}, 200, Transport::kRoce), Nic({kSys, kPix}),
                          Nic({kSys, kPix}, 100)}),
              ElementsAre(0, -2, 1, -2));
}

TEST(Rails, FollowThePciOrderWithinANumaNodeWhereNoSwitchIsVisible) {
  const std::vector<RailNic> nics{Nic({kNode, kNode, kSys, kSys}), Nic({kNode, kNode, kSys, kSys}),
                                  Nic({kSys, kSys, kNode, kNode}), Nic({kSys, kSys, kNode, kNode})};
  EXPECT_THAT(RailsOf(4, nics), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(MeasureRails(4, nics).notes, ElementsAre(testing::HasSubstr("PCI order")));
}

TEST(Rails, SayHowFarTheGpuIsThatTheyAreNumberedBy) {
  EXPECT_EQ(MeasureRails(1, {Nic({kPix})}).reach, kPix);
  EXPECT_EQ(MeasureRails(2, {Nic({kPix, kSys}), Nic({kSys, kPxb})}).reach, kPxb);
  EXPECT_EQ(MeasureRails(1, {Nic({kPhb})}).reach, kPhb);
  EXPECT_EQ(MeasureRails(2, {Nic({kPhb, kSys}), Nic({kSys, kNode})}).reach, kNode);
  EXPECT_THAT(MeasureRails(2, {Nic({kPhb, kPhb}), Nic({kPhb, kPhb})}).notes,
              ElementsAre("no PCIe switch is visible, so rails follow the PCI order within a host bridge"));
}

TEST(Rails, AreUnknownWhereNothingTells) {
  const std::vector<RailNic> uneven{Nic({kNode, kNode}), Nic({kNode, kNode}), Nic({kNode, kNode})};
  EXPECT_THAT(RailsOf(2, uneven), ElementsAre(-1, -1, -1));
  EXPECT_THAT(RailsOf(2, {Nic({kSys, kSys}), Nic({kSys, kSys})}), ElementsAre(-1, -1));
}

TEST(Rails, DoNotApplyWithoutGpus) {
  const Rails rails = MeasureRails(0, {Nic({}), Nic({}, 10, Transport::kEthernet)});
  EXPECT_THAT(rails.notes, IsEmpty());
  EXPECT_EQ(rails.places[0].role, NicRole::kStorage);
  EXPECT_EQ(rails.places[1].role, NicRole::kManagement);
  EXPECT_EQ(rails.places[0].rail.missing(), Missing::kNotApplicable);
}

}  // namespace
}  // namespace heddle::nodeagent
