#include "placement/torus.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "base/check.h"

namespace heddle::placement {
namespace {

// A walk over rows x columns that closes, as (row, column). Requires: two of each at least, and rows even
// unless both are odd.
std::vector<std::pair<int, int>> RoundOf(int rows, int columns) {
  std::vector<std::pair<int, int>> round;
  round.reserve(std::size_t(rows) * std::size_t(columns));
  // To and fro over all columns but the first, which is the way back; of an odd number of rows the last two
  // are walked as one, up and down.
  const int plain = rows % 2 == 0 ? rows : rows - 2;
  round.emplace_back(0, 0);
  for (int row = 0; row < plain; ++row) {
    for (int i = 1; i < columns; ++i) round.emplace_back(row, row % 2 == 0 ? i : columns - i);
  }
  for (int i = 1; plain < rows && i < columns; ++i) {
    const int first = i % 2 == 0 ? rows - 1 : plain;
    round.emplace_back(first, columns - i);
    round.emplace_back(first == plain ? rows - 1 : plain, columns - i);
  }
  for (int row = rows - 1; row > 0; --row) round.emplace_back(row, 0);
  return round;
}

// To and fro: z first, then y, then x.
std::vector<std::array<int, 3>> SnakeOf(const Sides& sides) {
  std::vector<std::array<int, 3>> walk;
  walk.reserve(std::size_t(Volume(sides)));
  int y = 0, z = 0, y_step = 1, z_step = 1;
  for (int x = 0; x < sides[0]; ++x) {
    for (int i = 0; i < sides[1]; ++i) {
      for (int k = 0; k < sides[2]; ++k, z += z_step) walk.push_back({x, y, z});
      z -= z_step;
      z_step = -z_step;
      y += y_step;
    }
    y -= y_step;
    y_step = -y_step;
  }
  return walk;
}

}  // namespace

int Diameter(const Sides& torus, const Sides& sides) {
  int links = 0;
  for (std::size_t i = 0; i < 3; ++i) links += sides[i] == torus[i] ? sides[i] / 2 : sides[i] - 1;
  return links;
}

TorusGrid::TorusGrid(const Sides& size, const std::vector<std::uint8_t>& free) : size_(size) {
  CHECK(*std::min_element(size.begin(), size.end()) >= 1 && Volume(size) <= kMostTorusPlaces);
  CHECK(std::int64_t(free.size()) == Volume(size));
  const auto [x_size, y_size, z_size] = size;
  below_.assign(At(2 * x_size, 2 * y_size, 2 * z_size) + 1, 0);
  for (int x = 0; x < 2 * x_size; ++x) {
    for (int y = 0; y < 2 * y_size; ++y) {
      const std::uint8_t* row =
          free.data() +
          (std::size_t(x % x_size) * std::size_t(y_size) + std::size_t(y % y_size)) * std::size_t(z_size);
      const std::int32_t *before_x = &below_[At(x, y + 1, 0)], *before_y = &below_[At(x + 1, y, 0)];
      const std::int32_t* before_both = &below_[At(x, y, 0)];
      std::int32_t* here = &below_[At(x + 1, y + 1, 0)];
      std::int32_t line = 0;
      for (int z = 1; z <= 2 * z_size; ++z) {
        line += row[z <= z_size ? z - 1 : z - 1 - z_size] != 0 ? 1 : 0;
        here[z] = before_x[z] + before_y[z] - before_both[z] + line;
      }
    }
  }
}

int TorusGrid::FreeIn(const TorusBox& box) const {
  const int x = box.at[0], y = box.at[1], z = box.at[2];
  const int to_x = x + box.sides[0], to_y = y + box.sides[1], to_z = z + box.sides[2];
  const auto column = [&](int end_z) {
    return below_[At(to_x, to_y, end_z)] - below_[At(x, to_y, end_z)] - below_[At(to_x, y, end_z)] +
           below_[At(x, y, end_z)];
  };
  return column(to_z) - column(z);
}

// The free places over the x and y of a box, below every z.
class TorusGrid::Columns {
 public:
  void Point(const TorusGrid& grid, const TorusBox& box, int length) {
    const int x = box.at[0], y = box.at[1], to_x = x + box.sides[0], to_y = y + box.sides[1];
    const std::int32_t *a = &grid.below_[grid.At(x, y, 0)], *b = &grid.below_[grid.At(x, to_y, 0)];
    const std::int32_t *c = &grid.below_[grid.At(to_x, y, 0)], *d = &grid.below_[grid.At(to_x, to_y, 0)];
    below_.resize(std::size_t(length));
    for (std::size_t z = 0; z < below_.size(); ++z) below_[z] = d[z] - c[z] - b[z] + a[z];
  }
  int In(int z, int side) const { return below_[std::size_t(z) + std::size_t(side)] - below_[std::size_t(z)]; }

