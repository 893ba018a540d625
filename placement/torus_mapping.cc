#include "placement/torus_mapping.h"

#include <algorithm>
#include <numeric>

namespace heddle::placement {
namespace {

// Cuts every axis's size into factors along x, y and z that multiply to the sides, in all ways.
class Cuts {
 public:
  Cuts(const Sides& sides, const std::vector<TorusAxis>& axes, std::size_t most) : axes_(axes), most_(most) {
    cut_.resize(axes.size());
    Cut(0, sides);
  }

  std::vector<std::vector<Sides>> found;  // by axis, the part of each side

 private:
  void Cut(std::size_t axis, const Sides& left) {
    if (found.size() >= most_) return;
    if (axis == axes_.size()) {
      found.push_back(cut_);
      return;
    }
    const int size = axes_[axis].size;
    const bool last = axis + 1 == axes_.size();
    for (int x = 1; x <= std::min(size, left[0]); ++x) {
      if (size % x != 0 || left[0] % x != 0 || (last && x != left[0])) continue;
      for (int y = 1; y <= std::min(size / x, left[1]); ++y) {
        if (size / x % y != 0 || left[1] % y != 0 || (last && y != left[1])) continue;
        const int z = size / x / y;
        if (left[2] % z != 0) continue;
        cut_[axis] = {x, y, z};
        Cut(axis + 1, {left[0] / x, left[1] / y, left[2] / z});
      }
    }
  }

  const std::vector<TorusAxis>& axes_;
  const std::size_t most_;
  std::vector<Sides> cut_;
};

// The part of a side is all of the torus: a step past its end is a step to its beginning.
bool Closes(const Sides& torus, const Sides& part, const Sides& stride, std::size_t side) {
  return part[side] * stride[side] == torus[side];
}

// The most links along one dimension of any step of the axis.
int LongestStep(const Sides& torus, const TorusAxis& axis, const Sides& part, const Sides& stride) {
  int longest = 1, lines = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    if (part[i] < 2) continue;
    ++lines;
    const bool folded = axis.closed && part[i] > 2 && axis.size == part[i] && !Closes(torus, part, stride, i);
    longest = std::max(longest, folded ? 2 * stride[i] : stride[i]);
  }
  return lines == 0 ? 0 : longest;
}

struct Candidate {
  double estimate = 0;
  std::size_t cut = 0;
  std::vector<Sides> strides;  // by axis
};

}  // namespace

std::vector<TorusMapping> MappingsOnto(const Sides& torus, const Sides& sides,
                                       const std::vector<TorusAxis>& axes, int most) {
  std::vector<std::size_t> turn(axes.size());
  std::iota(turn.begin(), turn.end(), 0);
  // The heaviest axis innermost is most often best, and is tried first.
  std::stable_sort(turn.begin(), turn.end(),
                   [&](std::size_t a, std::size_t b) { return axes[a].weight > axes[b].weight; });
  const std::vector<std::size_t> by_weight = turn;
  std::vector<std::size_t> order(axes.size());
  std::iota(order.begin(), order.end(), 0);
  const Cuts cuts(sides, axes, kMappingsTried);

  std::vector<Candidate> kept;
  int tried = 0;
  Candidate candidate;
  candidate.strides.resize(axes.size());
  do {
    for (std::size_t c = 0; c < cuts.found.size() && tried < kMappingsTried; ++c, ++tried) {
      const std::vector<Sides>& cut = cuts.found[c];
      Sides stride{1, 1, 1};
      candidate.estimate = 0;
      candidate.cut = c;
      for (const std::size_t place : order) {
        const std::size_t axis = by_weight[place];
        candidate.strides[axis] = stride;
        candidate.estimate += axes[axis].weight * LongestStep(torus, axes[axis], cut[axis], stride);
        for (std::size_t i = 0; i < 3; ++i) stride[i] *= cut[axis][i];
      }
      if (int(kept.size()) == most && candidate.estimate >= kept.back().estimate) continue;
      const auto at =
          std::upper_bound(kept.begin(), kept.end(), candidate.estimate,
                           [](double value, const Candidate& other) { return value < other.estimate; });
      kept.insert(at, candidate);
      if (int(kept.size()) > most) kept.pop_back();
    }
  } while (tried < kMappingsTried && std::next_permutation(order.begin(), order.end()));

  std::vector<TorusMapping> mappings;
  for (const Candidate& best : kept) {
    TorusMapping& mapping = mappings.emplace_back();
    mapping.estimate = best.estimate;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      const Sides &part = cuts.found[best.cut][axis], &stride = best.strides[axis];
      std::array<bool, 3> ring{};
      for (std::size_t i = 0; i < 3; ++i) ring[i] = Closes(torus, part, stride, i);
      auto& offsets = mapping.offsets.emplace_back(WalkOf(part, axes[axis].closed, ring));
      for (auto& offset : offsets) {
        for (std::size_t i = 0; i < 3; ++i) offset[i] *= stride[i];
      }
    }
  }
  return mappings;
}

}  // namespace heddle::placement
