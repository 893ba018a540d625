#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "base/result.h"
#include "placement/layouts.h"
#include "sizing/design.h"

namespace heddle::sizing {

// What a job on all GPUs would take, by the planner and the cost model that `plan` uses, on the drawn cluster.

struct JobWish {
  placement::ModelHints model;  // params, layers, hidden and seq said
  std::int64_t batch = 0;       // sequences per step, 1 or more
  bool batch_said = false;      // by a person, and then taken as it is
  placement::Parallelism like;  // its world is 1: the fastest layout; else the layout
};

struct Prediction {
  // One all-reduce of kAllReduceBytes over all GPUs, one rank each.
  double all_reduce_micros = 0;
  double bus_gbs = 0;  // nccl-tests' bus bandwidth of it
  // The step of the fastest layout; or why there is none.
  std::variant<placement::Suggestion, std::string> step;
  std::int64_t batch =
      0;  // as it was said, else the next that the nodes divide, so that all of them have work
};
inline constexpr double kAllReduceBytes = double(std::int64_t{1} << 30);

// Beyond it nothing is predicted: drawing alone takes minutes. Our own measure.
inline constexpr std::int64_t kMostPredicted = 131'072;

// Errors, as sentences that say why nothing is predicted: machines that the cost model does not know, and clusters
// that cannot be drawn.
[[nodiscard]] base::Result<Prediction> Predict(const Design& design, const JobWish& job);

}  // namespace heddle::sizing
