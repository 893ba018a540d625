#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/fabric.h"

namespace heddle::placement {

// What a gang asks for. All are values without identity; the caller keeps names and UIDs.

enum class Axis : std::uint8_t { kTp, kCp, kEp, kDp, kPp, kFsdp, kGang };  // kGang: all pods together
inline constexpr int kAxisCount = 7;
std::string_view AxisName(Axis axis);  // "tp", "cp", "ep", "dp", "pp", "fsdp", "gang"
std::optional<Axis> ParseAxis(std::string_view name);

// The smallest part of the fabric that a group must lie in, nearest first.
enum class Level : std::uint8_t { kNvlink, kNode, kLeaf, kUnit, kSpine, kSite };
std::string_view LevelName(Level level);  // "nvlink", "node", "leaf", "su", "spine", "site"
std::optional<Level> ParseLevel(std::string_view name);

// World = tp·cp·dp·pp. The expert layout (ep, etp) is a second cut of the same ranks: ep·etp·pp divides the
// world.
struct Parallelism {
  int tp = 1, cp = 1, dp = 1, pp = 1;
  int ep = 1;
  int etp = 0;   // 0 = as tp (Megatron-Core's default)
  int fsdp = 0;  // shard size within dp; 0 = not sharded
  // Fastest-varying first. Megatron-Core's default order tp-cp-ep-dp-pp; ep stands inside dp and has no
  // stride here.
  std::array<Axis, 4> order{Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp};
  friend bool operator==(const Parallelism&, const Parallelism&) = default;

  std::int64_t world() const { return std::int64_t(tp) * cp * dp * pp; }
  int size(Axis axis) const;
};

// The ranks of one group of an axis lie `stride` apart, `size` of them; stride·size divides the world.
struct AxisStride {
  std::int64_t stride = 1;
  int size = 1;
};
// kEp reads the expert layout: tp becomes etp, cp becomes 1, ep stands just before the first of dp and pp, as
// in both of Megatron-Core's orders (tp-cp-ep-dp-pp and tp-cp-ep-pp-dp).
AxisStride StrideOf(const Parallelism& parallelism, Axis axis);

// The groups that send the axis's traffic: with a shard (fsdp), dp's traffic runs between the replicas of each
// shard only.
AxisStride TrafficStrideOf(const Parallelism& parallelism, Axis axis);

// Why these sizes cannot be laid out, as a sentence; empty = sound.
std::string WhyNotLaidOut(const Parallelism& parallelism);

// The most ranks a gang may have: the largest published job is 131,072 GPUs; beyond eight times that it is a
// typo.
inline constexpr std::int64_t kMaxWorld = std::int64_t(1) << 20;

// The ranks of every group of one axis, by Megatron-Core's rule: a group is the ranks that share all other
// indices. Groups are sorted by their smallest rank; ranks inside a group ascend. kGang gives one group of
// all ranks. Requires: WhyNotLaidOut is empty.
std::vector<std::vector<std::int32_t>> Groups(const Parallelism& parallelism, Axis axis);

// The expert layout's tensor parallelism: etp, or tp where it is 0.
int ExpertTp(const Parallelism& parallelism);

// What a person said of the model; weighs the axes by real bytes. Zero = not said.
struct ModelHints {
  double params = 0;
  int layers = 0, hidden = 0, seq = 0, microbatch = 0;
  int microbatches = 0;  // per step and pipeline; 0 = pp·4
  int tflops = 0;  // achieved per GPU, TFLOP/s; with it a step's computation is predicted, and what hides
                   // behind it
  // Of a mixture of experts: the parameters that a token meets, the experts of a layer and how many of them
  // it is sent to ("671B, of which 37B are active; 8 of 256").
  double active = 0;
  int experts = 0, topk = 0;
  int heads = 0, kvheads = 0;  // attention heads, and how many of keys and values (grouped queries)
  friend bool operator==(const ModelHints&, const ModelHints&) = default;
};

// Why no model looks like that, as a sentence; empty = one may.
std::string WhyNoModel(const ModelHints& model);

struct Requirement {
  Axis axis = Axis::kTp;
  Level level = Level::kNvlink;
  friend bool operator==(const Requirement&, const Requirement&) = default;
};

struct Resources {
  std::int64_t milli_cpu = 0;
  std::int64_t memory_bytes = 0;
  std::vector<std::pair<std::string, std::int64_t>> extended;  // sorted by name; without the GPU resource
  friend bool operator==(const Resources&, const Resources&) = default;
};

// One pod. Pod i of the gang holds the ranks that follow pod i-1's: gpus ranks, one per GPU.
struct PodRequest {
  int gpus = 0;
  Resources resources;
  // Nodes that the pod's own selectors, affinity and tolerations allow, sorted; empty optional = all.
  // Shared between pods: most gangs have one list.
  std::optional<std::uint32_t> allowed;  // index into GangRequest::allowed_nodes
  // A pod that is already bound stays where it is: the plan is made around it.
  std::optional<topology::NodeId> fixed_node;
  std::optional<std::uint32_t> fixed_gpus;  // bit = position in Node::gpus
  friend bool operator==(const PodRequest&, const PodRequest&) = default;
};

struct GangRequest {
  Parallelism parallelism;
  ModelHints model;
  std::vector<Requirement> require;  // tp=nvlink stands unless `tp` is required at another level
  std::vector<Requirement> prefer;
  std::vector<PodRequest> pods;  // by rank
  std::vector<std::vector<topology::NodeId>> allowed_nodes;
  // Free nodes that stay free in every NVLink domain over several nodes that the gang uses, to take the place
  // of nodes that fail (18 trays: plan for 16 and keep 2). A gang with bound pods is being repaired and may
  // use them.
  int spares = 0;
};

}  // namespace heddle::placement
