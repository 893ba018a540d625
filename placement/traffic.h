#pragma once

#include <array>
#include <cstdint>

#include "placement/collective.h"
#include "placement/gang.h"

namespace heddle::placement {

// What a training step sends, axis by axis and call by call, from the model hints (performance anchors 3.2;
// Megatron-LM SC'21 section 3, arXiv 2205.05198, ZeRO); without them, defaults that keep TP ≈ EP ≫ CP > FSDP
// shard > DP > PP.

// Which computation the call can run beside.
enum class Overlap : std::uint8_t {
  kNone,      // on the critical path
  kForward,   // gathers parameters ahead of the layer that needs them
  kBackward,  // reduces gradients behind the layer that made them
};

// One kind of call of one group. `bytes` is nccl-tests' S, per rank: the whole array of an all-reduce, the
// gathered array of an all-gather, what a rank holds for all its peers of an all-to-all, the message of a
// send.
struct Transfer {
  Collective collective = Collective::kAllReduce;
  double bytes = 0;        // of one call
  std::int64_t calls = 0;  // per rank and step
  Overlap overlap = Overlap::kNone;
  bool overlappable() const { return overlap != Overlap::kNone; }
};

inline constexpr int kMaxTransfers = 3;

struct AxisTraffic {
  int ranks = 1;  // of one group
  int count = 0;  // how many of `transfers` are said
  std::array<Transfer, kMaxTransfers> transfers{};
};

struct StepTraffic {
  std::array<AxisTraffic, kAxisCount> axes{};
  const AxisTraffic& of(Axis axis) const { return axes[std::size_t(axis)]; }
};

// kDp is the groups of replicas: dp / fsdp ranks where the gang is sharded. kGang sends nothing of its own.
StepTraffic TrafficPerStep(const Parallelism& parallelism, const ModelHints& model);

// What one GPU puts on the wire for it: 2(n-1)/n of an all-reduce, (n-1)/n of the others, a send whole.
double WireBytes(const AxisTraffic& traffic);           // of a step
double WireBytes(const Transfer& transfer, int ranks);  // of all its calls in a step

// Are the hints enough to count bytes (params, layers, hidden, seq), and time (tflops too)?
bool SaysBytes(const ModelHints& model);
bool SaysCompute(const ModelHints& model);

// The parameters that one token meets: `active`, else all.
double ActiveParameters(const ModelHints& model);

// Microseconds of computation in a step, pipeline bubble included: 6 operations per active parameter and
// token (two forward, four backward; arXiv 2001.08361 section 2.1) at the rate that `tflops` says, times
// (m + pp - 1) / m for m micro-batches (SC'21 section 2.2). 0 without the hints.
double ComputeMicrosPerStep(const Parallelism& parallelism, const ModelHints& model);

// Parameters, gradients and optimizer state that one GPU holds, in bytes; mixed precision with Adam: 2 + 4 +
// 12 per parameter, the optimizer's twelve divided over the gradient group (ZeRO-1), all of them where fsdp
// shards. Experts (what of params is not active) are divided by ep and etp, and their optimizer over those
// that hold the same ones. Activations are not in it. 0 without params.
double StateBytesPerGpu(const Parallelism& parallelism, const ModelHints& model);

// The computation of a step that communication can still hide behind: gradients behind the last micro-batch's
// backward pass, parameters behind the first one's forward pass, as Megatron-Core's overlap-grad-reduce and
// overlap-param-gather do. Each Transfer that hides takes its share away, so that two axes cannot hide behind
// the same computation; the sum over all of them does not depend on their order.
struct Windows {
  double forward_us = 0;
  double backward_us = 0;
  int layers = 1;  // of one pipeline stage: the first gather and the last reduction hide behind nothing
};
Windows WindowsOf(const Parallelism& parallelism, const ModelHints& model);  // empty without the hints

// Of `micros` that all calls of the transfer in a step take, what the step waits for.
double VisibleMicros(const Transfer& transfer, double micros, Windows& left);

// What a step waits for one axis: each transfer predicted on the axis's worst group, as often as it is called,
// less what hides. `shape.ranks` is the axis's.
double AxisMicros(const AxisTraffic& traffic, const GroupShape& shape, Windows& left);

}  // namespace heddle::placement