 private:
  std::vector<std::int32_t> below_;
};

std::optional<TorusBox> TorusGrid::Tightest(const Sides& sides, int wanted) const {
  std::array<int, 3> corners{};
  TorusBox around;
  for (std::size_t i = 0; i < 3; ++i) {
    corners[i] = sides[i] == size_[i] ? 1 : size_[i];  // a side of the whole torus may begin anywhere
    around.sides[i] = std::min(sides[i] + 2, size_[i]);
  }
  std::optional<TorusBox> best;
  std::pair<int, int> least{0, 0};
  Columns own, outer;
  for (int x = 0; x < corners[0]; ++x) {
    around.at[0] = around.sides[0] == sides[0] + 2 ? (x + size_[0] - 1) % size_[0] : x;
    for (int y = 0; y < corners[1]; ++y) {
      own.Point(*this, {{x, y, 0}, sides}, corners[2] + sides[2]);
      if (own.In(0, corners[2] + sides[2] - 1) < wanted) continue;
      bool pointed = false;
      for (int z = 0; z < corners[2]; ++z) {
        const int held = own.In(z, sides[2]);
        if (held < wanted || (best && held > least.first)) continue;
        if (!pointed) {
          around.at[1] = around.sides[1] == sides[1] + 2 ? (y + size_[1] - 1) % size_[1] : y;
          outer.Point(*this, around, 2 * size_[2] + 1);
          pointed = true;
        }
        around.at[2] = around.sides[2] == sides[2] + 2 ? (z + size_[2] - 1) % size_[2] : z;
        const std::pair<int, int> rank{held, outer.In(around.at[2], around.sides[2]) - held};
        if (best && rank >= least) continue;
        best = TorusBox{{x, y, z}, sides};
        least = rank;
        if (rank == std::pair(wanted, 0)) return best;
      }
    }
  }
  return best;
}

std::vector<std::array<int, 3>> TorusGrid::FreeCorners(const Sides& sides) const {
  std::array<int, 3> corners{};
  for (std::size_t i = 0; i < 3; ++i) corners[i] = sides[i] == size_[i] ? 1 : size_[i];
  const auto volume = int(Volume(sides));
  std::vector<std::array<int, 3>> found;
  Columns own;
  for (int x = 0; x < corners[0]; ++x) {
    for (int y = 0; y < corners[1]; ++y) {
      own.Point(*this, {{x, y, 0}, sides}, corners[2] + sides[2]);
      if (own.In(0, corners[2] + sides[2] - 1) < volume) continue;
      for (int z = 0; z < corners[2]; ++z) {
        if (own.In(z, sides[2]) == volume) found.push_back({x, y, z});
      }
    }
  }
  return found;
}

std::vector<Sides> BoxShapes(const Sides& torus, int places) {
  std::vector<Sides> shapes;
  for (int x = 1; x <= std::min(torus[0], places); ++x) {
    if (places % x != 0) continue;
    const int rest = places / x;
    for (int y = 1; y <= std::min(torus[1], rest); ++y) {
      if (rest % y == 0 && rest / y <= torus[2]) shapes.push_back({x, y, rest / y});
    }
  }
  std::stable_sort(shapes.begin(), shapes.end(), [&torus](const Sides& a, const Sides& b) {
    return std::tuple(Diameter(torus, a), -*std::min_element(a.begin(), a.end())) <
           std::tuple(Diameter(torus, b), -*std::min_element(b.begin(), b.end()));
  });
  return shapes;
}

std::vector<TorusBox> FreeBoxes(const TorusGrid& grid, int places, int most) {
  std::vector<TorusBox> boxes;
  if (places < 1 || places > grid.free()) return boxes;
  for (const Sides& sides : BoxShapes(grid.size(), places)) {
    if (int(boxes.size()) >= most) break;
    if (const auto box = grid.Tightest(sides, places)) boxes.push_back(*box);
  }
  return boxes;
}

std::vector<TorusBox> FreeBoxesApart(const TorusGrid& grid, const Sides& sides, int count) {
  const std::vector<std::array<int, 3>> corners = grid.FreeCorners(sides);
  if (int(corners.size()) < count) return {};
  const Sides& size = grid.size();
  const auto links = [&](const std::array<int, 3>& a, const std::array<int, 3>& b) {
    int sum = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const int apart = std::abs(a[i] - b[i]);
      sum += std::min(apart, size[i] - apart);
    }
    return sum;
  };
  const auto overlap = [&](const std::array<int, 3>& a, const std::array<int, 3>& b) {
    for (std::size_t i = 0; i < 3; ++i) {
      const int apart = std::abs(a[i] - b[i]);
      if (apart >= sides[i] && size[i] - apart >= sides[i]) return false;
    }
    return true;
  };
  // From the tightest outwards; most often enough are found long before the end.
  const std::array<int, 3> start = grid.Tightest(sides, int(Volume(sides)))->at;
  std::vector<std::vector<std::array<int, 3>>> by_links(std::size_t(Diameter(size, size)) + 1);
  for (const auto& corner : corners) by_links[std::size_t(links(start, corner))].push_back(corner);
  std::vector<TorusBox> boxes;
  for (std::size_t d = 0; d < by_links.size() && int(boxes.size()) < count; ++d) {
    for (const auto& corner : by_links[d]) {
      if (std::any_of(boxes.begin(), boxes.end(),
                      [&](const TorusBox& box) { return overlap(box.at, corner); }))
        continue;
      boxes.push_back({corner, sides});
      if (int(boxes.size()) == count) break;
    }
  }
  if (int(boxes.size()) < count) return {};
  for (std::size_t i = 1; i < boxes.size(); ++i) {
    const auto next = std::min_element(boxes.begin() + std::ptrdiff_t(i), boxes.end(),
                                       [&](const TorusBox& a, const TorusBox& b) {
                                         return links(boxes[i - 1].at, a.at) < links(boxes[i - 1].at, b.at);
                                       });
    std::swap(boxes[i], *next);
  }
  return boxes;
}

