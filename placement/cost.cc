#include "placement/cost.h"

#include "placement/constants.h"
#include "placement/dense.h"

namespace heddle::placement {
namespace {

constexpr double kGiga = 1e9;

// Without hints: TP ≈ EP ≫ CP > FSDP shard > DP > PP (design section 6), in gigabytes per GPU and step. DP :
// PP is 24 : 1 as in the worked 70B case of performance anchors 3.3 (12.8 GB against 16 micro-batches of 2
// x 16.8 MB).
AxisBytes DefaultBytes(const Parallelism& parallelism) {
  AxisBytes out;
  const auto set = [&](Axis axis, int size, double gigabytes, std::int64_t messages) {
    if (size < 2) return;
    out.bytes[std::size_t(axis)] = gigabytes * kGiga;
    out.messages[std::size_t(axis)] = messages;
  };
  set(Axis::kTp, parallelism.tp, 64, 640);
  set(Axis::kEp, parallelism.ep, 64, 320);
  set(Axis::kCp, parallelism.cp, 16, 160);
  set(Axis::kFsdp, parallelism.size(Axis::kFsdp), 8, 240);
  set(Axis::kDp, parallelism.dp / parallelism.size(Axis::kFsdp), 4, 2);
  set(Axis::kPp, parallelism.pp, 4.0 / 24, 32);
  return out;
}

bool Complete(const ModelHints& model) {
  return model.params > 0 && model.layers > 0 && model.hidden > 0 && model.seq > 0;
}

double Share(int size) {
  return double(size - 1) / size;
}

// Gradients and parameters: ZeRO-1/2 keeps fp32 gradients (4 bytes) and gathers 2-byte parameters; with a
// shard the parameters are gathered twice and gradients scattered once, then 2-byte gradients are reduced
// over the replicas.
void GradientBytes(const Parallelism& p, const ModelHints& model, AxisBytes& out) {
  const double own = model.params / (double(p.tp) * p.pp);
  const int shard = p.size(Axis::kFsdp), replicas = p.dp / shard;
  auto& dp = out.bytes[std::size_t(Axis::kDp)];
  if (replicas > 1) {
    dp = p.fsdp > 1 ? 2 * Share(replicas) * 2 * own / shard : Share(replicas) * (4 + 2) * own;
    out.messages[std::size_t(Axis::kDp)] = 2;
  }
  if (shard > 1) {
    out.bytes[std::size_t(Axis::kFsdp)] = 3 * Share(shard) * 2 * own;
    out.messages[std::size_t(Axis::kFsdp)] = 3 * std::int64_t(model.layers) / p.pp;
  }
}

}  // namespace

// The formulas stand in performance anchors 3.2; 2-byte activations.
AxisBytes BytesPerStep(const Parallelism& p, const ModelHints& model) {
  if (!Complete(model)) return DefaultBytes(p);
  AxisBytes out;
  const double layers = double(model.layers) / p.pp;
  const double batch = model.microbatch > 0 ? model.microbatch : 1;
  const double steps = model.microbatches > 0 ? model.microbatches : 4.0 * p.pp;
  const double tokens = batch * model.seq / p.cp;
  const double activations = tokens * model.hidden * 2;
  if (p.tp > 1) {
    out.bytes[std::size_t(Axis::kTp)] = 8 * activations * Share(p.tp) * layers * steps;
    out.messages[std::size_t(Axis::kTp)] = std::int64_t(8 * layers * steps);  // each all-reduce as two passes
  }
  if (p.pp > 1) {
    out.bytes[std::size_t(Axis::kPp)] =
        2 * activations / p.tp * steps;  // forward and back, scattered over tp
    out.messages[std::size_t(Axis::kPp)] = std::int64_t(2 * steps);
  }
  if (p.cp > 1) {
    // Keys and values of a GPU's own heads, of which grouped-query models have an eighth (Llama 3: 8 of 64).
    const double kv = double(model.hidden) / 8 / p.tp;
    out.bytes[std::size_t(Axis::kCp)] = 3 * 2 * batch * model.seq * kv * 2 * Share(p.cp) * layers * steps;
    out.messages[std::size_t(Axis::kCp)] = std::int64_t(3 * layers * steps);
  }
  if (p.ep > 1) {
    // Top-8 routing, FP8 out and BF16 back (DeepEP's example), forward and backward.
    out.bytes[std::size_t(Axis::kEp)] =
        2 * tokens / p.tp * 8 * model.hidden * (1 + 2) * Share(p.ep) * layers * steps;
    out.messages[std::size_t(Axis::kEp)] = std::int64_t(4 * layers * steps);
  }
  GradientBytes(p, model, out);
  return out;
}

EdgeCost CostOfEdge(const topology::Fabric& fabric, topology::NodeId a, int gpu_a, topology::NodeId b,
                    int gpu_b) {
  const Hop hop = HopOf(fabric, PortOf(fabric, a, gpu_a), PortOf(fabric, b, gpu_b));
  const int percent = hop.crosses_leaf ? kCrossingCollectivePercent : 100;
  return {double(hop.mbps) * percent / 100 / 1000, double(hop.tenths_us) / 10};
}

}  // namespace heddle::placement
