#include "topology/suspects.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <span>

#include "base/random.h"
#include "tests/support/seeds.h"
#include "tests/unit/topology/rail_bed.h"

namespace heddle::topology {
namespace {

using test::RailBed;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Sighting Flaps(bool by_far_end = true) {
  return {Symptom::kFlap, by_far_end, "41 flaps in 10 min"};
}
Sighting Errors(bool by_far_end) {
  return {Symptom::kErrors, by_far_end, "812 CRC errors in 1 min"};
}
Sighting Stopped(bool by_far_end) {
  return {Symptom::kPauseStorm, by_far_end, "stopped for 80 % of 30 s"};
}
Sighting Loss() {
  return {Symptom::kLoss, false, "70 acknowledgement time-outs in 1 min"};
}
Sighting Drops() {
  return {Symptom::kDrops, true, "9 packets dropped in 10 min"};
}

std::vector<std::string> Names(const std::vector<Suspect>& suspects) {
  std::vector<std::string> names;
  for (const Suspect& suspect : suspects) names.push_back(suspect.name);
  return names;
}

TEST(Suspects, SayThatGangsAreSlowedOnlyWherePacketsWereLost) {
  EXPECT_EQ(GangsText(0, Symptom::kLoss), "");
  EXPECT_EQ(GangsText(1, Symptom::kFlap), ", 1 gang crosses it");
  EXPECT_EQ(GangsText(2, Symptom::kErrors), ", 2 gangs cross it");
  EXPECT_EQ(GangsText(2, Symptom::kDrops), ", 2 gangs cross it");
  EXPECT_EQ(GangsText(2, Symptom::kLoss), ", 2 gangs slowed");
}

TEST(Suspects, SayOneCableInOneSentence) {
  const std::vector<WatchedLink> links{
      {"gpu-016", "mlx5_3:1", "su1-r3", "Ethernet44", false, {}},
      {"gpu-017", "mlx5_3:1", "su1-r3", "Ethernet48", false, {Flaps()}},
  };
  const std::vector<GangOnLinks> gangs{{"a/1", {1}}, {"a/2", {0, 1}}, {"a/3", {1}}, {"a/4", {0}}};
  const auto suspects = RankSuspects(links, gangs);
  ASSERT_THAT(suspects, SizeIs(1));
  EXPECT_EQ(
      SentenceOf(suspects[0]),
      "leaf su1-r3 port Ethernet48 <-> gpu-017 mlx5_3:1: 41 flaps in 10 min, 3 gangs cross it; drain or "
      "reseat it");
  EXPECT_EQ(suspects[0].kind, SuspectKind::kCable);
  EXPECT_EQ(suspects[0].node, "gpu-017");
  EXPECT_EQ(suspects[0].port, "mlx5_3:1");
  EXPECT_EQ(suspects[0].leaf, "su1-r3");
  EXPECT_EQ(suspects[0].leaf_port, "Ethernet48");
  EXPECT_EQ(suspects[0].links, 1);
}

TEST(Suspects, SayNothingOfSoundLinks) {
  RailBed bed(2, 4, 8);
  bed.AddGang("a", {0, 1, 2});
  EXPECT_THAT(bed.Rank(), IsEmpty());
  EXPECT_THAT(RankSuspects({}, {}), IsEmpty());
}

TEST(Suspects, SayFromWhichEndsItWasSeen) {
  RailBed bed(1, 4, 2);
  bed.On(0, 0).sightings = {Flaps(true), Flaps(false)};
  EXPECT_EQ(bed.Rank()[0].evidence, "41 flaps in 10 min, seen from both ends");
  bed.On(0, 0).sightings = {Flaps(true), {Symptom::kFlap, false, "82 link changes in 10 min"}};
  EXPECT_EQ(bed.Rank()[0].evidence,
            "41 flaps in 10 min, seen from both ends (gpu-000 mlx5_0:1: 82 link changes in 10 min)");
  bed.On(0, 0).sightings = {Errors(false)};
  EXPECT_EQ(bed.Rank()[0].evidence, "812 CRC errors in 1 min, received by gpu-000 mlx5_0:1 alone");
  EXPECT_EQ(bed.Rank()[0].next,
            "clean or reseat it; then replace the transceiver of leaf su0-r0 port Ethernet0");
  bed.On(0, 0).sightings = {Errors(true)};
  EXPECT_THAT(bed.Rank()[0].next, HasSubstr("the transceiver of gpu-000 mlx5_0:1"));
  bed.On(0, 0).sightings = {Errors(true), Errors(false)};
  EXPECT_EQ(bed.Rank()[0].next, "clean, reseat or replace it");
  const int both = bed.Rank()[0].score;
  bed.On(0, 0).sightings = {Errors(true)};
  EXPECT_LT(bed.Rank()[0].score, both);
}

TEST(Suspects, TakeTheLeafWhereItsLinksFailTogether) {
  RailBed bed(2, 16, 8);
  for (int host = 0; host < 14; ++host) bed.On(host, 3).sightings = {Flaps()};
  bed.AddGang("a", {0, 1, 2, 3});
  bed.AddGang("b", {17, 18});
  const auto suspects = bed.Rank();
  ASSERT_THAT(suspects, SizeIs(1)) << "what it explains is no suspect of its own";
  EXPECT_EQ(suspects[0].name, "leaf su0-r3");
  EXPECT_EQ(suspects[0].kind, SuspectKind::kLeaf);
  EXPECT_EQ(suspects[0].leaf, "su0-r3");
  EXPECT_THAT(suspects[0].node, IsEmpty());
  EXPECT_EQ(suspects[0].links, 14);
  EXPECT_EQ(suspects[0].gangs, 1);
  EXPECT_EQ(suspects[0].evidence, "14 of its 16 links flap; port Ethernet0: 41 flaps in 10 min");
}

TEST(Suspects, LetSoundLinksSpeakForALeaf) {
  RailBed bed(1, 16, 1);
  for (int host = 0; host < 7; ++host) bed.On(host, 0).sightings = {Errors(true)};
  EXPECT_THAT(bed.Rank(), AllOf(SizeIs(7), Each(Field(&Suspect::kind, SuspectKind::kCable))));
  bed.On(7, 0).sightings = {Errors(true)};
  EXPECT_THAT(Names(bed.Rank()), ElementsAre("leaf su0-r0")) << "half of its links";
  RailBed two(1, 2, 1);
  for (int host = 0; host < 2; ++host) two.On(host, 0).sightings = {Flaps()};
  EXPECT_THAT(two.Rank(), SizeIs(2)) << "of two links it takes no leaf";
}

TEST(Suspects, TakeTheHostWhereItsLinksFailTogether) {
  RailBed bed(1, 8, 8);
  for (int rail = 0; rail < 5; ++rail) bed.On(2, rail).sightings = {rail == 0 ? Flaps() : Errors(false)};
  bed.On(6, 3).sightings = {Errors(false)};
  const auto suspects = bed.Rank();
  EXPECT_THAT(Names(suspects),
              ElementsAre("host gpu-002", "leaf su0-r3 port Ethernet24 <-> gpu-006 mlx5_3:1"));
  EXPECT_EQ(suspects[0].kind, SuspectKind::kHost);
  EXPECT_EQ(suspects[0].node, "gpu-002");
  EXPECT_EQ(suspects[0].symptom, Symptom::kFlap) << "the gravest";
  EXPECT_EQ(suspects[0].evidence, "1 of its 8 links flap, 4 have errors; mlx5_0:1: 41 flaps in 10 min");
}

TEST(Suspects, TakeTwoLinksThatFailInTwoWaysForTwoFaults) {
  RailBed bed(1, 8, 4);
  bed.On(2, 0).sightings = {Flaps()};
  bed.On(2, 1).sightings = {Errors(true)};
  EXPECT_THAT(bed.Rank(), AllOf(SizeIs(2), Each(Field(&Suspect::kind, SuspectKind::kCable))));
  bed.On(2, 1).sightings = {Flaps()};
  EXPECT_THAT(Names(bed.Rank()), ElementsAre("host gpu-002"));
}

TEST(Suspects, BlameNoHostForTwoLinksToOneLeaf) {
  std::vector<WatchedLink> links;
  for (int port = 0; port < 2; ++port)
    links.push_back(
        {"gpu-0", fmt::format("mlx5_{}:1", port), "tor", fmt::format("E{}", port), false, {Flaps()}});
  for (int host = 1; host < 8; ++host)
    links.push_back({fmt::format("gpu-{}", host), "mlx5_0:1", "tor", "", false, {}});
  EXPECT_THAT(RankSuspects(links, {}), AllOf(SizeIs(2), Each(Field(&Suspect::kind, SuspectKind::kCable))));
}

TEST(Suspects, LetWhoExplainsMoreExplainIt) {
  // Four hosts on four leaves: all of one leaf's links, and one host's other ones.
  RailBed bed(1, 4, 4);
  for (int host = 0; host < 4; ++host) bed.On(host, 1).sightings = {Flaps()};
  for (int rail = 0; rail < 4; ++rail) bed.On(2, rail).sightings = {Flaps()};
  EXPECT_THAT(Names(bed.Rank()), ElementsAre("leaf su0-r1", "host gpu-002"));
  // Where hosts and leaves explain alike, the fewer things to look at are leaves.
  for (WatchedLink& link : bed.links) link.sightings = {Flaps()};
  EXPECT_THAT(Names(bed.Rank()), ElementsAre("leaf su0-r0", "leaf su0-r1", "leaf su0-r2", "leaf su0-r3"));
}

TEST(Suspects, TakeTheSpineWhereItsLinksFailTogether) {
  RailBed bed(4, 4, 2);
  bed.AddSpines(2);
  for (int leaf = 0; leaf < 8; ++leaf) bed.Up(leaf, 1).sightings = {Errors(true)};
  bed.AddGang("in one unit", {0, 1});
  bed.AddGang("over two units", {0, 4});
  const auto suspects = bed.Rank();
  EXPECT_THAT(Names(suspects), ElementsAre("spine spine-1"));
  EXPECT_EQ(suspects[0].kind, SuspectKind::kSpine);
  EXPECT_EQ(suspects[0].gangs, 1) << "who stays below his leaf does not cross it";
}

TEST(Suspects, NameACableBetweenSwitches) {
  RailBed bed(2, 4, 2);
  bed.AddSpines(2);
  bed.Up(1, 0).sightings = {Flaps(false)};
  EXPECT_THAT(Names(bed.Rank()),
              ElementsAre("spine spine-0 port Ethernet4 <-> leaf su0-r1 port Ethernet256"));
}

TEST(Storms, ComeFromTheHostThatStopsItsLeaf) {
  RailBed bed(2, 8, 4);
  bed.AddSpines(1);
  bed.On(5, 2).sightings = {Stopped(true)};
  for (int host = 0; host < 8; ++host) {
    if (host != 5) bed.On(host, 2).sightings = {Stopped(false)};
  }
  bed.Up(2, 0).sightings = {Stopped(true)};    // the leaf stops the spine
  bed.Up(6, 0).sightings = {Stopped(false)};   // which stops the leaf of the other unit
  bed.On(12, 2).sightings = {Stopped(false)};  // which stops a host there
  bed.AddGang("beside it", {0, 1});
  bed.AddGang("of the other unit", {12, 13});
  bed.AddGang("elsewhere", {14, 15});
  const auto suspects = bed.Rank();
  ASSERT_THAT(suspects, SizeIs(1)) << "victims are no suspects";
  EXPECT_EQ(suspects[0].name, "leaf su0-r2 port Ethernet20 <-> gpu-005 mlx5_2:1");
  EXPECT_EQ(suspects[0].symptom, Symptom::kPauseStorm);
  EXPECT_EQ(suspects[0].links, 11);
  EXPECT_EQ(suspects[0].gangs, 2);
  EXPECT_EQ(suspects[0].evidence,
            "stopped for 80 % of 30 s, sent by gpu-005 mlx5_2:1; 10 more links stopped by it");
  EXPECT_THAT(suspects[0].next, HasSubstr("drain gpu-005"));
}

TEST(Storms, ComeFromAHostWhoseNicsAllStopTheirLeaves) {
  RailBed bed(1, 8, 8);
  for (int rail = 0; rail < 8; ++rail) {
    for (int host = 0; host < 8; ++host) bed.On(host, rail).sightings = {Stopped(host == 3)};
  }
  const auto suspects = bed.Rank();
  EXPECT_THAT(Names(suspects), ElementsAre("host gpu-003"));
  EXPECT_EQ(suspects[0].links, 64);
  EXPECT_THAT(suspects[0].evidence, HasSubstr("8 of its 8 links are stopped by its pause"));
}

TEST(Storms, ComeFromASwitchThatNothingStops) {
  RailBed bed(1, 8, 2);
  bed.AddSpines(1);
  for (int host = 0; host < 3; ++host) bed.On(host, 1).sightings = {Stopped(false)};
  const auto suspects = bed.Rank();
  EXPECT_THAT(Names(suspects), ElementsAre("leaf su0-r1")) << "though five of its links are sound";
  EXPECT_EQ(suspects[0].links, 3);
  bed.On(0, 1).sightings = bed.On(1, 1).sightings = {};
  EXPECT_THAT(Names(bed.Rank()), ElementsAre("leaf su0-r1 port Ethernet8 <-> gpu-002 mlx5_1:1"));
}

TEST(Storms, AreFollowedByGangsWhereNobodyWatchesTheSpines) {
  RailBed bed(2, 4, 2);
  bed.On(1, 0).sightings = {Stopped(true)};
  for (const int host : {5, 6}) bed.On(host, 0).sightings = {Stopped(false)};
  EXPECT_THAT(bed.Rank(), SizeIs(2)) << "nothing ties them together";
  bed.AddGang("over both", {1, 5, 6});
  const auto suspects = bed.Rank();
  EXPECT_THAT(Names(suspects), ElementsAre("leaf su0-r0 port Ethernet4 <-> gpu-001 mlx5_0:1"));
  EXPECT_EQ(suspects[0].links, 3);
}

TEST(Storms, InACircleHaveNoOtherSource) {
  RailBed bed(2, 2, 1);
  bed.AddSpines(2);
  // leaf 0 stops spine 0, which stops leaf 1, which stops spine 1, which stops leaf 0.
  bed.Up(0, 0).sightings = {Stopped(true)};
  bed.Up(1, 0).sightings = {Stopped(false)};
  bed.Up(1, 1).sightings = {Stopped(true)};
  bed.Up(0, 1).sightings = {Stopped(false)};
  EXPECT_THAT(bed.Rank(), AllOf(SizeIs(4), Each(Field(&Suspect::symptom, Symptom::kPauseStorm))));
}

TEST(Storms, DoubtAHostThatIsStoppedItself) {
  RailBed bed(1, 8, 1);
  bed.On(3, 0).sightings = {Stopped(true), Stopped(false)};
  bed.On(4, 0).sightings = {Stopped(true)};
  const auto suspects = bed.Rank();
  ASSERT_THAT(suspects, SizeIs(2));
  EXPECT_EQ(suspects[0].node, "gpu-004");
  EXPECT_GT(suspects[0].score, suspects[1].score);
}

TEST(Losses, AreExplainedByWhatTheirGangsCross) {
  RailBed bed(2, 8, 8);
  bed.AddGang("a", {0, 1, 2, 3});
  bed.AddGang("b", {9, 10, 11, 12});
  bed.On(1, 4).sightings = {Errors(true), Loss()};
  for (const int host : {0, 2, 3}) bed.On(host, 4).sightings = {Loss()};
  EXPECT_THAT(Names(bed.Rank()), ElementsAre("leaf su0-r4 port Ethernet4 <-> gpu-001 mlx5_4:1"));
  EXPECT_EQ(bed.Rank()[0].gangs, 1);
}

TEST(Losses, PointAtTheLeafThatOnlyTheyShare) {
  RailBed bed(2, 8, 8);
  bed.AddGang("a", {0, 1, 2, 3});
  bed.AddGang("b", {4, 5, 6});
  for (int host = 0; host < 6; ++host) bed.On(host, 4).sightings = {Loss()};
  const auto suspects = bed.Rank();
  ASSERT_THAT(Names(suspects), ElementsAre("leaf su0-r4"));
  EXPECT_EQ(suspects[0].symptom, Symptom::kLoss);
  EXPECT_EQ(suspects[0].gangs, 2);
  EXPECT_LT(suspects[0].score, 400) << "below all that has a cause";
  EXPECT_THAT(suspects[0].evidence, HasSubstr("6 of 7 links that work over it lose packets"));
}

TEST(Losses, PointAtNobodyWhereAllShareAll) {
  RailBed bed(1, 8, 4);
  bed.AddSpines(2);
  bed.AddGang("a", {0, 1, 2, 3, 4, 5, 6, 7});
  for (int host = 0; host < 8; ++host) {
    for (int rail = 0; rail < 4; ++rail) bed.On(host, rail).sightings = {Loss()};
  }
  EXPECT_THAT(bed.Rank(), IsEmpty());
}

TEST(Losses, PointAtTheSpineThatOnlyTheirLeavesShare) {
  // Two rails, each with a spine of its own over two units.
  RailBed bed(2, 4, 2);
  bed.AddSpines(2);
  std::erase_if(bed.links, [](const WatchedLink& link) {
    return link.between_switches && link.node.back() != link.leaf.back();
  });
  bed.AddGang("a", {0, 1, 4, 5});
  for (const int host : {0, 1, 4, 5}) bed.On(host, 1).sightings = {Loss()};
  EXPECT_THAT(Names(bed.Rank()), ElementsAre("spine spine-1"));
}

TEST(Losses, DoNotChooseBetweenSpinesThatAreAlike) {
  RailBed bed(4, 4, 1);
  bed.AddSpines(2);
  std::erase_if(bed.links,
                [](const WatchedLink& link) { return link.between_switches && link.node > "su1-r0"; });
  bed.AddGang("a", {0, 4, 8, 12});
  for (const int host : {0, 4}) bed.On(host, 0).sightings = {Loss()};
  EXPECT_THAT(bed.Rank(), IsEmpty());
}

TEST(Losses, OfAllPeersPointAtTheHostThatSaysNothing) {
  RailBed bed(2, 8, 4);
  bed.AddGang("a", {0, 1, 2, 3, 4});
  bed.AddGang("sound", {8, 9, 10});
  for (const int host : {0, 1, 2, 4}) {
    for (int rail = 0; rail < 4; ++rail) bed.On(host, rail).sightings = {Loss()};
  }
  const auto suspects = bed.Rank();
  ASSERT_THAT(Names(suspects), ElementsAre("host gpu-003"));
  EXPECT_EQ(suspects[0].evidence, "all 4 hosts that work with it lose packets, and it says nothing");
  EXPECT_EQ(suspects[0].next, "see whether it is up");
  bed.AddGang("its other work", {3, 5, 6, 7});
  EXPECT_THAT(Names(bed.Rank()), Not(Contains("host gpu-003"))) << "those work with it and lose nothing";
}

TEST(Losses, OfOneQueueAreThatPorts) {
  RailBed bed(1, 8, 2);
  bed.AddGang("a", {0, 1, 2});
  bed.On(1, 0).sightings = {Drops()};
  const auto suspects = bed.Rank();
  ASSERT_THAT(Names(suspects), ElementsAre("leaf su0-r0 port Ethernet4 <-> gpu-001 mlx5_0:1"));
  EXPECT_EQ(suspects[0].symptom, Symptom::kDrops);
  EXPECT_EQ(suspects[0].next, "compare the lossless settings of its ends");
  bed.On(1, 0).sightings = {Loss()};
  EXPECT_THAT(Names(bed.Rank()), ElementsAre("leaf su0-r0 port Ethernet4 <-> gpu-001 mlx5_0:1"))
      << "alone in its gang";
  bed.On(2, 0).sightings = {Loss()};
  EXPECT_THAT(bed.Rank(), IsEmpty()) << "between two that lose there is more than two cables";
}

TEST(SuspectRanks, GoByGravityThenGangs) {
  RailBed bed(1, 16, 1);
  bed.On(0, 0).sightings = {Drops()};
  bed.On(1, 0).sightings = {Errors(true), Errors(false)};
  bed.On(2, 0).sightings = {Stopped(true)};
  bed.On(3, 0).sightings = {Flaps()};
  for (int i = 0; i < 40; ++i) bed.AddGang(fmt::format("errors-{}", i), {1});
  const auto suspects = bed.Rank();
  std::vector<Symptom> symptoms;
  for (const Suspect& suspect : suspects) symptoms.push_back(suspect.symptom);
  EXPECT_THAT(symptoms, ElementsAre(Symptom::kFlap, Symptom::kPauseStorm, Symptom::kErrors, Symptom::kDrops));
  for (const Suspect& suspect : suspects) {
    EXPECT_GE(suspect.score, 1);
    EXPECT_LE(suspect.score, 1000);
  }
  bed.On(4, 0).sightings = {Flaps()};
  for (int i = 0; i < 3; ++i) bed.AddGang(fmt::format("flaps-{}", i), {4});
  bed.AddGang("one", {3});
  EXPECT_EQ(bed.Rank()[0].node, "gpu-004");
  EXPECT_EQ(bed.Rank()[1].node, "gpu-003");
}

TEST(SuspectRanks, AreAsManyAsAreWanted) {
  RailBed bed(1, 64, 1);
  for (int host = 0; host < 24; ++host) bed.On(host, 0).sightings = {Flaps()};
  EXPECT_THAT(bed.Rank(), SizeIs(kMaxSuspects));
  EXPECT_THAT(RankSuspects(bed.links, bed.gangs, 3), SizeIs(3));
  EXPECT_THAT(RankSuspects(bed.links, bed.gangs, 0), IsEmpty());
  EXPECT_THAT(RankSuspects(bed.links, bed.gangs, 100), SizeIs(24));
  EXPECT_EQ(bed.Rank()[0].name, "leaf su0-r0 port Ethernet0 <-> gpu-000 mlx5_0:1") << "equal ones by name";
}

TEST(SuspectInput, MayBeGarbage) {
  const Sighting odd{static_cast<Symptom>(77), true, "what is this"};
  const std::vector<WatchedLink> links{
      {"", "", "", "", false, {Flaps()}},
      {"", "mlx5_0:1", "leaf", "", false, {Flaps(), odd}},
      {"gpu-0", "", "", "", false, {Errors(false), {Symptom::kErrors, true, ""}}},
      {"gpu-1", "mlx5_0:1", "leaf", "E1", false, {Flaps()}},
      {"gpu-1", "mlx5_0:1", "leaf", "E1", false, {Flaps(false)}},
      {"loop", "E1", "loop", "E2", true, {Stopped(true), Stopped(false)}},
      {"gpu-2", "", "", "E7", false, {Stopped(true)}},
  };
  const std::vector<GangOnLinks> gangs{{"a", {3, 4, 99, std::size_t(-1), 3}}, {"", {}}, {"b", {0}}};
  const auto suspects = RankSuspects(links, gangs);
  EXPECT_THAT(Names(suspects), Contains("leaf leaf"));
  const auto cable =
      RankSuspects(std::span(links).subspan(3, 2), std::vector<GangOnLinks>{{"a", {0, 1, 99}}});
  ASSERT_THAT(cable, SizeIs(1)) << "one cable, said twice";
  EXPECT_EQ(cable[0].evidence, "41 flaps in 10 min, seen from both ends");
  EXPECT_EQ(cable[0].gangs, 1);
}

TEST(SuspectInput, MayBeAnyGarbageInAnyOrder) {
  for (const std::uint64_t seed : test::Seeds(300)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const auto below = [&](int bound) { return int(random.Below(std::uint64_t(bound))); };
    std::vector<WatchedLink> links;
    for (int i = below(60); i > 0; --i) {
      WatchedLink link;
      const auto name = [&](const char* of, int most) {
        const int number = below(most);
        return number == 0 ? std::string() : fmt::format("{}{}", of, number);
      };
      link.between_switches = below(4) == 0;
      link.node = name(link.between_switches ? "l" : "h", 8);
      link.port = name("p", 4);
      link.leaf = name("l", 6);
      link.leaf_port = name("q", 20);
      for (int s = below(4) * below(2); s > 0; --s)
        link.sightings.push_back({static_cast<Symptom>(below(6)), below(2) == 0, name("e", 5)});
      links.push_back(link);
    }
    std::vector<GangOnLinks> gangs;
    for (int i = below(8); i > 0; --i) {
      GangOnLinks gang{fmt::format("g{}", i), {}};
      for (int l = below(12); l > 0; --l) gang.links.push_back(std::size_t(below(64)));
      gangs.push_back(gang);
    }
    const auto suspects = RankSuspects(links, gangs);
    std::set<std::string> names;
    for (const Suspect& suspect : suspects) {
      EXPECT_FALSE(suspect.name.empty());
      EXPECT_FALSE(suspect.evidence.empty());
      EXPECT_FALSE(suspect.next.empty());
      EXPECT_GE(suspect.score, 1);
      EXPECT_LE(suspect.score, 1000);
      EXPECT_GE(suspect.links, 1);
      EXPECT_LE(suspect.gangs, int(gangs.size()));
      EXPECT_TRUE(names.insert(suspect.name).second) << suspect.name << " twice";
    }
    EXPECT_TRUE(std::is_sorted(suspects.begin(), suspects.end(),
                               [](const Suspect& a, const Suspect& b) { return a.score > b.score; }));
    // Another order of links, of their sightings and of gangs.
    std::vector<std::size_t> order(links.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    test::Shuffle(order, random);
    std::vector<WatchedLink> shuffled(links.size());
    for (std::size_t i = 0; i < order.size(); ++i) shuffled[order[i]] = links[i];
    for (WatchedLink& link : shuffled) test::Shuffle(link.sightings, random);
    for (GangOnLinks& gang : gangs) {
      for (std::size_t& link : gang.links) link = link < order.size() ? order[link] : link;
    }
    test::Shuffle(gangs, random);
    EXPECT_EQ(RankSuspects(shuffled, gangs), suspects);
  }
}

// A fabric with one thing wrong in it, and other things here and there.
struct Trial {
  RailBed bed;
  std::string culprit;
};

// Sightings on a hundredth of the links that have none, and loss all over a hundredth of the gangs. What is no worse
// than `gravest`, seen by one end.
void AddNoise(RailBed& bed, Symptom gravest, base::Random& random) {
  const Sighting kinds[] = {Flaps(random.Below(2) == 0), Stopped(true), Errors(random.Below(2) == 0), Loss(),
                            Drops()};
  const int first = gravest == Symptom::kErrors ? 2 : 0;
  for (WatchedLink& link : bed.links) {
    if (link.sightings.empty() && random.Below(100) == 0)
      link.sightings = {kinds[std::size_t(first) + random.Below(std::uint64_t(5 - first))]};
  }
  for (const GangOnLinks& gang : bed.gangs) {
    if (random.Below(100) != 0) continue;
    for (const std::size_t link : gang.links) {
      if (bed.links[link].sightings.empty()) bed.links[link].sightings = {Loss()};
    }
  }
}

void Lose(RailBed& bed, std::size_t at) {
  for (const GangOnLinks& gang : bed.gangs) {
    if (std::find(gang.links.begin(), gang.links.end(), at) == gang.links.end()) continue;
    for (const std::size_t link : gang.links) {
      if (link % std::size_t(bed.rails) != at % std::size_t(bed.rails) || !bed.links[link].sightings.empty())
        continue;
      bed.links[link].sightings = {Loss()};
    }
  }
}

enum class Culprit : std::uint8_t { kCable, kHost, kLeaf, kStorm };

Trial MakeTrial(Culprit kind, base::Random& random) {
  const auto below = [&](int bound) { return int(random.Below(std::uint64_t(bound))); };
  const int units = 1 + below(4), in_unit = 8 << below(3), rails = 4 << below(2);
  Trial trial{RailBed(units, in_unit, rails), ""};
  RailBed& bed = trial.bed;
  bed.AddSpines(below(3));
  for (int first = 0, number = 0; first < bed.hosts; ++number) {
    const int size = std::min(bed.hosts - first, 2 + below(in_unit));
    std::vector<int> members;
    for (int host = first; host < first + size; ++host) members.push_back(host);
    bed.AddGang(fmt::format("gang-{}", number), members);
    first += size;
  }
  const int host = below(bed.hosts), rail = below(rails), unit = host / in_unit;
  const std::string cable = fmt::format("leaf su{}-r{} port Ethernet{} <-> gpu-{:03} mlx5_{}:1", unit, rail,
                                        host % in_unit * 4, host, rail);
  switch (kind) {
    case Culprit::kCable:
      trial.culprit = cable;
      bed.On(host, rail).sightings = {Flaps(true)};
      if (below(2) == 0) bed.On(host, rail).sightings.push_back(Flaps(false));
      break;
    case Culprit::kHost:
      trial.culprit = fmt::format("host gpu-{:03}", host);
      for (int r = 0; r < rails; ++r) {
        if (r % 2 == rail % 2 || below(2) != 0) bed.On(host, r).sightings = {Flaps(false)};  // half at least
      }
      break;
    case Culprit::kLeaf:
      trial.culprit = fmt::format("leaf su{}-r{}", unit, rail);
      for (int h = unit * in_unit; h < (unit + 1) * in_unit; ++h) {
        if (below(8) != 0) bed.On(h, rail).sightings = {Flaps(below(2) == 0)};
      }
      for (int spine = 0; spine < bed.spines; ++spine)
        bed.Up(unit * rails + rail, spine).sightings = {Flaps(false)};
      break;
    case Culprit::kStorm:
      trial.culprit = cable;
      for (int h = unit * in_unit; h < (unit + 1) * in_unit; ++h) {
        if (h != host && below(2) == 0) bed.On(h, rail).sightings = {Stopped(false)};
      }
      bed.On(host, rail).sightings = {Stopped(true)};
      break;
  }
  Lose(bed, bed.At(host, rail));
  AddNoise(bed, kind == Culprit::kCable ? Symptom::kErrors : Symptom::kFlap, random);
  return trial;
}

TEST(SuspectTrials, PutTheCulpritFirst) {
  std::map<Culprit, std::pair<int, int>> found;  // of how many
  for (const std::uint64_t seed : test::Seeds(2000)) {
    base::Random random(seed);
    const auto kind = static_cast<Culprit>(seed % 4);
    const Trial trial = MakeTrial(kind, random);
    const auto suspects = trial.bed.Rank();
    auto& [first, all] = found[kind];
    ++all;
    const bool hit = !suspects.empty() && suspects[0].name == trial.culprit;
    first += hit ? 1 : 0;
    if (hit || std::getenv("HEDDLE_SEED") == nullptr) continue;
    ADD_FAILURE() << test::Replay(seed) << ": it was " << trial.culprit;
    for (const Suspect& suspect : suspects)
      std::printf("%d %s\n", suspect.score, SentenceOf(suspect).c_str());
  }
  for (const auto& [kind, count] : found) {
    const auto [first, all] = count;
    RecordProperty(fmt::format("kind_{}", int(kind)), fmt::format("{} of {}", first, all));
    EXPECT_GE(first * 100, all * 99) << "kind " << int(kind) << ": " << first << " of " << all;
  }
}

}  // namespace
}  // namespace heddle::topology
