#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace heddle::placement {

// Boxes of a 3D torus, without a word of nodes and gangs. Every dimension closes: its last place neighbours
// its first.

using Sides = std::array<int, 3>;  // x, y, z; each at least 1

// The largest torus that is searched: 131,072 nodes are eight times the largest published training job's.
inline constexpr std::int64_t kMostTorusPlaces = 131'072;

struct TorusBox {
  std::array<int, 3> at{};  // the corner, inside of the torus
  Sides sides{1, 1, 1};     // from there upwards, around the ends where need be
  friend bool operator==(const TorusBox&, const TorusBox&) = default;
};

constexpr std::int64_t Volume(const Sides& sides) {
  return std::int64_t(sides[0]) * sides[1] * sides[2];
}
// The most links between two places of a box. A side as long as the torus closes; any other is a line.
int Diameter(const Sides& torus, const Sides& sides);

// Which places are free, and how many of any box, in constant time. Immutable; about 33 bytes a place.
class TorusGrid {
 public:
  // `free` by (x · Y + y) · Z + z: not 0 = free. Requires: sides of 1 to 1024, at most kMostTorusPlaces of
  // them in all, and one entry of `free` for each.
  TorusGrid(const Sides& size, const std::vector<std::uint8_t>& free);

  const Sides& size() const { return size_; }
  int free() const { return FreeIn({{0, 0, 0}, size_}); }
  // Requires: the corner lies in the torus and no side is longer than the torus.
  int FreeIn(const TorusBox& box) const;
  // Of the boxes of these sides with at least `wanted` free places: the one with the fewest, then the one
  // that leaves the fewest free places around it, which others could still use, then the first corner.
  std::optional<TorusBox> Tightest(const Sides& sides, int wanted) const;
  // Every corner from which a box of these sides is wholly free, ascending; 0 where a side is the torus.
  std::vector<std::array<int, 3>> FreeCorners(const Sides& sides) const;

 private:
  class Columns;
  std::size_t At(int x, int y, int z) const {
    return (std::size_t(x) * std::size_t(2 * size_[1] + 1) + std::size_t(y)) * std::size_t(2 * size_[2] + 1) +
           std::size_t(z);
  }

  Sides size_;
  // Free places below (x, y, z) in eight copies of the torus side by side: no box has to be cut at an end.
  std::vector<std::int32_t> below_;
};

// The sides of every box of `places` places that the torus has room for, in every orientation: least diameter
// first, then the longest shortest side, then by x, y and z.
std::vector<Sides> BoxShapes(const Sides& torus, int places);

// At most `most` wholly free boxes of `places` places, one of each shape, in the order of BoxShapes. Empty if
// and only if no box of any shape is free.
std::vector<TorusBox> FreeBoxes(const TorusGrid& grid, int places, int most);

// `count` free boxes of these sides that do not overlap, near each other, and each followed by the nearest of
// the rest. Empty where that many were not found; they are taken one after the other, so that another choice
// might have found them.
std::vector<TorusBox> FreeBoxesApart(const TorusGrid& grid, const Sides& sides, int count);

// A box with at least `places` free places, near a cube, of which no side can be one shorter. Nothing where
// the whole torus has too few.
std::optional<TorusBox> SmallestRegion(const TorusGrid& grid, int places);

// Every place of a box once, as offsets from its corner, each beside the one before it. With `closed` the
// last lies beside the first too, as far as that can be: a line goes out on every other place and comes back
// on the rest, two places at a step, unless it is a `ring` (as long as the torus); a box whose sides are all
// odd has one step to a diagonal neighbour.
std::vector<std::array<int, 3>> WalkOf(const Sides& sides, bool closed, const std::array<bool, 3>& ring);

}  // namespace heddle::placement