std::optional<TorusBox> SmallestRegion(const TorusGrid& grid, int places) {
  if (places > grid.free()) return std::nullopt;
  const Sides& size = grid.size();
  // Every box of the chain lies in the next, so that what holds enough goes on holding it.
  std::vector<Sides> chain{{1, 1, 1}};
  while (chain.back() != size) {
    Sides next = chain.back();
    std::size_t shortest = 3;
    for (std::size_t i = 0; i < 3; ++i) {
      if (next[i] < size[i] && (shortest == 3 || next[i] < next[shortest])) shortest = i;
    }
    ++next[shortest];
    chain.push_back(next);
  }
  const auto holds = [&](const Sides& sides) {
    return Volume(sides) >= places && grid.Tightest(sides, places).has_value();
  };
  auto sides =
      *std::partition_point(chain.begin(), chain.end() - 1, [&](const Sides& s) { return !holds(s); });
  for (std::size_t i = 0; i < 3; ++i) {
    for (Sides less = sides; less[i] > 1;) {
      --less[i];
      if (!holds(less)) break;
      sides = less;
    }
  }
  return grid.Tightest(sides, places);
}

std::vector<std::array<int, 3>> WalkOf(const Sides& sides, bool closed, const std::array<bool, 3>& ring) {
  const auto longest = std::size_t(std::max_element(sides.begin(), sides.end()) - sides.begin());
  const int length = sides[longest];
  if (!closed || Volume(sides) < 3) return SnakeOf(sides);
  if (Volume(sides) == length) {
    if (ring[longest]) return SnakeOf(sides);
    std::vector<std::array<int, 3>> walk(std::size_t(length), std::array<int, 3>{0, 0, 0});
    for (int i = 0; i < length; ++i) {
      walk[std::size_t(i)][longest] = 2 * i < length ? 2 * i : 2 * (length - 1 - i) + 1;
    }
    return walk;
  }
  // One side against the snake over the other two.
  Sides others = sides;
  others[longest] = 1;
  const std::vector<std::array<int, 3>> snake = SnakeOf(others);
  const bool turned = length % 2 != 0 && snake.size() % 2 == 0;
  const auto round = turned ? RoundOf(int(snake.size()), length) : RoundOf(length, int(snake.size()));
  std::vector<std::array<int, 3>> walk;
  walk.reserve(round.size());
  for (const auto& [row, column] : round) {
    walk.push_back(snake[std::size_t(turned ? row : column)]);
    walk.back()[longest] = turned ? column : row;
  }
  return walk;
}

}  // namespace heddle::placement
