#include "placement/gang.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"

namespace heddle::placement {
namespace {

constexpr std::array<std::string_view, kAxisCount> kAxisNames{"tp", "cp", "ep", "dp", "pp", "fsdp", "gang"};
constexpr std::array<std::string_view, 6> kLevelNames{"nvlink", "node", "leaf", "su", "spine", "site"};

std::int64_t ExpertStride(const Parallelism& parallelism) {
  std::int64_t stride = 1;
  for (Axis axis : parallelism.order) {
    if (axis == Axis::kDp || axis == Axis::kPp) break;
    if (axis == Axis::kTp) stride *= ExpertTp(parallelism);
  }
  return stride;
}

}  // namespace

int ExpertTp(const Parallelism& parallelism) {
  return parallelism.etp == 0 ? parallelism.tp : parallelism.etp;
}

std::string WhyNoModel(const ModelHints& model) {
  const int sizes[] = {model.layers, model.hidden,  model.seq,  model.microbatch, model.microbatches,
                       model.tflops, model.experts, model.topk, model.heads,      model.kvheads};
  if (!std::isfinite(model.params) || model.params < 0 || !std::isfinite(model.active) || model.active < 0 ||
      std::any_of(std::begin(sizes), std::end(sizes), [](int size) { return size < 0; })) {
    return "the model's sizes must be numbers that are not negative";
  }
  if (model.params > 0 && model.active > model.params) {
    return fmt::format("active={:g} is more than params={:g}: a token meets some of the parameters",
                       model.active, model.params);
  }
  if (model.experts > 0 && model.topk > model.experts)
    return fmt::format("topk={} is more than the experts={} of a layer", model.topk, model.experts);
  if (model.heads > 0 && model.kvheads > model.heads)
    return fmt::format("kvheads={} is more than heads={}", model.kvheads, model.heads);
  return {};
}

std::string_view AxisName(Axis axis) {
  return kAxisNames[std::size_t(axis)];
}

std::optional<Axis> ParseAxis(std::string_view name) {
  const auto found = std::find(kAxisNames.begin(), kAxisNames.end(), name);
  if (found == kAxisNames.end()) return std::nullopt;
  return Axis(found - kAxisNames.begin());
}

std::string_view LevelName(Level level) {
  return kLevelNames[std::size_t(level)];
}

std::optional<Level> ParseLevel(std::string_view name) {
  const auto found = std::find(kLevelNames.begin(), kLevelNames.end(), name);
  if (found == kLevelNames.end()) return std::nullopt;
  return Level(found - kLevelNames.begin());
}

int Parallelism::size(Axis axis) const {
  switch (axis) {
    case Axis::kTp:
      return tp;
    case Axis::kCp:
      return cp;
    case Axis::kEp:
      return ep;
    case Axis::kDp:
      return dp;
    case Axis::kPp:
      return pp;
    case Axis::kFsdp:
      return std::max(fsdp, 1);
    case Axis::kGang:
      return int(world());
  }
  return 1;
}

AxisStride StrideOf(const Parallelism& parallelism, Axis axis) {
  if (axis == Axis::kGang) return {1, parallelism.size(axis)};
  if (axis == Axis::kEp) return {ExpertStride(parallelism), parallelism.ep};
  const Axis dense = axis == Axis::kFsdp ? Axis::kDp : axis;
  std::int64_t stride = 1;
  for (Axis before : parallelism.order) {
    if (before == dense) break;
    stride *= parallelism.size(before);
  }
  return {stride, parallelism.size(axis)};
}

AxisStride TrafficStrideOf(const Parallelism& parallelism, Axis axis) {
  AxisStride out = StrideOf(parallelism, axis);
  if (axis != Axis::kDp) return out;
  const int shard = parallelism.size(Axis::kFsdp);
  return {out.stride * shard, out.size / shard};
}

std::string WhyNotLaidOut(const Parallelism& parallelism) {
  std::int64_t world = 1;
  for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp}) {
    const int size = parallelism.size(axis);
    if (size < 1) return fmt::format("{}={}: must be at least 1", AxisName(axis), size);
    if (size > kMaxWorld || world * size > kMaxWorld) {
      return fmt::format("{}={}: the gang would have more than {} ranks", AxisName(axis), size, kMaxWorld);
    }
    world *= size;
  }
  auto order = parallelism.order;
  std::sort(order.begin(), order.end());
  if (order != std::array<Axis, 4>{Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp}) {
    return "order: must name tp, cp, dp and pp once each";
  }
  if (parallelism.ep < 1) return fmt::format("ep={}: must be at least 1", parallelism.ep);
  if (parallelism.etp < 0) return fmt::format("etp={}: must not be negative", parallelism.etp);
  if (parallelism.fsdp < 0) return fmt::format("fsdp={}: must not be negative", parallelism.fsdp);
  if (parallelism.fsdp > 0 && parallelism.dp % parallelism.fsdp != 0) {
    return fmt::format("fsdp={}: must divide dp={}", parallelism.fsdp, parallelism.dp);
  }
  if (parallelism.ep == 1) return "";
  const std::int64_t expert = std::int64_t(parallelism.ep) * ExpertTp(parallelism);
  if (expert > world || world % (expert * parallelism.pp) != 0) {
    return fmt::format("ep={} x etp={} x pp={}: must divide the {} ranks", parallelism.ep,
                       ExpertTp(parallelism), parallelism.pp, world);
  }
  const auto stride = StrideOf(parallelism, Axis::kEp);
  if (world % (stride.stride * stride.size) != 0) {
    return fmt::format("ep={}: its groups do not tile the {} ranks", parallelism.ep, world);
  }
  return "";
}

std::vector<std::vector<std::int32_t>> Groups(const Parallelism& parallelism, Axis axis) {
  const auto [stride, size] = StrideOf(parallelism, axis);
  const std::int64_t world = parallelism.world();
  const std::int64_t block = stride * size;
  CHECK(block > 0 && world % block == 0);
  std::vector<std::vector<std::int32_t>> groups;
  groups.reserve(std::size_t(world / size));
  for (std::int64_t outer = 0; outer < world; outer += block) {
    for (std::int64_t inner = 0; inner < stride; ++inner) {
      auto& group = groups.emplace_back();
      group.reserve(std::size_t(size));
      for (int i = 0; i < size; ++i) group.push_back(std::int32_t(outer + inner + i * stride));
    }
  }
  return groups;
}

}  // namespace heddle::placement
