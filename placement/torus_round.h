#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "placement/torus.h"

namespace heddle::placement {

// Orders for places that make no whole box.

// Cuts places into `parts` of equal number that are compact, each a range of the result: half by half across
// the longest extent. Coordinates are taken as they are: nothing is near around an end. Requires: `parts`
// divides their number.
void CutIntoParts(std::vector<std::array<int, 3>>& places, int parts);

// Makes rounds through places of one torus; its table is reused. Thread rule: one owner.
class TorusRounds {
 public:
  explicit TorusRounds(const Sides& torus);

  // Every place once, so that no step, and not the one from the last to the first, is much longer than it
  // must be: three links a dimension at the most where places touch each other in one piece, even if only by
  // corners, and mostly two. Requires: the places lie in the torus and are different.
  std::vector<std::array<int, 3>> Through(const std::vector<std::array<int, 3>>& places);

 private:
  using Place = std::array<int, 3>;
  std::size_t At(const Place& place) const {
    return (std::size_t(place[0]) * std::size_t(size_[1]) + std::size_t(place[1])) * std::size_t(size_[2]) +
           std::size_t(place[2]);
  }
  int Stretch(std::int32_t a, std::int32_t b) const;
  std::int32_t Neighbour(std::int32_t from, const Place& step) const;
  int Visit(int reach);
  void Tour(std::int32_t root, const std::vector<Place>& steps);
  void JoinTours();
  void Shorten(int longest, std::int64_t budget);
  bool ShortenAt(std::size_t at, int longest, const std::vector<Place>& steps, std::int64_t& budget);
  void Reverse(std::size_t from, std::size_t to, std::int64_t& budget);

  const Sides size_;
  std::vector<std::int32_t> index_at_;  // by place of the torus; -1 = not among them
  std::vector<Place> places_;
  std::vector<char> seen_;
  std::vector<std::int32_t> order_, position_;
  std::vector<std::size_t> tours_;  // where each piece's tour begins in order_
};

}  // namespace heddle::placement
