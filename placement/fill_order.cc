#include <algorithm>
#include <utility>

#include "placement/embedding.h"

namespace heddle::placement {
namespace {

struct Dimension {
  std::int64_t stride;
  int size;
};

// The axes beyond tp that are worth an order of their own, Megatron-Core's default order first.
std::vector<Dimension> Dimensions(const Parallelism& p) {
  std::vector<Dimension> out;
  const auto add = [&out](std::int64_t stride, int size) {
    if (size > 1) out.push_back({stride, size});
  };
  const auto cp = StrideOf(p, Axis::kCp), dp = StrideOf(p, Axis::kDp), pp = StrideOf(p, Axis::kPp);
  add(cp.stride, cp.size);
  int inner = p.size(Axis::kFsdp);
  if (inner == 1 && p.ep > 1) {
    const auto ep = StrideOf(p, Axis::kEp);
    const std::int64_t span = ep.stride * ep.size;
    if (span % dp.stride == 0 && dp.size % (span / dp.stride) == 0) inner = int(span / dp.stride);
  }
  add(dp.stride, inner);
  add(dp.stride * inner, dp.size / inner);
  add(pp.stride, pp.size);
  return out;
}

void VisitInOrder(const std::vector<Dimension>& order, std::size_t depth, std::int64_t rank,
                  const std::vector<std::int32_t>& pod_of_rank, std::vector<char>& seen,
                  std::vector<std::int32_t>& out) {
  const Dimension& dimension = order[depth];
  for (int i = 0; i < dimension.size; ++i, rank += dimension.stride) {
    if (depth > 0) {
      VisitInOrder(order, depth - 1, rank, pod_of_rank, seen, out);
      continue;
    }
    const std::int32_t pod = pod_of_rank[std::size_t(rank)];
    if (seen[std::size_t(pod)]) continue;
    seen[std::size_t(pod)] = 1;
    out.push_back(pod);
  }
}

// The same where every pod holds as many ranks and no group cuts through pods unevenly: pods are counted, not
// ranks. False = it is not like that.
bool VisitPods(const std::vector<Dimension>& order, std::int64_t gpus, const std::vector<std::int32_t>& pods,
               std::vector<std::int32_t>& out) {
  std::vector<std::int32_t> places{0};
  places.reserve(pods.size());
  for (const Dimension& dimension : order) {
    const std::int64_t span = dimension.stride * dimension.size;
    std::int64_t stride = 1;
    int size = 1;
    if (dimension.stride % gpus == 0) {
      stride = dimension.stride / gpus;
      size = dimension.size;
    } else if (gpus % dimension.stride == 0 && span % gpus == 0) {
      size = int(span / gpus);
    } else if (gpus % span != 0) {
      return false;
    }
    const std::size_t before = places.size();
    if (before * std::size_t(size) > pods.size()) return false;
    for (int i = 1; i < size; ++i) {
      for (std::size_t p = 0; p < before; ++p) places.push_back(std::int32_t(places[p] + i * stride));
    }
  }
  if (places.size() != pods.size()) return false;
  for (const std::int32_t place : places) out.push_back(pods[std::size_t(place)]);
  return true;
}

}  // namespace

void Regroup(const std::vector<std::int32_t>& class_of_pod, std::size_t classes,
             std::span<std::int32_t> pods) {
  std::vector<std::int32_t> rank(classes, -1), count;
  for (std::int32_t pod : pods) {
    std::int32_t& r = rank[std::size_t(class_of_pod[std::size_t(pod)])];
    if (r < 0) {
      r = std::int32_t(count.size());
      count.push_back(0);
    }
    ++count[std::size_t(r)];
  }
  std::int32_t begin = 0;
  for (std::int32_t& c : count) begin += std::exchange(c, begin);
  std::vector<std::int32_t> grouped(pods.size());
  for (std::int32_t pod : pods) {
    grouped[std::size_t(count[std::size_t(rank[std::size_t(class_of_pod[std::size_t(pod)])])]++)] = pod;
  }
  std::copy(grouped.begin(), grouped.end(), pods.begin());
}

std::vector<FillOrder> FillOrders(const GangRequest& request, const GangClasses& classes) {
  const auto tp = StrideOf(request.parallelism, Axis::kTp);
  const std::vector<Dimension> dimensions = Dimensions(request.parallelism);
  std::vector<std::size_t> turn(dimensions.size());
  for (std::size_t i = 0; i < turn.size(); ++i) turn[i] = i;
  std::vector<std::int32_t> gpu_pods;
  for (std::size_t p = 0; p < request.pods.size(); ++p) {
    if (request.pods[p].gpus > 0) gpu_pods.push_back(std::int32_t(p));
  }
  const std::int64_t gpus = request.pods[std::size_t(gpu_pods.front())].gpus;
  std::vector<FillOrder> out;
  do {
    std::vector<Dimension> order{{tp.stride, tp.size}};
    FillOrder& fill = out.emplace_back();
    std::int64_t ranks = tp.size;
    for (std::size_t t : turn) {
      fill.grains.push_back(ranks);
      order.push_back(dimensions[t]);
      ranks *= dimensions[t].size;
    }
    fill.pods.reserve(std::size_t(classes.gpu_pods));
    if (!VisitPods(order, gpus, gpu_pods, fill.pods)) {
      std::vector<char> seen(request.pods.size(), 0);
      VisitInOrder(order, order.size() - 1, 0, classes.pod_of_rank, seen, fill.pods);
    }
    constexpr std::int64_t kLinedUpTwice = 4096;  // ranks
    std::vector<std::int32_t> before;
    if (ranks <= kLinedUpTwice) before = fill.pods;
    for (int t = 0; t < int(Tier::kRoot); ++t) {
      if (classes.gpus[std::size_t(t)].size() == request.pods.size()) continue;
      Regroup(classes.of_pod[std::size_t(t)], classes.gpus[std::size_t(t)].size(), fill.pods);
    }
    if (!before.empty() && before != fill.pods) {
      fill.unclassed.resize(request.pods.size());
      for (std::size_t i = 0; i < before.size(); ++i) {
        fill.unclassed[std::size_t(before[i])] = std::int32_t(i);
      }
    }
  } while (std::next_permutation(turn.begin(), turn.end()));
  return out;
}

}  // namespace heddle::placement
