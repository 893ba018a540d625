#include "placement/torus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "tests/support/seeds.h"

namespace heddle::placement {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Place = std::array<int, 3>;

std::vector<std::uint8_t> Filled(const Sides& size, std::uint8_t value) {
  return std::vector<std::uint8_t>(std::size_t(Volume(size)), value);
}
std::size_t At(const Sides& size, int x, int y, int z) {
  return (std::size_t(x) * std::size_t(size[1]) + std::size_t(y)) * std::size_t(size[2]) + std::size_t(z);
}

// Place by place, for comparison.
int CountIn(const Sides& size, const std::vector<std::uint8_t>& free, const TorusBox& box) {
  int count = 0;
  for (int x = 0; x < box.sides[0]; ++x) {
    for (int y = 0; y < box.sides[1]; ++y) {
      for (int z = 0; z < box.sides[2]; ++z) {
        count +=
            free[At(size, (box.at[0] + x) % size[0], (box.at[1] + y) % size[1], (box.at[2] + z) % size[2])];
      }
    }
  }
  return count;
}

template <class Visit>
void ForEachBox(const Sides& size, const Visit& visit) {
  for (int a = 1; a <= size[0]; ++a) {
    for (int b = 1; b <= size[1]; ++b) {
      for (int c = 1; c <= size[2]; ++c) {
        for (int x = 0; x < size[0]; ++x) {
          for (int y = 0; y < size[1]; ++y) {
            for (int z = 0; z < size[2]; ++z) visit(TorusBox{{x, y, z}, {a, b, c}});
          }
        }
      }
    }
  }
}

Sides RandomSize(base::Random& random, int most) {
  return {1 + int(random.Below(std::uint64_t(most))), 1 + int(random.Below(std::uint64_t(most))),
          1 + int(random.Below(std::uint64_t(most)))};
}

TEST(Torus, CountsFreePlacesInBoxesAroundTheEnds) {
  const Sides size{4, 3, 2};
  auto free = Filled(size, 1);
  free[At(size, 0, 0, 0)] = 0;
  free[At(size, 3, 2, 1)] = 0;
  const TorusGrid grid(size, free);
  EXPECT_EQ(grid.free(), 22);
  EXPECT_EQ(grid.FreeIn({{0, 0, 0}, {1, 1, 1}}), 0);
  EXPECT_EQ(grid.FreeIn({{3, 2, 1}, {2, 2, 2}}), 6) << "both taken places lie in it";
  EXPECT_EQ(grid.FreeIn({{1, 0, 0}, {2, 3, 2}}), 12);
}

TEST(Torus, ShapesComeFromNearCubesToLines) {
  EXPECT_THAT(BoxShapes({4, 4, 4}, 16), ElementsAre(Sides{2, 2, 4}, Sides{2, 4, 2}, Sides{4, 2, 2},
                                                    Sides{1, 4, 4}, Sides{4, 1, 4}, Sides{4, 4, 1}));
  EXPECT_THAT(BoxShapes({4, 4, 4}, 64), ElementsAre(Sides{4, 4, 4}));
  EXPECT_THAT(BoxShapes({4, 4, 4}, 7), IsEmpty()) << "no side is 7 long";
  EXPECT_THAT(BoxShapes({8, 2, 2}, 7), ElementsAre(Sides{7, 1, 1}));
  EXPECT_THAT(BoxShapes({4, 4, 4}, 0), IsEmpty());
}

TEST(Torus, ASideOfTheWholeTorusIsShortToCross) {
  EXPECT_EQ(Diameter({4, 4, 4}, {4, 4, 1}), 4);
  EXPECT_EQ(Diameter({4, 4, 4}, {4, 2, 2}), 4);
  EXPECT_EQ(Diameter({8, 8, 8}, {4, 4, 1}), 6);
  EXPECT_EQ(Diameter({8, 8, 8}, {4, 2, 2}), 5);
  EXPECT_EQ(Diameter({1, 1, 1}, {1, 1, 1}), 0);
}

TEST(Torus, FindsABoxThatLiesAroundTheEnds) {
  const Sides size{4, 4, 4};
  auto free = Filled(size, 0);
  for (int x : {3, 0}) {
    for (int y : {3, 0}) {
      for (int z : {3, 0}) free[At(size, x, y, z)] = 1;
    }
  }
  const auto boxes = FreeBoxes(TorusGrid(size, free), 8, 10);
  EXPECT_THAT(boxes, ElementsAre(TorusBox{{3, 3, 3}, {2, 2, 2}}));
}

TEST(Torus, TakesTheCornerThatLeavesTheLeastAround) {
  const Sides size{8, 1, 1};
  auto free = Filled(size, 1);
  free[0] = free[3] = 0;  // 1 and 2 are an exact fit, 4 to 7 would be cut
  const auto boxes = FreeBoxes(TorusGrid(size, free), 2, 10);
  EXPECT_THAT(boxes, ElementsAre(TorusBox{{1, 0, 0}, {2, 1, 1}}));
}

TEST(Torus, AFullTorusHasNoBoxAndNoRegion) {
  const Sides size{3, 3, 3};
  const TorusGrid grid(size, Filled(size, 0));
  EXPECT_THAT(FreeBoxes(grid, 1, 10), IsEmpty());
  EXPECT_FALSE(SmallestRegion(grid, 1));
}

TEST(Torus, BoxesAreFoundIfAndOnlyIfThereAreAny) {
  for (const std::uint64_t seed : test::Seeds(150)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const Sides size = RandomSize(random, 6);
    const int percent = int(random.Below(100));
    auto free = Filled(size, 0);
    for (auto& place : free) place = int(random.Below(100)) < percent ? 0 : 1;
    const TorusGrid grid(size, free);
    std::set<Sides> with_room;
    std::set<int> counts;
    ForEachBox(size, [&](const TorusBox& box) {
      const int count = CountIn(size, free, box);
      ASSERT_EQ(grid.FreeIn(box), count);
      if (count != Volume(box.sides)) return;
      with_room.insert(box.sides);
      counts.insert(count);
    });
    for (int places = 1; places <= int(Volume(size)); ++places) {
      const auto boxes = FreeBoxes(grid, places, 1000);
      EXPECT_EQ(!boxes.empty(), counts.contains(places)) << places;
      for (const TorusBox& box : boxes) {
        EXPECT_EQ(Volume(box.sides), places);
        EXPECT_EQ(grid.FreeIn(box), places);
      }
      std::size_t shapes = 0;
      for (const Sides& sides : with_room) shapes += Volume(sides) == places ? 1 : 0;
      EXPECT_EQ(boxes.size(), shapes) << places;
    }
  }
}

TEST(Torus, ARegionHoldsEnoughAndNoSideTooMany) {
  for (const std::uint64_t seed : test::Seeds(150)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const Sides size = RandomSize(random, 6);
    auto free = Filled(size, 0);
    for (auto& place : free) place = random.Below(3) == 0 ? 1 : 0;
    const TorusGrid grid(size, free);
    for (int places = 1; places <= grid.free() + 1; places += 3) {
      const auto region = SmallestRegion(grid, places);
      ASSERT_EQ(region.has_value(), places <= grid.free()) << places;
      if (!region) continue;
      EXPECT_GE(grid.FreeIn(*region), places);
      for (std::size_t i = 0; i < 3; ++i) {
        Sides less = region->sides;
        if (--less[i] > 0) {
          EXPECT_FALSE(grid.Tightest(less, places)) << places;
        }
      }
    }
  }
}

TEST(Torus, BoxesApartAreFreeAndDoNotOverlap) {
  int found = 0, tried = 0;
  for (const std::uint64_t seed : test::Seeds(100)) {
    ++tried;
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const Sides size = RandomSize(random, 6);
    auto free = Filled(size, 0);
    for (auto& place : free) place = random.Below(8) != 0 ? 1 : 0;
    const TorusGrid grid(size, free);
    Sides sides = size;
    for (int& side : sides) side = 1 + int(random.Below(std::uint64_t(side)));
    std::vector<Place> corners;
    ForEachBox(size, [&](const TorusBox& box) {
      bool wanted = box.sides == sides && CountIn(size, free, box) == Volume(sides);
      for (std::size_t i = 0; i < 3; ++i) wanted = wanted && (sides[i] < size[i] || box.at[i] == 0);
      if (wanted) corners.push_back(box.at);
    });
    EXPECT_EQ(grid.FreeCorners(sides), corners);
    EXPECT_EQ(FreeBoxesApart(grid, sides, 1).empty(), corners.empty());
    const auto boxes = FreeBoxesApart(grid, sides, 3);
    if (boxes.empty()) continue;
    ++found;
    EXPECT_EQ(boxes.size(), 3u);
    for (const TorusBox& box : boxes) {
      ASSERT_EQ(CountIn(size, free, box), Volume(sides));
      for (int i = 0; i < int(Volume(sides)); ++i) {
        const int x = i / sides[2] / sides[1], y = i / sides[2] % sides[1], z = i % sides[2];
        free[At(size, (box.at[0] + x) % size[0], (box.at[1] + y) % size[1], (box.at[2] + z) % size[2])] = 0;
      }
    }
  }
  EXPECT_TRUE(found * 20 > tried || tried == 1) << found;
}

// The step between two places of a walk: in all, and along one dimension.
std::pair<int, int> Step(const Place& a, const Place& b) {
  std::pair<int, int> step{0, 0};
  for (std::size_t i = 0; i < 3; ++i) {
    step.first += std::abs(a[i] - b[i]);
    step.second = std::max(step.second, std::abs(a[i] - b[i]));
  }
  return step;
}

TEST(Torus, WalksVisitEveryPlaceOnceAndStepToNeighbours) {
  for (int x = 1; x <= 6; ++x) {
    for (int y = 1; y <= 6; ++y) {
      for (int z = 1; z <= 6; ++z) {
        const Sides sides{x, y, z};
        SCOPED_TRACE(testing::PrintToString(sides));
        for (const bool closed : {false, true}) {
          const auto walk = WalkOf(sides, closed, {});
          EXPECT_EQ(std::int64_t(walk.size()), Volume(sides));
          EXPECT_EQ(std::set<Place>(walk.begin(), walk.end()).size(), walk.size());
          for (const Place& place : walk) {
            for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(place[i] >= 0 && place[i] < sides[i]);
          }
          const bool line = std::max({x, y, z}) == Volume(sides);
          int diagonal = 0;
          for (std::size_t i = 0; i + 1 < walk.size() + (closed ? 1 : 0); ++i) {
            const auto [links, longest] = Step(walk[i], walk[(i + 1) % walk.size()]);
            EXPECT_LE(longest, closed && line ? 2 : 1);
            diagonal += links > longest ? 1 : 0;
          }
          EXPECT_EQ(diagonal, closed && !line && Volume(sides) % 2 == 1 ? 1 : 0);
        }
      }
    }
  }
}

TEST(Torus, ALineThatClosesItselfIsWalkedStraight) {
  EXPECT_THAT(WalkOf({1, 4, 1}, true, {false, true, false}),
              ElementsAre(Place{0, 0, 0}, Place{0, 1, 0}, Place{0, 2, 0}, Place{0, 3, 0}));
  EXPECT_THAT(WalkOf({1, 5, 1}, true, {}),
              ElementsAre(Place{0, 0, 0}, Place{0, 2, 0}, Place{0, 4, 0}, Place{0, 3, 0}, Place{0, 1, 0}));
}

TEST(Torus, TheLargestSizesAreCounted) {
  const Sides size{1024, 128, 1};
  const TorusGrid grid(size, Filled(size, 1));
  EXPECT_EQ(grid.free(), 131'072);
  EXPECT_EQ(grid.FreeIn({{1023, 127, 0}, {1024, 128, 1}}), 131'072);
  EXPECT_EQ(FreeBoxes(grid, 131'072, 3).size(), 1u);
}

}  // namespace
}  // namespace heddle::placement
