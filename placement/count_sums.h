#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace heddle::placement {

// Rows of counts, one for each of equally many kinds of things.
class CountRows {
 public:
  explicit CountRows(std::size_t kinds = 0) : kinds_(kinds) {}
  std::size_t kinds() const { return kinds_; }
  std::size_t size() const { return rows_; }
  std::span<const std::int32_t> operator[](std::size_t row) const {
    return {counts_.data() + row * kinds_, kinds_};
  }
  void Add(std::span<const std::int32_t> row) {
    counts_.insert(counts_.end(), row.begin(), row.end());
    ++rows_;
  }

 private:
  std::size_t kinds_, rows_ = 0;
  std::vector<std::int32_t> counts_;
};

// Whether no count of the one is more than the other's.
bool AtMost(std::span<const std::int32_t> row, std::span<const std::int32_t> other);

// What several parts hold together, where each holds any of its rows and whatever is at most that: all sums of one row
// of each, but for those that are at most another. Exact, as long as the budget lasts. Thread rule: one owner.
class CountSums {
 public:
  struct Question {
    std::vector<const CountRows*> parts;  // of equally many kinds, each with a row at least; kept
    std::vector<std::int32_t> limit;      // by kind, at least 1: more is not wanted, and a sum is cut to it
    std::vector<std::int64_t> weight;     // by kind: GPUs; only what may still reach the limit is followed
    bool all = false;                     // only the whole limit is of use
    std::size_t beam = 0;                 // follow no more than so many sums, the heaviest; 0 = all of them
  };
  explicit CountSums(Question question) : question_(std::move(question)) {}

  // False = the budget, in counts looked at, ran out before the answer; it is lowered by what was looked at.
  bool Run(std::int64_t& budget);
  // After Run. With `all`, the limit or nothing: with a beam nothing proves nothing.
  const CountRows& sums() const { return layers_.empty() ? first_ : layers_.back().sums; }
  // Which row of each part makes up at least the sum.
  std::vector<std::int32_t> RowsOf(std::size_t sum) const;

 private:
  struct Layer {
    std::size_t part = 0;
    CountRows sums;
    std::vector<std::int32_t> before, row;  // by sum: the one of the layer before, and what the part adds
  };
  void LeaveTo(const CountRows& part);
  bool MayReach(std::span<const std::int32_t> sum) const;
  bool Extend(const CountRows& sums, std::size_t part, std::int64_t& budget);
  bool KeepLargest(Layer& grown, std::int64_t& budget) const;

  Question question_;
  CountRows first_;
  std::vector<Layer> layers_;  // of the parts that hold anything
  // What the parts that follow hold at most.
  std::vector<std::int64_t> rest_;
  std::int64_t rest_weight_ = 0, limit_weight_ = 0;
};

}  // namespace heddle::placement
