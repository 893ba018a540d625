#include "lossless/headroom.h"

#include <gtest/gtest.h>

#include "lossless/switch_profiles.h"

namespace heddle::lossless {
namespace {

Asic Spectrum() {
  return *FindSwitchProfile("spectrum/v1")->asic;
}
HeadroomOf Port(int speed_mbps, int metres) {
  return {speed_mbps, metres, 9238, 9022, 100};
}

struct Row {
  int speed_mbps;
  int metres;
  std::int64_t xoff_bytes;
};

// Computed by hand of the published formula, apart from this program.
TEST(Headroom, IsThatOfTheFormula) {
  constexpr Row kRows[] = {
      {25000, 3, 44032},     {25000, 40, 46080},    {25000, 300, 64512},   {100000, 3, 90112},
      {100000, 40, 100352},  {100000, 300, 174080}, {200000, 3, 99328},    {200000, 40, 119808},
      {200000, 300, 268288}, {400000, 3, 165888},   {400000, 40, 207872},  {400000, 300, 503808},
      {800000, 3, 168960},   {800000, 40, 252928},  {800000, 300, 844800},
  };
  for (const Row& row : kRows) {
    const auto headroom = HeadroomFor(Port(row.speed_mbps, row.metres), Spectrum());
    ASSERT_TRUE(headroom) << row.speed_mbps;
    EXPECT_EQ(headroom->xoff_bytes, row.xoff_bytes) << row.speed_mbps << " Mb/s, " << row.metres << " m";
    EXPECT_EQ(headroom->xon_bytes, 18432);
    EXPECT_EQ(headroom->size_bytes(), row.xoff_bytes + 18432);
  }
}

// Likewise, of the larger cells of Spectrum-4 and -5.
TEST(Headroom, OfLargerCellsIsLarger) {
  constexpr Row kRows[] = {
      {100000, 3, 116736}, {100000, 40, 130048}, {100000, 300, 229376},
      {400000, 3, 218112}, {400000, 40, 274432}, {400000, 300, 667648},
      {800000, 3, 222208}, {800000, 40, 334848}, {800000, 300, 1'122'304},
  };
  for (const Row& row : kRows) {
    const auto headroom =
        HeadroomFor(Port(row.speed_mbps, row.metres), *FindSwitchProfile("spectrum4/v1")->asic);
    ASSERT_TRUE(headroom) << row.speed_mbps;
    EXPECT_EQ(headroom->xoff_bytes, row.xoff_bytes) << row.speed_mbps << " Mb/s, " << row.metres << " m";
    EXPECT_EQ(headroom->xon_bytes, 19456);
  }
}

TEST(Headroom, CountsNoHalfFilledCellsWhereNoPacketIsSmall) {
  HeadroomOf port{100'000, 40, 9238, 1522, 100};
  const Asic cells_of_96{96, 819, 18'432};
  EXPECT_EQ(HeadroomFor(port, cells_of_96)->xoff_bytes, 81920);
  port.small_packet_percent = 0;
  EXPECT_EQ(HeadroomFor(port, cells_of_96)->xoff_bytes, 41984);
}

// SONiC's script counts the cable with 1,024 to the thousand, which is 2.4 % less: ours is never below.
TEST(Headroom, IsAtLeastWhatSonicComputes) {
  const auto ours = HeadroomFor({100'000, 300, 9100, 1024, 100}, Spectrum());
  EXPECT_GE(ours->xoff_bytes, 163840);
  EXPECT_LT(ours->xoff_bytes, 163840 * 103 / 100);
}

TEST(Headroom, GrowsWithEveryDelay) {
  const std::int64_t base = HeadroomFor(Port(400'000, 40), Spectrum())->xoff_bytes;
  EXPECT_GT(HeadroomFor(Port(400'000, 41), Spectrum())->xoff_bytes, base);
  EXPECT_GT(HeadroomFor({400'000, 40, 10'000, 9022, 100}, Spectrum())->xoff_bytes, base);
  EXPECT_GT(HeadroomFor({400'000, 40, 9238, 10'100, 100}, Spectrum())->xoff_bytes, base);
}

// Computed by hand, as above: of 400 Gb/s over 5 m it is 1,024 + 9,118 + 2,525 + 57,920 bytes.
TEST(Headroom, OfAnyChipIsAtLeastWhatArrivesInFullCells) {
  EXPECT_EQ(LeastXoff(100'000, 5, 9118), 36'864);
  EXPECT_EQ(LeastXoff(400'000, 5, 9118), 70'656);
  EXPECT_EQ(LeastXoff(400'000, 300, 9118), 220'160);
  EXPECT_FALSE(LeastXoff(1'600'000, 5, 9118));
  EXPECT_FALSE(LeastXoff(400'000, 100'001, 9118));
  EXPECT_FALSE(LeastXoff(400'000, 5, 63));
  for (const SwitchProfile& profile : SwitchProfiles()) {
    if (!profile.asic) continue;
    for (const int metres : {0, 3, 300, 100'000}) {
      EXPECT_GT(HeadroomFor({10'000, metres, 1540, 1540, 0}, *profile.asic)->xoff_bytes,
                *LeastXoff(10'000, metres, 1540));
    }
  }
}

TEST(Headroom, IsNotGuessed) {
  EXPECT_FALSE(ResponseQuanta(1'600'000));
  EXPECT_FALSE(HeadroomFor(Port(1'600'000, 3), Spectrum()));
  EXPECT_FALSE(HeadroomFor(Port(0, 3), Spectrum()));
  EXPECT_FALSE(HeadroomFor(Port(400'000, -1), Spectrum()));
  EXPECT_FALSE(HeadroomFor(Port(400'000, 100'001), Spectrum()));
  EXPECT_FALSE(HeadroomFor(Port(400'000, 3), Asic{}));
  EXPECT_FALSE(HeadroomFor({400'000, 3, 9238, 9022, 101}, Spectrum()));
  EXPECT_FALSE(HeadroomFor({400'000, 3, 1 << 30, 9022, 100}, Spectrum()));
}

}  // namespace
}  // namespace heddle::lossless
