#include "lossless/short_room.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "lossless/headroom.h"
#include "lossless/policy.h"
#include "lossless/switch_profiles.h"
#include "lossless/switch_render.h"

namespace heddle::lossless {
namespace {

constexpr int kSpeed = 400'000;  // for which 70,656 bytes are the least over 5 m

PortSettings Port(int xoff_bytes, std::optional<int> metres = 5, std::optional<int> mtu = 9100) {
  PortSettings port;
  port.pfc = PrioritySet{3};
  port.mtu = mtu;
  port.cable_metres = metres;
  port.buffer_bytes.emplace().fill(kNotSaid);
  (*port.buffer_bytes)[3] = xoff_bytes;
  return port;
}
std::optional<LosslessVerdict> Weight(const PortSettings& port, std::optional<int> speed = kSpeed) {
  const auto found = FindShortRoom(port, 3, speed);
  if (!found) return std::nullopt;
  return found->weight;
}

TEST(ShortRoom, IsUnprovedUnderFourFifthsOfTheLeastAndContradictsUnderHalfOfThatOverAMetre) {
  EXPECT_EQ(Weight(Port(70'656)), std::nullopt);
  EXPECT_EQ(Weight(Port(56'525)), std::nullopt);
  EXPECT_EQ(Weight(Port(56'524)), LosslessVerdict::kUnproved);
  // Of what arrives over a metre: how long the cable is somebody wrote.
  const int half = int(*LeastXoff(kSpeed, 1, 9100 + kFrameAround) / 2);
  EXPECT_LT(half, 70'656 / 2);
  EXPECT_EQ(Weight(Port(half + 1)), LosslessVerdict::kUnproved);
  EXPECT_EQ(Weight(Port(half - 1)), LosslessVerdict::kContradiction);
  const PortSettings port = Port(20'000);
  const auto found = FindShortRoom(port, 3, kSpeed);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (ShortRoom{LosslessVerdict::kContradiction, 3, 20'000, 70'656}));
  EXPECT_EQ(ValueOf(*found), "20000 of 70656 bytes");
  EXPECT_EQ(
      SentenceOf(*found, port, kSpeed),
      "after a pause for priority 3 there is room for 20000 bytes, and at least 70656 may still arrive at "
      "400 Gb/s over 5 m with an MTU of 9100");
}

TEST(ShortRoom, GrowsWithTheCableTheSpeedAndTheMtu) {
  EXPECT_EQ(Weight(Port(57'000)), std::nullopt);
  EXPECT_EQ(Weight(Port(57'000, 40)), LosslessVerdict::kUnproved);
  EXPECT_EQ(Weight(Port(57'000, 300)), LosslessVerdict::kUnproved)
      << "it may be shorter than CABLE_LENGTH says";
  EXPECT_EQ(Weight(Port(20'000), 25'000), std::nullopt);
  EXPECT_EQ(Weight(Port(14'000, 5, 1500), 25'000), std::nullopt);
  EXPECT_EQ(Weight(Port(12'000, 5, 9100), 25'000), LosslessVerdict::kUnproved);
}

TEST(ShortRoom, IsNotJudgedWhereAnythingOfItIsNotKnown) {
  ASSERT_TRUE(Weight(Port(20'000)));
  EXPECT_EQ(Weight(Port(20'000), std::nullopt), std::nullopt);
  EXPECT_EQ(Weight(Port(20'000), 1'600'000), std::nullopt) << "no response time is published for it";
  EXPECT_EQ(Weight(Port(20'000, std::nullopt)), std::nullopt);
  EXPECT_EQ(Weight(Port(20'000, 0)), std::nullopt) << "SONiC's length of an unused port";
  EXPECT_EQ(Weight(Port(20'000, 5, std::nullopt)), std::nullopt);
  EXPECT_EQ(Weight(Port(kNotSaid)), std::nullopt) << "the switch sizes it itself";
  EXPECT_EQ(Weight(Port(0)), std::nullopt) << "told by the linter";
  PortSettings none = Port(20'000);
  none.buffer_bytes.reset();
  EXPECT_EQ(Weight(none), std::nullopt);
}

TEST(UnsaidBuffers, AreWhatNeitherARowNorTheSwitchItselfSaysOfAPriority) {
  PortSettings port;
  const auto unsaid = [&port] {
    std::string settings;
    for (const Unsaid& one : FindUnsaidBuffers(port, 3, "leaf-3 Ethernet0")) {
      EXPECT_NE(one.sentence.find("leaf-3 Ethernet0"), std::string::npos) << one.sentence;
      EXPECT_FALSE(one.next.empty());
      settings += std::string(SettingName(one.setting)) + " ";
    }
    return settings;
  };
  EXPECT_EQ(unsaid(), "lossyQueues bufferBytes ");
  port.lossy_queues = PrioritySet{0, 4};
  port.lossless_queues = port.sized_by_switch = PrioritySet{4};
  port.buffer_bytes.emplace().fill(kNotSaid);
  (*port.buffer_bytes)[4] = 100'000;
  EXPECT_EQ(unsaid(), "lossyQueues bufferBytes ") << "of another priority";
  port.lossy_queues = PrioritySet{3};
  EXPECT_EQ(unsaid(), "bufferBytes ") << "that it is lossy is known";
  port.lossy_queues.reset();
  port.lossless_queues = PrioritySet{3};
  (*port.buffer_bytes)[3] = 0;
  EXPECT_EQ(unsaid(), "") << "that there is no room is known";
  (*port.buffer_bytes)[3] = kNotSaid;
  port.sized_by_switch = PrioritySet{3};
  EXPECT_EQ(unsaid(), "");
}

// Rows of 5, 40 and 300 m of what NVIDIA ships for Spectrum-3 and -4 (sonic-buildimage, pg_profile_lookup.ini of
// Mellanox-SN4280-O28 and Mellanox-SN5610N-C256S2), sized for packets that fill their cells.
TEST(ShortRoom, IsNotFoundInTheTablesThatNvidiaShips) {
  struct Row {
    int speed_mbps, metres, xoff_bytes;
  };
  constexpr Row kRows[] = {
      {10'000, 5, 16384},   {25'000, 5, 17408},    {50'000, 5, 21504},     {100'000, 5, 37888},
      {200'000, 5, 43008},  {400'000, 5, 73728},   {100'000, 40, 43008},   {200'000, 40, 51200},
      {400'000, 40, 91136}, {100'000, 300, 75776}, {200'000, 300, 118784}, {400'000, 300, 225280},
      {800'000, 5, 95232},  {800'000, 40, 132096}, {800'000, 300, 411648}, {10'000, 300, 19456},
  };
  for (const Row& row : kRows)
    EXPECT_EQ(Weight(Port(row.xoff_bytes, row.metres), row.speed_mbps), std::nullopt)
        << row.speed_mbps << " Mb/s, " << row.metres << " m";
}

TEST(ShortRoom, IsNeverWhatWeRenderOurselves) {
  const ResolvedPolicy policy = *Resolve({});
  int judged = 0;
  for (const SwitchProfile& profile : SwitchProfiles()) {
    for (const int speed : {10'000, 25'000, 40'000, 50'000, 100'000, 200'000, 400'000, 800'000}) {
      for (const int metres : {1, 3, 5, 40, 300, 2'000, 100'000}) {
        const PortSettings port =
            RenderSwitchPort(policy, profile, {PortFacing::kFabric, speed, metres}).settings;
        EXPECT_EQ(port.buffer_bytes.has_value(), profile.asic.has_value()) << profile.name;
        for (const int priority : port.pfc->Members()) {
          EXPECT_EQ(FindShortRoom(port, priority, speed), std::nullopt)
              << profile.name << " " << speed << " Mb/s, " << metres << " m";
          judged += port.buffer_bytes ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(judged, 0);
}

}  // namespace
}  // namespace heddle::lossless
