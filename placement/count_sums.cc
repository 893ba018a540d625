#include "placement/count_sums.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace heddle::placement {
namespace {

// Against so many it is asked whether a sum is at most one of them; beyond, that costs more than to follow it.
constexpr std::size_t kMostCompared = 512;

bool HoldsNothing(const CountRows& part) {
  const auto zero = [](std::int32_t count) { return count == 0; };
  return part.size() == 1 && std::all_of(part[0].begin(), part[0].end(), zero);
}

std::int64_t WeightOf(std::span<const std::int32_t> row, std::span<const std::int64_t> weight) {
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < row.size(); ++k) sum += row[k] * weight[k];
  return sum;
}

// What a part holds at most: of each kind, and by weight.
struct Most {
  std::vector<std::int64_t> counts;
  std::int64_t weight = 0;
};

Most MostOf(const CountRows& part, std::span<const std::int64_t> weight) {
  Most most{std::vector<std::int64_t>(part.kinds(), 0), 0};
  for (std::size_t r = 0; r < part.size(); ++r) {
    for (std::size_t k = 0; k < part.kinds(); ++k) {
      most.counts[k] = std::max<std::int64_t>(most.counts[k], part[r][k]);
    }
    most.weight = std::max(most.weight, WeightOf(part[r], weight));
  }
  return most;
}

}  // namespace

bool AtMost(std::span<const std::int32_t> row, std::span<const std::int32_t> other) {
  for (std::size_t k = 0; k < row.size(); ++k) {
    if (row[k] > other[k]) return false;
  }
  return true;
}

bool CountSums::Run(std::int64_t& budget) {
  const std::size_t kinds = question_.limit.size();
  const std::vector<std::int32_t> nothing(kinds, 0);
  first_ = CountRows(kinds);
  first_.Add(nothing);
  layers_.clear();
  limit_weight_ = WeightOf(question_.limit, question_.weight);
  rest_.assign(kinds, 0);
  rest_weight_ = 0;
  const CountRows* last = nullptr;
  Most most;
  for (const CountRows* part : question_.parts) {
    CHECK(part->kinds() == kinds && part->size() > 0);
    if (part != last) most = MostOf(*part, question_.weight);
    last = part;
    for (std::size_t k = 0; k < kinds; ++k) rest_[k] += most.counts[k];
    rest_weight_ += most.weight;
  }
  for (std::size_t p = 0; p < question_.parts.size(); ++p) {
    const CountRows& part = *question_.parts[p];
    if (HoldsNothing(part)) continue;
    const CountRows& before = sums();
    if (before.size() == 0 || AtMost(question_.limit, before[0]))
      break;  // nothing to add, or nothing left to
    LeaveTo(part);
    if (!Extend(before, p, budget)) return false;
  }
  if (question_.all && sums().size() > 0 && !AtMost(question_.limit, sums()[0])) {
    layers_.push_back({question_.parts.size(), CountRows(kinds), {}, {}});
  }
  return true;
}

void CountSums::LeaveTo(const CountRows& part) {
  const Most most = MostOf(part, question_.weight);
  for (std::size_t k = 0; k < rest_.size(); ++k) rest_[k] -= most.counts[k];
  rest_weight_ -= most.weight;
}

bool CountSums::MayReach(std::span<const std::int32_t> sum) const {
  if (WeightOf(sum, question_.weight) + rest_weight_ < limit_weight_) return false;
  for (std::size_t k = 0; k < sum.size(); ++k) {
    if (sum[k] + rest_[k] < question_.limit[k]) return false;
  }
  return true;
}

bool CountSums::Extend(const CountRows& sums, std::size_t part, std::int64_t& budget) {
  const CountRows& rows = *question_.parts[part];
  const std::size_t kinds = rows.kinds();
  Layer grown{part, CountRows(kinds), {}, {}};
  std::vector<std::int32_t> sum(kinds);
  for (std::size_t s = 0; s < sums.size(); ++s) {
    budget -= std::int64_t(rows.size() * kinds);
    if (budget < 0) return false;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (std::size_t k = 0; k < kinds; ++k) {
        sum[k] =
            std::int32_t(std::min<std::int64_t>(std::int64_t(sums[s][k]) + rows[r][k], question_.limit[k]));
      }
      if (question_.all && !MayReach(sum)) continue;
      grown.sums.Add(sum);
      grown.before.push_back(std::int32_t(s));
      grown.row.push_back(std::int32_t(r));
    }
  }
  if (!KeepLargest(grown, budget)) return false;
  layers_.push_back(std::move(grown));
  return true;
}

bool CountSums::KeepLargest(Layer& grown, std::int64_t& budget) const {
  const CountRows& sums = grown.sums;
  const auto& limit = question_.limit;
  const auto many = std::size_t(std::max_element(limit.begin(), limit.end()) - limit.begin());
  const auto differ = [many](std::span<const std::int32_t> one, std::span<const std::int32_t> other) {
    std::size_t kind = 0;
    while (kind < one.size() && (kind == many || one[kind] == other[kind])) ++kind;
    return kind < one.size() ? kind : many;
  };
  std::vector<std::int32_t> order(sums.size()), kept;
  std::iota(order.begin(), order.end(), 0);
  // Descending, the kind with most things last: what is at most another comes after it.
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const auto one = sums[std::size_t(a)], other = sums[std::size_t(b)];
    const std::size_t kind = differ(one, other);
    return one[kind] != other[kind] ? one[kind] > other[kind] : a < b;
  });
  for (const std::int32_t s : order) {
    const auto row = sums[std::size_t(s)];
    // Of those that differ in that kind alone the first is the largest.
    if (!kept.empty() && differ(row, sums[std::size_t(kept.back())]) == many) continue;
    if (kept.size() <= kMostCompared) {
      budget -= std::int64_t(kept.size()) / 4;  // most differ in the first kind
      if (budget < 0) return false;
      const auto above = [&](std::int32_t other) { return AtMost(row, sums[std::size_t(other)]); };
      if (std::any_of(kept.begin(), kept.end(), above)) continue;
    }
    kept.push_back(s);
  }
  if (question_.beam > 0 && kept.size() > question_.beam) {
    const auto heavier = [&](std::int32_t a, std::int32_t b) {
      return WeightOf(sums[std::size_t(a)], question_.weight) >
             WeightOf(sums[std::size_t(b)], question_.weight);
    };
    std::stable_sort(kept.begin(), kept.end(), heavier);
    kept.resize(question_.beam);
  }
  Layer out{grown.part, CountRows(sums.kinds()), {}, {}};
  for (const std::int32_t s : kept) {
    out.sums.Add(sums[std::size_t(s)]);
    out.before.push_back(grown.before[std::size_t(s)]);
    out.row.push_back(grown.row[std::size_t(s)]);
  }
  grown = std::move(out);
  return true;
}

std::vector<std::int32_t> CountSums::RowsOf(std::size_t sum) const {
  CHECK(sum < sums().size());
  std::vector<std::int32_t> rows(question_.parts.size(), 0);
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const Layer& layer = layers_[l];
    rows[layer.part] = layer.row[sum];
    sum = std::size_t(layer.before[sum]);
  }
  return rows;
}

}  // namespace heddle::placement
