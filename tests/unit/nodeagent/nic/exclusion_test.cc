#include "nodeagent/nic/exclusion.h"

#include <gmock/gmock.h>

namespace heddle::nodeagent {
namespace {

using testing::Each;
using testing::ElementsAre;
using topology::LinkState;

constexpr LinkState kUp = LinkState::kActive, kDown = LinkState::kDown, kUnknown = LinkState::kUnknown;

// Cards of one model with two ports each: {first, second} of each card.
std::vector<CardPort> Cards(const std::vector<std::pair<LinkState, LinkState>>& cards) {
  std::vector<CardPort> ports;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const std::string card = "card " + std::to_string(i);
    ports.push_back({"two ports", card, "0", cards[i].first});
    ports.push_back({"two ports", card, "1", cards[i].second});
  }
  return ports;
}

// The looks that follow one another.
std::vector<bool> Next(std::vector<CardPort>& ports) {
  const std::vector<bool> uncabled = UncabledByDesign(ports);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    ports[i].left_out = uncabled[i];
    ports[i].was_up = ports[i].was_up || ports[i].state == kUp;
  }
  return uncabled;
}

TEST(UncabledByDesign, IsThePortThatNoCardOfTheModelHasACableIn) {
  EXPECT_THAT(UncabledByDesign(Cards({{kUp, kDown}, {kUp, kDown}, {kUp, kDown}})),
              ElementsAre(false, true, false, true, false, true));
}

TEST(UncabledByDesign, IsNoPortThatIsDownWhileThoseOfOtherCardsAreUp) {
  EXPECT_THAT(UncabledByDesign(Cards({{kUp, kUp}, {kUp, kDown}, {kUp, kUp}})), Each(false));
  EXPECT_THAT(UncabledByDesign(Cards({{kUp, kDown}, {kUp, kDown}, {kUp, kUp}})), Each(false));
  EXPECT_THAT(UncabledByDesign(Cards({{kUp, kDown}, {kUp, kDown}, {kUp, kUnknown}})), Each(false))
      << "it trains: there is a cable in it";
}

TEST(UncabledByDesign, TakesTwoCardsOfAModelAndAnotherPortThatIsUp) {
  EXPECT_THAT(UncabledByDesign(Cards({{kUp, kDown}})), Each(false));
  EXPECT_THAT(UncabledByDesign(Cards({{kDown, kDown}, {kDown, kDown}, {kDown, kDown}})), Each(false));
  EXPECT_THAT(UncabledByDesign(Cards({{kUp, kDown}, {kDown, kDown}})), Each(false));
  std::vector<CardPort> ports = Cards({{kUp, kDown}, {kUp, kDown}});
  ports[2].model = ports[3].model = "another";
  EXPECT_THAT(UncabledByDesign(ports), Each(false)) << "each is alone of its kind";
  ports = Cards({{kUp, kDown}, {kUp, kDown}});
  ports[3].place = "2";
  EXPECT_THAT(UncabledByDesign(ports), Each(false)) << "another port of the card";
  EXPECT_THAT(UncabledByDesign({}), testing::IsEmpty());
}

TEST(UncabledByDesign, IsThePortThatItsOwnerNamesWhileItIsDown) {
  std::vector<CardPort> ports = Cards({{kDown, kUp}, {kUp, kUp}});
  ports[0].named = ports[1].named = true;
  EXPECT_THAT(UncabledByDesign(ports), ElementsAre(true, false, false, false))
      << "one that is up has a cable";
  ports[0].was_up = true;
  EXPECT_THAT(UncabledByDesign(ports), ElementsAre(true, false, false, false))
      << "its owner may have taken it out";
  ports[0].state = kUnknown;
  EXPECT_THAT(UncabledByDesign(ports), Each(false)) << "it trains";
  ports[0].unread = true;
  EXPECT_THAT(UncabledByDesign(ports), Each(false)) << "nobody knows that it is down";
  ports[0].left_out = true;
  EXPECT_THAT(UncabledByDesign(ports), ElementsAre(true, false, false, false));
}

// A leaf that dies takes the same port of every card down.
TEST(UncabledByDesign, IsNoPortThatWasUp) {
  std::vector<CardPort> ports = Cards({{kUp, kUp}, {kUp, kUp}});
  EXPECT_THAT(Next(ports), Each(false));
  ports[1].state = ports[3].state = kDown;
  EXPECT_THAT(Next(ports), Each(false));
  ports = Cards({{kUp, kDown}, {kUp, kDown}, {kUp, kDown}});
  ports[3].was_up = true;
  EXPECT_THAT(UncabledByDesign(ports), Each(false)) << "one of them had a cable";
}

TEST(UncabledByDesign, StaysSoUntilACableIsSeen) {
  std::vector<CardPort> ports = Cards({{kUp, kDown}, {kUp, kDown}});
  EXPECT_THAT(Next(ports), ElementsAre(false, true, false, true));
  ports[0].state = ports[2].state = kDown;
  EXPECT_THAT(Next(ports), ElementsAre(false, true, false, true))
      << "an alarm of the first ports, not of these";
  ports[1].state = kUnknown;
  ports[1].unread = true;
  EXPECT_THAT(Next(ports), ElementsAre(false, true, false, true)) << "what cannot be read is no cable";
  ports[1].unread = false;
  EXPECT_THAT(Next(ports), Each(false)) << "it trains";
  ports[1].state = kUp;
  EXPECT_THAT(Next(ports), Each(false));
  ports[1].state = kDown;
  EXPECT_THAT(Next(ports), Each(false)) << "somebody pulled it";
}

}  // namespace
}  // namespace heddle::nodeagent
