#include "placement/remainder.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

namespace heddle::placement {
namespace {

constexpr std::size_t kAxes = std::tuple_size_v<decltype(Parallelism::order)>;

int& SizeOf(Parallelism& parallelism, Axis axis) {
  switch (axis) {
    case Axis::kTp:
      return parallelism.tp;
    case Axis::kCp:
      return parallelism.cp;
    case Axis::kPp:
      return parallelism.pp;
    default:
      return parallelism.dp;
  }
}

// The layout with what is to stay of it.
class Layers {
 public:
  Layers(const Parallelism& parallelism, const std::vector<Requirement>& require,
         const std::vector<Requirement>& prefer)
      : parallelism_(parallelism) {
    for (std::size_t at = 0; at < kAxes; ++at) {
      if (parallelism.size(parallelism.order[at]) > 1) outermost_ = at;
    }
    Name(Axis::kTp);
    for (const auto* named : {&require, &prefer}) {
      for (const Requirement& one : *named) Name(one.axis);
    }
  }

  // By how many of the inner axes may stay as they are: the most first. Empty = nothing can be left out.
  std::vector<std::size_t> Depths() const {
    std::vector<std::size_t> depths;
    if (bound_) return depths;
    for (std::size_t depth = outermost_ + 1; depth > fewest_; --depth) depths.push_back(depth - 1);
    // A group that may get smaller; of TP that would be another program.
    if (depths.empty() && parallelism_.order[outermost_] != Axis::kTp) depths.push_back(outermost_);
    return depths;
  }

  std::int64_t RanksBelow(std::size_t depth) const {
    std::int64_t ranks = 1;
    for (std::size_t at = 0; at < depth; ++at) ranks *= parallelism_.size(parallelism_.order[at]);
    return ranks;
  }

  // The inner axes as they are, and `blocks` of what they make.
  std::optional<Parallelism> With(std::size_t depth, std::int64_t blocks) const {
    Parallelism left = parallelism_;
    Axis joined = parallelism_.order[outermost_];
    for (std::size_t at = depth; at < kAxes; ++at) {
      const Axis axis = parallelism_.order[at];
      if (depth < outermost_ && axis == Axis::kDp) joined = axis;
      SizeOf(left, axis) = 1;
    }
    SizeOf(left, joined) = int(blocks);
    if (left.fsdp > 0 && left.dp % left.fsdp != 0) left.fsdp = 0;
    if (WhyNotLaidOut(left).empty()) return left;
    left.ep = 1;
    left.etp = 0;
    if (WhyNotLaidOut(left).empty()) return left;
    return std::nullopt;
  }

 private:
  void Name(Axis axis) {
    if (axis == Axis::kGang || parallelism_.size(axis) < 2) return;
    if (axis == Axis::kEp || axis == Axis::kFsdp) {
      bound_ = true;  // these run through the others
      return;
    }
    const auto at = std::find(parallelism_.order.begin(), parallelism_.order.end(), axis);
    fewest_ = std::max(fewest_, std::size_t(at - parallelism_.order.begin()) + 1);
  }

  const Parallelism& parallelism_;
  std::size_t outermost_ = 0;  // by position in the order
  std::size_t fewest_ = 0;     // inner axes that stay as they are
  bool bound_ = false;
};

// The pods that are not in a unit of so many of which all are gone.
std::vector<std::int32_t> PodsLeft(const std::vector<bool>& gone, std::size_t unit) {
  std::vector<std::int32_t> left;
  for (std::size_t first = 0; first < gone.size(); first += unit) {
    const auto begin = gone.begin() + std::ptrdiff_t(first), end = begin + std::ptrdiff_t(unit);
    if (std::find(begin, end, false) == end) continue;
    for (std::size_t pod = first; pod < first + unit; ++pod) left.push_back(std::int32_t(pod));
  }
  return left;
}

}  // namespace

Remainder RemainderOf(const Parallelism& parallelism, const std::vector<Requirement>& require,
                      const std::vector<Requirement>& prefer, int gpus_per_pod,
                      const std::vector<bool>& gone) {
  Remainder best{parallelism, std::vector<std::int32_t>(gone.size())};
  std::iota(best.pods.begin(), best.pods.end(), 0);
  if (std::find(gone.begin(), gone.end(), true) == gone.end()) return best;
  if (std::find(gone.begin(), gone.end(), false) == gone.end()) return {parallelism, {}};
  if (gpus_per_pod < 1 || !WhyNotLaidOut(parallelism).empty()) return best;
  if (std::int64_t(gone.size()) * gpus_per_pod != parallelism.world()) return best;
  const Layers layers(parallelism, require, prefer);
  for (const std::size_t depth : layers.Depths()) {
    const std::int64_t block = layers.RanksBelow(depth);
    // Whole blocks and whole pods. Both divide the world, and so does this.
    const std::int64_t unit = std::lcm(block, std::int64_t(gpus_per_pod));
    std::vector<std::int32_t> left = PodsLeft(gone, std::size_t(unit / gpus_per_pod));
    if (left.size() >= best.pods.size()) continue;
    const std::int64_t blocks = std::int64_t(left.size()) * gpus_per_pod / block;
    if (const auto laid_out = layers.With(depth, blocks)) best = {*laid_out, std::move(left)};
  }
  return best;
}

}  // namespace heddle::placement
