#include "nodeagent/follow.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace heddle::nodeagent {
namespace {

using crds::Json;
using testing::HasSubstr;
using testing::StartsWith;
using topology::LinkState;

const base::WallTime kNow = *base::ParseTime("2026-11-22T01:46:30.25Z");

Sight Seen() {
  Sight sight;
  sight.seen.node = test::NodeNamed("node-1").Gpus(8).Rails(8, "su0-r");
  return sight;
}

std::vector<Json> Lines(const std::string& text) {
  std::vector<Json> lines;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(Json::parse(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return lines;
}

TEST(Follow, BeginsWithTheWholeObservation) {
  Follow text("node-1", FollowFormat::kText);
  const std::string first = text.Look(Seen(), kNow);
  EXPECT_THAT(first, HasSubstr("Node       node-1\n"));
  EXPECT_THAT(first, HasSubstr("\nPorts\n"));
  Follow json("node-1", FollowFormat::kJson);
  const auto lines = Lines(json.Look(Seen(), kNow));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["kind"], "observation");
  EXPECT_EQ(lines[0]["object"]["metadata"]["name"], "node-1");
}

TEST(Follow, SaysNothingWhileNothingChanges) {
  Follow follow("node-1", FollowFormat::kText);
  (void)follow.Look(Seen(), kNow);
  EXPECT_EQ(follow.Look(Seen(), kNow), "");
}

TEST(Follow, SaysEachChangeAsALineWithItsTime) {
  Follow follow("node-1", FollowFormat::kText);
  Sight sight = Seen();
  const std::string nic = sight.seen.node.nics[3].name;
  (void)follow.Look(sight, kNow);
  sight.seen.node.nics[3].ports[0].state = LinkState::kDown;
  sight.seen.problems = {"mlx5_9: its state cannot be read"};
  HealthChange change;
  change.sentence = nic + " port 1: Down";
  sight.changes = {change};
  const std::string text = follow.Look(sight, kNow);
  EXPECT_THAT(text, HasSubstr("2026-11-22T01:46:30.250000Z topology  " + nic + " port 1: Active -> Down\n"));
  EXPECT_THAT(text, HasSubstr("2026-11-22T01:46:30.250000Z health    " + nic + " port 1: Down\n"));
  EXPECT_THAT(text, HasSubstr("2026-11-22T01:46:30.250000Z condition LinksUp False (LinkDown): "));
  EXPECT_THAT(text, HasSubstr("2026-11-22T01:46:30.250000Z problem   mlx5_9: its state cannot be read\n"));
  sight.changes.clear();
  sight.seen.problems.clear();
  EXPECT_THAT(follow.Look(sight, kNow), HasSubstr("problem   over: mlx5_9: its state cannot be read\n"));
}

TEST(Follow, SaysAnXidOnceAlsoOneThatIsAProgramsFault) {
  Follow follow("node-1", FollowFormat::kText);
  Sight sight = Seen();
  GpuReading gpu;
  gpu.index = 3;
  gpu.pci = "0000:06:00.0";
  sight.gpus = {gpu};
  (void)follow.Look(sight, kNow);
  EXPECT_EQ(follow.Look(sight, kNow), "");
  sight.gpus[0].last_xid = 31;
  EXPECT_EQ(follow.Look(sight, kNow),
            "2026-11-22T01:46:30.250000Z health    GPU 3 (0000:06:00.0): the driver reports XID 31\n");
  EXPECT_EQ(follow.Look(sight, kNow), "");
  sight.gpus[0].last_xid = 79;
  EXPECT_THAT(follow.Look(sight, kNow), HasSubstr("XID 79, which ends the use of the GPU\n"));
}

TEST(Follow, SaysWhereCongestionBeginsAndEnds) {
  Follow follow("node-1", FollowFormat::kText);
  Sight sight = Seen();
  (void)follow.Look(sight, kNow);
  sight.seen.congestion[{"mlx5_3", 1}] = {kNow, "70000 CNPs handled in 1 min"};
  EXPECT_EQ(follow.Look(sight, kNow),
            "2026-11-22T01:46:30.250000Z health    mlx5_3 port 1: congested: 70000 CNPs handled in 1 min\n");
  sight.seen.congestion[{"mlx5_3", 1}].evidence += "; 61000 CNPs sent in 1 min";
  EXPECT_EQ(follow.Look(sight, kNow), "") << "it was congested before";
  sight.seen.congestion.clear();
  EXPECT_EQ(follow.Look(sight, kNow),
            "2026-11-22T01:46:30.250000Z health    mlx5_3 port 1: no longer congested\n");
}

TEST(Follow, WritesOneJsonObjectALineWhateverADeviceIsCalled) {
  Follow follow("node-1", FollowFormat::kJson);
  (void)follow.Look(Seen(), kNow);
  const auto lines = Lines(follow.Hear({{KernelEvent::Kind::kInterface, "eth1", "carrier lost", true},
                                        {KernelEvent::Kind::kLost, "", "\"\xff", true}},
                                       kNow));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(
      lines[0],
      (Json{{"time", "2026-11-22T01:46:30.250000Z"}, {"kind", "kernel"}, {"text", "eth1: carrier lost"}}));
}

}  // namespace
}  // namespace heddle::nodeagent
