#pragma once

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "placement/gang.h"

namespace heddle::crds {

// The annotations of an ML engineer. Every refusal is one sentence that says what to write instead; the
// caller adds the annotation's name with Error::In.

inline constexpr int kMaxPods = 16384;
inline constexpr int kMaxGpusPerPod = 32;
inline constexpr int kMaxWorld = kMaxPods * kMaxGpusPerPod;

// "tp=8,pp=2,dp=8", also ep, etp, fsdp and order=tp-cp-ep-dp-pp. Spaces around words are allowed.
[[nodiscard]] base::Result<placement::Parallelism> ParseParallelism(std::string_view text);
// "params=70e9,layers=80,hidden=8192,seq=8192,microbatch=1", also microbatches and tflops, and of a mixture of
// experts active, experts and topk; heads and kvheads of attention.
[[nodiscard]] base::Result<placement::ModelHints> ParseModel(std::string_view text);
// "tp=nvlink,dp=leaf"; sorted by axis.
[[nodiscard]] base::Result<std::vector<placement::Requirement>> ParseConstraints(std::string_view text);
// "90s", "30m", "1h30m".
[[nodiscard]] base::Result<std::chrono::seconds> ParseWait(std::string_view text);
// "restart" (true) or "wait" (false): what becomes of a gang one of whose ranks finds no place any more.
[[nodiscard]] base::Result<bool> ParseOnDegraded(std::string_view text);
// "true" or "false", without spaces: the admission policy compares the text as it is.
[[nodiscard]] base::Result<bool> ParseComputeDomain(std::string_view text);

// Does the world fill the gang's GPUs exactly?
[[nodiscard]] base::Status CheckWorld(const placement::Parallelism& parallelism, int pods, int gpus_per_pod);

// "tp-cp-dp-pp"; with or without ep, which must stand right before the first of dp and pp.
[[nodiscard]] base::Result<std::array<placement::Axis, 4>> ParseOrder(std::string_view text);
std::string FormatOrder(const std::array<placement::Axis, 4>& order);

}  // namespace heddle::crds
