#include "formats/ib_neighbours.h"

#include <gmock/gmock.h>

namespace heddle::formats {
namespace {

TEST(IbNeighbours, ReadsSwitchesAndPortsWithoutAnswer) {
  const auto found = ParseIbNeighbours(
      "# comment\n"
      "mlx5_0 1 34 switch 0xfc6a1c0300ab12cd \"leaf r0\" 7\n"
      "\n"
      "mlx5_1 3 0 none\n");
  EXPECT_THAT(found.problems, testing::IsEmpty());
  ASSERT_EQ(found.entries.size(), 2u);
  EXPECT_EQ(found.entries[0],
            (IbNeighbour{"mlx5_0", 1, 34, IbNodeKind::kSwitch, "0xfc6a1c0300ab12cd", "leaf r0", "7"}));
  EXPECT_EQ(found.entries[1].kind, IbNodeKind::kNone);
  EXPECT_EQ(found.entries[1].port, 3);
}

TEST(IbNeighbours, AreWrittenSoThatTheyReadTheSame) {
  const std::vector<IbNeighbour> entries{
      {"mlx5_0", 1, 34, IbNodeKind::kSwitch, "0xfc6a1c0300ab12cd", "leaf r0", "7"},
      {"mlx5_1", 2, 65535, IbNodeKind::kChannelAdapter, "0x1", "", "1"},
      {"mlx5_2", 12, 0, IbNodeKind::kRouter, "0x2", "router", "3"},
      {"mlx5_3", 1, 0, IbNodeKind::kNone, "", "", ""},
      {"mlx5_4", 1, 0, IbNodeKind::kNone, "", "the port is Down", ""}};
  const auto found = ParseIbNeighbours(FormatIbNeighbours(entries));
  EXPECT_EQ(found.entries, entries);
  EXPECT_THAT(found.problems, testing::IsEmpty());
}

TEST(IbNeighbours, StayOnTheirLineWhateverASwitchIsCalled) {
  const IbNeighbour hostile{"mlx5_0", 1, 34, IbNodeKind::kSwitch, "0x1", "a\" 9\nmlx5_1 1 0 none", "7"};
  const auto found = ParseIbNeighbours(FormatIbNeighbours({hostile}));
  ASSERT_EQ(found.entries.size(), 1u);
  EXPECT_EQ(found.entries[0].description, "a' 9?mlx5_1 1 0 none");
  EXPECT_EQ(found.entries[0].remote_port, "7");
}

TEST(IbNeighbours, KeepsTheOthersWhenALineIsBad) {
  const auto found =
      ParseIbNeighbours("mlx5_0 one 34 switch\nmlx5_1 1 0 none\nmlx5_2 1 9 switch 0x1 \"open 7");
  EXPECT_EQ(found.entries.size(), 1u);
  ASSERT_EQ(found.problems.size(), 2u);
  EXPECT_THAT(found.problems[0], testing::HasSubstr("line 1"));
  EXPECT_THAT(found.problems[1], testing::HasSubstr("line 3"));
}

TEST(IbNeighbours, BoundsItsComplaints) {
  std::string garbage;
  for (int i = 0; i < 10'000; ++i) garbage += "?\n";
  EXPECT_LE(ParseIbNeighbours(garbage).problems.size(), 20u);
}

TEST(IbSwitchName, IsTheGuidWhereTheDescriptionIsTheMakersDefault) {
  EXPECT_EQ(IbSwitchName("su0-r3", "0x1"), "su0-r3");
  EXPECT_EQ(IbSwitchName("SwitchIB Mellanox Technologies", "0x1"), "0x1");
  EXPECT_EQ(IbSwitchName("", "0x1"), "0x1");
}

}  // namespace
}  // namespace heddle::formats
