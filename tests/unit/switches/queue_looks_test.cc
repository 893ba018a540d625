#include "switches/queue_looks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace heddle::switches {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Hints = std::vector<QueueHint>;

// Sorted by name, as a window tells them: Ethernet100 and on.
Hints Discarding(std::size_t ports, std::uint64_t packets = 10) {
  Hints hints;
  for (std::size_t i = 0; i < ports; ++i) hints.push_back({fmt::format("Ethernet{}", 100 + i), packets, 0});
  return hints;
}

TEST(QueueLooks, AreNotTakenAtPortsThatAreStill) {
  QueueLooks looks;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(looks.Next({}, false), QueueLooks::Ask());
}

TEST(QueueLooks, AreTakenAtOnceAndAgainUntilWhatIsWrittenRarerMustHaveCome) {
  QueueLooks looks;
  const Hints hints{{"Ethernet0", 3, 0}, {"Ethernet48", 0, 5'000}};
  EXPECT_THAT(looks.Next(hints, false).ports, ElementsAre("Ethernet0", "Ethernet48"));
  for (int i = 1; i < kLooksAtAPort; ++i)
    EXPECT_THAT(looks.Next({}, false).ports, ElementsAre("Ethernet0", "Ethernet48"));
  EXPECT_EQ(looks.Next({}, false), QueueLooks::Ask());
}

TEST(QueueLooks, LeaveAPortAloneThatGoesOnAsItDoes) {
  QueueLooks looks;
  const Hints everyday{{"Ethernet0", 20, 4'000}};
  for (int i = 0; i < kLooksAtAPort; ++i)
    EXPECT_THAT(looks.Next(everyday, false).ports, ElementsAre("Ethernet0"));
  for (int i = 0; i < 1'000; ++i) EXPECT_EQ(looks.Next(everyday, false), QueueLooks::Ask());
  EXPECT_EQ(looks.Next({{"Ethernet0", 40, 8'000}}, false), QueueLooks::Ask()) << "twice as much";
  EXPECT_THAT(looks.Next({{"Ethernet0", 20, 8'001}}, false).ports, ElementsAre("Ethernet0"));
  for (int i = 1; i < kLooksAtAPort; ++i) looks.Next(everyday, false);
  EXPECT_EQ(looks.Next({{"Ethernet0", 40, 16'002}}, false), QueueLooks::Ask());
  EXPECT_THAT(looks.Next({{"Ethernet0", 41, 0}}, false).ports, ElementsAre("Ethernet0"))
      << "much pause hides no discards";
}

TEST(QueueLooks, ForgetWhatAPortDidBeforeItWasStill) {
  QueueLooks looks;
  for (int i = 0; i < kLooksAtAPort; ++i) looks.Next({{"Ethernet0", 1'000, 0}}, false);
  for (std::uint32_t i = 1; i < kLooksRemembered; ++i) looks.Next({}, false);
  EXPECT_EQ(looks.Next({{"Ethernet0", 1, 0}}, false), QueueLooks::Ask()) << "not for long enough";
  for (std::uint32_t i = 0; i < kLooksRemembered; ++i) looks.Next({}, false);
  EXPECT_THAT(looks.Next({{"Ethernet0", 1, 0}}, false).ports, ElementsAre("Ethernet0"));
}

TEST(QueueLooks, AskForNothingThatCameAnyway) {
  QueueLooks looks;
  const Hints hints{{"Ethernet0", 3, 0}};
  EXPECT_EQ(looks.Next(hints, true), QueueLooks::Ask());
  for (int i = 1; i < kLooksAtAPort; ++i)
    EXPECT_THAT(looks.Next({}, false).ports, ElementsAre("Ethernet0")) << "a look at all is one of its looks";
  EXPECT_EQ(looks.Next({}, false), QueueLooks::Ask());
}

TEST(QueueLooks, AreAtAllPortsWhereMoreMoveThanAreAskedForOneByOne) {
  QueueLooks looks;
  looks.Next({}, true);
  for (std::uint32_t i = 1; i < kLooksBetweenAll; ++i) looks.Next({}, false);
  EXPECT_THAT(looks.Next(Discarding(kMostPortsAtOnce), false).ports, SizeIs(kMostPortsAtOnce));
  const QueueLooks::Ask ask = looks.Next(Discarding(kMostPortsAtOnce + 1), false);
  EXPECT_TRUE(ask.all);
  EXPECT_THAT(ask.ports, IsEmpty());
}

// However it goes on: pause that grows everywhere all the time is the worst that a healthy switch can do.
TEST(QueueLooks, AreBoundedWhateverMoves) {
  QueueLooks looks;
  std::uint64_t pause = 1;
  int all = 0;
  std::uint32_t since_all = kLooksBetweenAll;
  for (int i = 0; i < 30; ++i) {
    pause *= 3;
    Hints hints = Discarding(64);
    for (QueueHint& hint : hints) hint.pause = pause;
    const QueueLooks::Ask ask = looks.Next(hints, false);
    ++since_all;
    EXPECT_LE(ask.ports.size(), kMostPortsAtOnce);
    if (!ask.all) continue;
    EXPECT_THAT(ask.ports, IsEmpty());
    EXPECT_GE(since_all, kLooksBetweenAll);
    since_all = 0;
    ++all;
  }
  EXPECT_GT(all, 0);
}

TEST(QueueLooks, ComeToEveryPortInTurn) {
  constexpr std::size_t kPorts = 3 * kMostPortsAtOnce;
  QueueLooks looks;
  std::map<std::string, int> asked;
  looks.Next(Discarding(kPorts), true);  // so that it is not at all ports
  std::uint64_t packets = 10;
  for (std::uint32_t i = 1; i < kLooksBetweenAll; ++i) {
    // Those that come first by name have something new to tell with every look.
    packets *= 3;
    const QueueLooks::Ask ask = looks.Next(Discarding(kMostPortsAtOnce, packets), false);
    ASSERT_THAT(ask.ports, SizeIs(kMostPortsAtOnce));
    for (const std::string& port : ask.ports) ++asked[port];
  }
  EXPECT_THAT(asked, SizeIs((kLooksBetweenAll - 1) * kMostPortsAtOnce)) << "nobody twice before the others";
}

TEST(QueueLooks, ComeToThoseFirstThatWaitLongest) {
  QueueLooks looks;
  looks.Next({}, true);
  Hints hints = Discarding(kMostPortsAtOnce + 1);
  hints.back() = {"Ethernet9", 0, 5'000};
  const auto ahead = looks.Next(hints, false).ports;
  ASSERT_THAT(ahead, SizeIs(kMostPortsAtOnce));
  EXPECT_EQ(std::count(ahead.begin(), ahead.end(), "Ethernet9"), 0) << "pause may be no fault";
  const auto next = looks.Next({{"Ethernet1", 50, 0}}, false).ports;
  EXPECT_EQ(next.front(), "Ethernet9") << "it came before";
  EXPECT_EQ(std::count(next.begin(), next.end(), "Ethernet1"), 0) << "so did the others";
}

TEST(QueueLooks, AskSonicByTheNamesOfPorts) {
  const NamesByAlias names{{"etp1", "Ethernet0"}, {"Ethernet8", "Ethernet8"}};
  EXPECT_THAT(SonicQueuePaths({false, {"Ethernet0", "Ethernet8"}}, true, names),
              ElementsAre(Steps{"COUNTERS", "Ethernet0", "Pfcwd"}, Steps{"COUNTERS", "Ethernet8", "Pfcwd"}));
  EXPECT_THAT(SonicQueuePaths({false, {"Ethernet0"}}, false, names),
              ElementsAre(Steps{"COUNTERS", "Ethernet0", "Queues"}));
  EXPECT_THAT(SonicQueuePaths({true, {}}, true, names), ElementsAre(Steps{"COUNTERS", "Ethernet*", "Pfcwd"}));
  EXPECT_THAT(SonicQueuePaths({}, true, names), IsEmpty());
}

TEST(QueueLooks, DoNotAskForAPortWhoseNameIsTheAliasOfAnother) {
  const NamesByAlias names{{"Ethernet4", "Ethernet12"}, {"Ethernet1", "Ethernet0"}};
  EXPECT_THAT(SonicQueuePaths({false, {"Ethernet0", "Ethernet4"}}, true, names),
              ElementsAre(Steps{"COUNTERS", "Ethernet0", "Pfcwd"}));
}

}  // namespace
}  // namespace heddle::switches
