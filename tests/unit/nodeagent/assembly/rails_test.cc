#include "nodeagent/assembly/rails.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

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
  return {transport, gbps, gbps > 0, std::move(distance), {}, {}, {}};
}

// The same as a card of some kind, at an address of its own.
RailNic Card(const std::string& pci_id, const std::string& board, RailNic nic) {
  static int bus = 0;
  nic.pci = std::to_string(++bus) + ":00.0";
  nic.pci_id = pci_id;
  nic.board = board;
  return nic;
}
RailNic Cx7(std::vector<PciDistance> distance, int gbps = 400) {
  return Card("15b3:1021", "MT_0000000838", Nic(std::move(distance), gbps, Transport::kRoce));
}
RailNic Bf3(std::vector<PciDistance> distance, int gbps = 200) {
  return Card("15b3:a2dc", "MT_0000000884", Nic(std::move(distance), gbps, Transport::kRoce));
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

// It comes first in PCI order: as a rail it would take the first GPU's, and push the others on.
TEST(Rails, AreNotForTheSlowCardOfAnotherModelWhoseCableWasPulled) {
  for (const int gbps : {100, 0}) {
    EXPECT_THAT(RailsOf(2, {Bf3({kPix, kPix}, gbps), Cx7({kPix, kPix}), Cx7({kPix, kPix})}),
                ElementsAre(-2, 0, 1))
        << gbps;
  }
}

TEST(Rails, AreNotForCardsOfAnotherModelWithHalfOfTheRate) {
  const std::vector<PciDistance> first{kNode, kNode, kSys, kSys}, second{kSys, kSys, kNode, kNode};
  for (const int gbps : {200, 0}) {
    EXPECT_THAT(
        RailsOf(4, {Cx7(first), Cx7(first), Bf3(first, gbps), Cx7(second), Cx7(second), Bf3(second, gbps)}),
        ElementsAre(0, 1, -2, 2, 3, -2))
        << gbps;
  }
}

TEST(Rails, AreNotForAnotherBoardOfTheSameChipBesideThem) {
  for (const int gbps : {200, 0}) {
    EXPECT_THAT(RailsOf(1, {Card("15b3:1021", "MT_0000000838", Nic({kPix})),
                            Card("15b3:1021", "MT_0000000833", Nic({kPix}, gbps))}),
                ElementsAre(0, -2))
        << gbps;
  }
}

TEST(Rails, KeepTheOnlyCardOfAGpuThatWasReplacedByOneOfAnotherBoard) {
  for (const int gbps : {200, 0}) {
    EXPECT_THAT(RailsOf(2, {Card("15b3:1021", "MT_0000000838", Nic({kPix, kSys})),
                            Card("15b3:1021", "MT_0000000844", Nic({kSys, kPix}, gbps))}),
                ElementsAre(0, 1))
        << gbps;
  }
}

TEST(Rails, KeepTheOnlyCardOfAGpuThatIsOfAnotherModelAndUp) {
  EXPECT_THAT(RailsOf(2, {Cx7({kPix, kSys}), Bf3({kSys, kPix})}), ElementsAre(0, 1));
  EXPECT_THAT(RailsOf(2, {Cx7({kPix, kSys}), Bf3({kSys, kPix}, 0)}), ElementsAre(0, -2))
      << "nothing says what a card of another model that is down would carry";
}

// Nothing that is measured tells it from the rail beside it.
TEST(Rails, AreNotForWhatItsOwnerKeepsForStorage) {
  const auto given = [](RailNic nic) {
    nic.storage = true;
    return nic;
  };
  EXPECT_THAT(RailsOf(2, {given(Cx7({kPix, kSys})), Cx7({kPix, kSys}), Cx7({kSys, kPix})}),
              ElementsAre(-2, 0, 1));
  EXPECT_THAT(RailsOf(1, {given(Cx7({kPix}, 25)), given(Cx7({kPix}, 0))}), ElementsAre(-2, -2))
      << "whatever it carries";
  EXPECT_THAT(RailsOf(2, {given(Cx7({kPix, kSys}, 800)), Cx7({kPix, kSys}), Cx7({kSys, kPix}, 200)}),
              ElementsAre(-2, 0, 1))
      << "nor is any NIC compared with it";
  EXPECT_THAT(RailsOf(2, {given(Cx7({kPix, kPix})), Cx7({kNode, kSys}), Cx7({kSys, kNode})}),
              ElementsAre(-2, 0, 1))
      << "nor does its switch say how near a rail is";
}

TEST(Rails, AreForCardsThatAllHaveHalfOfWhatTheyCould) {
  EXPECT_THAT(RailsOf(2, {Cx7({kPix, kSys}, 200), Cx7({kSys, kPix}, 200)}), ElementsAre(0, 1));
}

// A bond of two ports of 200 Gb/s beside the same cards without a bond, and one that lost a cable.
TEST(Rails, KeepCardsOfOneModelWhateverTheirPortsAddUpTo) {
  EXPECT_THAT(RailsOf(2, {Cx7({kPix, kSys}), Cx7({kSys, kPix}, 200)}), ElementsAre(0, 1));
  RailNic lone = Cx7({kSys, kPix}, 200);  // of four planes
  lone.whole = false;
  EXPECT_THAT(RailsOf(2, {Cx7({kPix, kSys}, 800), lone}), ElementsAre(0, 1));
}

TEST(Rails, KeepAnEfaDeviceThatIsDown) {
  const auto efa = [](int gbps) { return Card("1d0f:efa2", "", Nic({kPix}, gbps, Transport::kEfa)); };
  EXPECT_THAT(RailsOf(1, {efa(100), efa(0), efa(100)}), ElementsAre(0, 0, 0));
}

TEST(Rails, KeepNicsWhoseModelNobodyTells) {
  EXPECT_THAT(RailsOf(1, {Nic({kPix}), Nic({kPix}, 0), Nic({kPix}, 200)}), ElementsAre(0, 0, 0));
}

TEST(Rails, AreOfTheModelWithTheMostCardsWhereNoLinkIsUp) {
  EXPECT_THAT(RailsOf(2, {Bf3({kPix, kPix}, 0), Cx7({kPix, kPix}, 0), Cx7({kPix, kPix}, 0)}),
              ElementsAre(-2, 0, 1));
  EXPECT_THAT(
      RailsOf(3, {Cx7({kPix, kSys, kSys}, 0), Cx7({kSys, kPix, kSys}, 0), Bf3({kSys, kSys, kPix}, 0)}),
      ElementsAre(0, 1, 2))
      << "the third GPU has no other";
  RailNic port = Bf3({kPix}, 0), other_port = port;
  other_port.pci.back() = '1';
  EXPECT_THAT(RailsOf(1, {Cx7({kPix}, 0), port, other_port}), ElementsAre(0, 0, 0))
      << "one card of each: nothing tells";
}

// The leaves of the rails are off, and storage of another model, or even transport, is up.
TEST(Rails, StayWhereAllOfTheirLinksAreDownAndStorageIsUp) {
  const std::vector<PciDistance> first{kNode, kNode, kSys, kSys}, second{kSys, kSys, kNode, kNode};
  for (const Transport transport : {Transport::kRoce, Transport::kInfiniBand}) {
    const auto rail = [transport](const std::vector<PciDistance>& distance) {
      RailNic nic = Cx7(distance, 0);
      nic.transport = transport;
      return nic;
    };
    EXPECT_THAT(RailsOf(4, {rail(first), rail(first), Bf3(first), rail(second), rail(second), Bf3(second)}),
                ElementsAre(0, 1, -2, 2, 3, -2));
  }
}

TEST(Rails, StayWithTheCardsOfAllGpusWhereStorageHasTwiceTheirRate) {
  const std::vector<PciDistance> first{kPix, kPix, kSys, kSys}, second{kSys, kSys, kPix, kPix};
  EXPECT_THAT(RailsOf(4, {Bf3(first, 400), Cx7(first, 200), Cx7(first, 200), Bf3(second, 400),
                          Cx7(second, 200), Cx7(second, 0)}),
              ElementsAre(-2, 0, 1, -2, 2, 3));
  EXPECT_THAT(RailsOf(2, {Bf3({kPix, kSys}, 400), Bf3({kSys, kPix}, 400), Cx7({kPix, kSys}, 200),
                          Cx7({kSys, kPix}, 200)}),
              ElementsAre(0, 1, -2, -2))
      << "as many of the faster as GPUs";
}

TEST(Rails, AreNotTakenFromNicsThatAreUpByUnusedCards) {
  EXPECT_THAT(RailsOf(1, {Cx7({kNode}), Bf3({kNode}, 0), Bf3({kNode}, 0)}), ElementsAre(0, -2, -2));
}

TEST(Rails, AreOfTheTransportThatMostCardsWouldCarry) {
  const std::vector<PciDistance> near{kPix, kPix, kPix};
  const auto rail = [&near](int gbps) { return Card("15b3:1021", "a", Nic(near, gbps)); };
  EXPECT_THAT(RailsOf(3, {rail(400), rail(0), rail(0), Bf3(near, 400), Bf3(near, 400)}),
              ElementsAre(0, 1, 2, -2, -2));
}

// Two GPUs and two NICs behind each switch, one NIC gone from the bus.
TEST(Rails, AreNotRenumberedWhereASwitchLostOneOfItsNics) {
  const auto behind = [](std::size_t block) {
    std::vector<PciDistance> distance(6, kSys);
    distance[2 * block] = distance[2 * block + 1] = kPix;
    return Nic(distance);
  };
  EXPECT_THAT(RailsOf(6, {behind(0), behind(0), behind(1), behind(2), behind(2)}),
              ElementsAre(0, 1, 2, 4, 5));
}

// GPU i and NIC i behind a switch of their own.
std::vector<RailNic> OnSwitchesOfTheirOwn(std::size_t gpus, const std::vector<std::size_t>& nics) {
  std::vector<RailNic> made;
  for (const std::size_t nic : nics) {
    std::vector<PciDistance> distance(gpus, kSys);
    distance[nic] = kPix;
    made.push_back(Nic(distance));
  }
  return made;
}

TEST(Rails, TellWhichGpuOfManyHasNoNicOfItsOwn) {
  EXPECT_THAT(MeasureRails(8, OnSwitchesOfTheirOwn(8, {0, 1, 2, 3, 4, 5, 6, 7})).bare, IsEmpty());
  EXPECT_THAT(MeasureRails(8, OnSwitchesOfTheirOwn(8, {0, 1, 2, 4, 5, 6, 7})).bare,
              ElementsAre(BareGpu{3, 3, false}));
}

TEST(Rails, TakeFewerNicsThanGpusForMadeSo) {
  EXPECT_THAT(MeasureRails(8, OnSwitchesOfTheirOwn(8, {0, 2, 4, 6})).bare, IsEmpty());
  EXPECT_THAT(MeasureRails(3, {Nic({kPix, kPix, kPix}), Nic({kPix, kPix, kPix})}).bare, IsEmpty());
  const auto shared = [](std::size_t block) {
    std::vector<PciDistance> distance(8, kSys);
    distance[2 * block] = distance[2 * block + 1] = kPix;
    return Nic(distance);
  };
  EXPECT_THAT(MeasureRails(8, {shared(0), shared(1), shared(2), shared(3)}).bare, IsEmpty());
  EXPECT_THAT(MeasureRails(8, {shared(0), shared(1), shared(2)}).bare,
              ElementsAre(BareGpu{6, 3, false}, BareGpu{7, 3, false}));
}

TEST(Rails, TellOfASilentNicAlsoWhereItIsHalfOfThem) {
  std::vector<RailNic> nics = OnSwitchesOfTheirOwn(2, {0, 1});
  nics[1].silent = true;
  nics[1].rate_gbps = 0;
  nics[1].whole = false;
  EXPECT_THAT(MeasureRails(2, nics).bare, ElementsAre(BareGpu{1, 1, true}));
}

TEST(Rails, TellThatAGpuHasFewerNicsThanTheOthers) {
  std::vector<RailNic> nics = OnSwitchesOfTheirOwn(4, {0, 0, 1, 1, 2, 2, 3, 3});
  EXPECT_THAT(MeasureRails(4, nics).bare, IsEmpty());
  nics[5].silent = true;
  nics[5].rate_gbps = 0;
  nics[5].whole = false;
  nics[5].pci = "0000:5e:00.0";
  EXPECT_THAT(MeasureRails(4, nics).bare, ElementsAre(BareGpu{2, 2, true, true, {"0000:5e:00.0"}}));
  nics.erase(nics.begin() + 5);
  EXPECT_THAT(MeasureRails(4, nics).bare, ElementsAre(BareGpu{2, 2, false, true, {}}));
  nics[4].silent = true;
  nics[4].rate_gbps = 0;
  nics[4].whole = false;
  EXPECT_THAT(MeasureRails(4, nics).bare, ElementsAre(BareGpu{2, 2, true, false, {}}))
      << "it has none at all";
}

TEST(Rails, TakeANicThatIsGivenAwayForOneThatIsThere) {
  std::vector<RailNic> nics;  // two GPUs and two NICs behind each of four switches
  for (std::size_t i = 0; i < 8; ++i) {
    std::vector<PciDistance> distance(8, kSys);
    distance[i] = distance[i ^ 1U] = kPix;
    nics.push_back(Nic(distance));
  }
  const auto take = [](RailNic& nic, bool given) {
    nic.silent = true;
    nic.given = given;
    nic.rate_gbps = 0;
    nic.whole = false;
    nic.pci = "0000:0c:00.0";
  };
  take(nics[0], true);
  EXPECT_THAT(MeasureRails(8, nics).bare, IsEmpty());
  take(nics[1], false);
  EXPECT_THAT(MeasureRails(8, nics).bare, ElementsAre(BareGpu{1, 1, true, false, {"0000:0c:00.0"}}));
  nics.erase(nics.begin() + 1);
  EXPECT_THAT(MeasureRails(8, nics).bare, ElementsAre(BareGpu{1, 1, false, false, {}}))
      << "the one that is nowhere is not silent";
  std::vector<RailNic> twice = OnSwitchesOfTheirOwn(4, {0, 0, 1, 1, 2, 2, 3, 3});
  take(twice[3], true);
  EXPECT_THAT(MeasureRails(4, twice).bare, IsEmpty());
}

TEST(Rails, TakeNicsThatOnlySomeGpusHaveForMadeSo) {
  EXPECT_THAT(MeasureRails(4, OnSwitchesOfTheirOwn(4, {0, 0, 1, 1, 2, 3})).bare, IsEmpty());
  std::vector<RailNic> nics = OnSwitchesOfTheirOwn(4, {0, 0, 1, 2, 3});
  nics[1].silent = true;
  nics[1].rate_gbps = 0;
  nics[1].whole = false;
  EXPECT_THAT(MeasureRails(4, nics).bare, IsEmpty()) << "each has as many as the others";
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
