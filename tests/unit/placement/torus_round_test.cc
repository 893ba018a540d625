#include "placement/torus_round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "tests/support/seeds.h"

namespace heddle::placement {
namespace {

using Place = std::array<int, 3>;

int LongestStep(const Sides& torus, const std::vector<Place>& round) {
  int longest = 0;
  for (std::size_t i = 0; i < round.size(); ++i) {
    const Place &a = round[i], &b = round[(i + 1) % round.size()];
    for (std::size_t d = 0; d < 3; ++d) {
      const int apart = std::abs(a[d] - b[d]);
      longest = std::max(longest, std::min(apart, torus[d] - apart));
    }
  }
  return longest;
}

// Places that hang together: each new one beside one that is there.
std::vector<Place> Grown(base::Random& random, const Sides& torus, int count) {
  std::vector<Place> places{{0, 0, 0}};
  std::set<Place> seen{places.front()};
  while (int(places.size()) < count) {
    Place next = places[random.Below(places.size())];
    for (std::size_t d = 0; d < 3; ++d) {
      next[d] = (next[d] + torus[d] + int(random.Below(3)) - 1) % torus[d];
    }
    if (seen.insert(next).second) places.push_back(next);
  }
  return places;
}

TEST(TorusRound, StepsAreShortWherePlacesHangTogether) {
  int short_ones = 0, all = 0;
  for (const std::uint64_t seed : test::Seeds(200)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const Sides torus{2 + int(random.Below(8)), 2 + int(random.Below(8)), 1 + int(random.Below(8))};
    const auto places = Grown(random, torus, 2 + int(random.Below(std::uint64_t(Volume(torus) - 1))));
    TorusRounds rounds(torus);
    const auto round = rounds.Through(places);
    EXPECT_EQ(round.size(), places.size());
    EXPECT_EQ(std::set<Place>(round.begin(), round.end()), std::set<Place>(places.begin(), places.end()));
    EXPECT_LE(LongestStep(torus, round), 3);
    EXPECT_EQ(rounds.Through(places), round) << "its table is left empty";
    short_ones += LongestStep(torus, round) <= 2 ? 1 : 0;
    ++all;
  }
  EXPECT_TRUE(all == 1 || short_ones * 10 >= all * 9) << short_ones << " of " << all;
}

TEST(TorusRound, VisitsPlacesThatDoNotTouch) {
  for (const std::uint64_t seed : test::Seeds(100)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const Sides torus{12, 9, 10};
    std::set<Place> places;
    for (int left = 1 + int(random.Below(60)); left > 0; --left) {
      places.insert({int(random.Below(12)), int(random.Below(9)), int(random.Below(10))});
    }
    const auto round = TorusRounds(torus).Through({places.begin(), places.end()});
    EXPECT_EQ(round.size(), places.size());
    EXPECT_EQ(std::set<Place>(round.begin(), round.end()), places);
  }
}

TEST(TorusRound, TwoIslandsAreJoinedWhereTheyAreNearest) {
  std::vector<Place> places;
  for (int x = 0; x < 4; ++x) {
    for (int y = 0; y < 4; ++y) {
      places.push_back({x, y, 0});
      places.push_back({x + 6, y, 0});
    }
  }
  const Sides torus{20, 20, 20};
  EXPECT_LE(LongestStep(torus, TorusRounds(torus).Through(places)), 5) << "3 apart, and room to turn";
}

TEST(TorusRound, PartsAreEqualAndCompact) {
  std::vector<Place> places;
  for (int x = 0; x < 8; ++x) {
    for (int y = 0; y < 4; ++y) {
      for (int z = 0; z < 2; ++z) places.push_back({x, y, z});
    }
  }
  CutIntoParts(places, 8);
  for (std::size_t part = 0; part < 8; ++part) {
    for (std::size_t d = 0; d < 3; ++d) {
      std::set<int> seen;
      for (std::size_t i = part * 8; i < part * 8 + 8; ++i) seen.insert(places[i][d]);
      EXPECT_EQ(seen.size(), 2u) << "part " << part << " is a cube";
    }
  }
  EXPECT_EQ(std::set<Place>(places.begin(), places.end()).size(), 64u);
}

}  // namespace
}  // namespace heddle::placement
