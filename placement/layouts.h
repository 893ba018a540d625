#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/plan.h"

namespace heddle::placement {

// Every way to cut one training step of one model over a number of GPUs, and the fastest of them on a fabric.

// bf16 TFLOP/s that one GPU reaches inside the layers of a training step: not its peak, and more than a whole
// step shows, which also waits and communicates. `model` as nvidia-smi names it. 0 = unknown.
//   A100        200   fitted, with kLayerMicros, to 23 runs of a 30B and a 65B model on 64 A100 (arXiv 2311.05610)
//   H100, H200  605   fitted to the 430 TFLOP/s that steps of Llama 3 405B showed on 8,192 H100 (arXiv
//                     2407.21783, table 4)
// What was fitted and what was not, with errors: docs/cost-model.md. Nobody published enough of the others: 61 % of
// the dense bf16 peak of their data sheets, as the H100 reaches.
double AchievedTflops(std::string_view model);

// What a layer costs for each microbatch beside its operations, forward and backward: kernels start, and their
// last waves leave most of the GPU idle. It does not shrink when tp and cp cut the layer, so it is what they
// lose. Fitted together with the A100's rate.
inline constexpr double kLayerMicros = 1700;

// A GPU's memory holds 90 % of this model: the rest is the CUDA context, NCCL's buffers and what fragmentation
// wastes. Our own assumption.
inline constexpr int kUsableMemoryPercent = 90;

struct LayoutLimits {
  std::int64_t world = 0;         // GPUs, 1 … kMaxWorld
  std::int64_t global_batch = 0;  // sequences per step, 1 … 2^31 - 1
  int largest_domain = 0;         // GPUs of the largest NVLink domain: no TP group is larger
  int gpu_memory_gib = 0;         // of the smallest GPU; 0 = nobody knows, and memory leaves no layout out
  double tflops = 0;              // per GPU, as AchievedTflops says; more than 0
  int most_virtual_stages = 64;   // of one pipeline stage; 1 = plain 1F1B, no interleaving
};

// One way to run a layout's pipeline.
struct Schedule {
  // Parts of the model that each stage holds, 1 = plain 1F1B. Megatron-Core interleaves them: the wait is shorter by
  // as much, and there are as many times more sends (SC'21, arXiv 2104.04473, section 2.2.2).
  int virtual_stages = 1;
  // As few as memory asks for: their activations are computed again in the backward pass (Megatron-Core's
  // recompute-method block).
  int recomputed_layers = 0;  // of each stage
  double memory_bytes = 0;    // estimate for a GPU of the first stage, which holds most
  double compute_micros = 0;  // the operations of one step, without the wait of the pipeline
  double fixed_micros = 0;    // kLayerMicros of all its layers and microbatches
  double bubble_micros = 0;   // that wait, as long as communication costs nothing
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// One layout that can run.
struct Layout {
  Parallelism parallelism;
  int microbatches = 1;             // per step and pipeline: global_batch / (dp · microbatch)
  int stage_layers = 1;             // of the largest stage
  std::vector<Schedule> schedules;  // that fit, by virtual stages; at least the plain one
  friend bool operator==(const Layout&, const Layout&) = default;
};

// How many ways there are to write the world as tp·cp·pp·dp, and what left the others out; each is counted at
// the first of these that it fails.
struct LayoutCounts {
  std::int64_t all = 0;
  std::int64_t domain = 0;    // a TP group larger than any NVLink domain
  std::int64_t heads = 0;     // tp does not divide the attention heads
  std::int64_t layers = 0;    // pp divides neither the layers nor the layers + 2
  std::int64_t sequence = 0;  // cp does not cut the sequence in equal halves of equal parts
  std::int64_t batch = 0;     // the global batch is no whole number of microbatches for each pipeline
  std::int64_t experts = 0;   // ep, etp or fsdp do not divide what is left
  std::int64_t memory = 0;    // more than a GPU holds, even when activations are computed again
  std::int64_t legal = 0;
  friend bool operator==(const LayoutCounts&, const LayoutCounts&) = default;
};

struct Layouts {
  std::vector<Layout> legal;  // by tp, cp, pp ascending
  LayoutCounts counts;
};

// `like` says ep, etp, fsdp and the order; its tp, cp, pp and dp are not looked at. Requires: the model's params,
// layers, hidden, seq and microbatch are more than 0, and so is what `limits` says must be.
//   tp  divides the heads (else hidden/128 where that is whole, else hidden) and fits the largest NVLink domain
//   pp  divides the layers, or the layers + 2: then the first and the last stage have one layer less, beside the
//       embedding and the output (as Llama 3 405B with 126 layers in 16 stages, arXiv 2407.21783, section 3.3.2)
//   cp  divides the sequence twice over, as Megatron-Core cuts it (each rank has a part from both ends)
//   memory, per GPU: params·(2 + 4 + 12/(dp·cp)) / (tp·pp) bytes for bf16 weights, fp32 gradients and Adam's
//   state sharded as Megatron-Core's distributed optimizer does; activations of min(pp, microbatches) passes of
//   layers/pp layers at 34·seq·microbatch·hidden/(tp·cp) bytes, or 2 of those that are computed again, and one of
//   these in work (arXiv 2205.05198, table 2: sequence parallel, selective recompute)
//   compute: tokens·(6·params + 6·layers·hidden·seq) / (world·tflops), the second for causal attention (SC'21,
//   appendix); more by 2/layers where stages are unequal, and by a third of what is computed again. fixed:
//   kLayerMicros a layer of a stage and microbatch, and a third again. The pipeline waits (pp - 1)/microbatches of
//   both, less by the virtual stages
//   interleaving: parts of whole layers and as many microbatches as are a multiple of pp (Megatron-Core's rules);
//   a stage then holds 1 + (pp - 1)/(pp·parts) of pp passes (arXiv 2205.05198, section 4.2.3)
Layouts EnumerateLayouts(const Parallelism& like, const ModelHints& model, const LayoutLimits& limits);

// What a step takes once the layout has a place.
struct Suggestion {
  Layout layout;
  Schedule
      schedule;  // of the layout's, the one that makes the shortest step; its bubble is not yet the step's
  Plan plan;
  // As the plan predicts them, but: what is computed again does its forward pass twice, and with it a half more of
  // TP's traffic and a third more of CP's; each virtual stage has sends of its own.
  std::array<double, kAxisCount> axis_micros{};
  double communication_micros = 0;  // their sum
  // Longer than the schedule's: TP, CP and EP traffic of every microbatch makes the stages longer, and so the
  // wait for them.
  double bubble_micros = 0;
  double step_micros = 0;  // compute + fixed + bubble + communication
  friend bool operator==(const Suggestion&, const Suggestion&) = default;
};

struct Suggestions {
  std::vector<Suggestion> fastest;  // the least step time first; ties to the smaller tp, cp, pp
  int priced = 0;                   // layouts for which a place was looked for
  int unplaced = 0;                 // of them, refused
  int skipped = 0;  // what they compute and wait for alone takes longer than the last of the fastest
  Refusal refusal;  // of the first that was refused
};

// Places the layouts on what is free in `state` and keeps the `most` fastest. `request` is a gang whose pods suit
// the world; its parallelism and microbatches are replaced. `state` comes back as it was. Requires: most >= 1.
Suggestions FindFastest(ClusterState& state, const GangRequest& request, const Layouts& layouts, int most);

}  // namespace heddle::placement
