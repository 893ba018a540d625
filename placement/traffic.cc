#include "placement/traffic.h"

#include <algorithm>

namespace heddle::placement {
namespace {

constexpr double kGiga = 1e9;
constexpr double kActivationBytes = 2;  // BF16
constexpr double kParameterBytes = 2;   // BF16
constexpr double kGradientBytes = 4;    // Megatron-Core accumulates in FP32
constexpr int kTopK = 8;                // routed experts of a token: DeepSeek-V3, Qwen3
constexpr double kDispatchBytes = 1;    // FP8 out (DeepEP's example)
constexpr double kCombineBytes = 2;     // BF16 back
constexpr double kQueryPerKv = 8;       // grouped-query models: Llama 3 has 64 query heads and 8 of keys

double Layers(const Parallelism& p, const ModelHints& model) {
  return double(model.layers) / p.pp;
}

double Batch(const ModelHints& model) {
  return model.microbatch > 0 ? model.microbatch : 1;
}

double MicroBatches(const Parallelism& p, const ModelHints& model) {
  return model.microbatches > 0 ? model.microbatches : 4.0 * p.pp;
}

double QueriesPerKv(const ModelHints& model) {
  return model.heads > 0 && model.kvheads > 0 ? double(model.heads) / model.kvheads : kQueryPerKv;
}

double TopK(const ModelHints& model) {
  if (model.topk > 0) return model.topk;
  return model.experts > 0 ? std::min(model.experts, kTopK) : kTopK;
}

// Of a mixture of experts with P parameters of which A are active, k of E experts a token: P = D + X and
// A = D + X·k/E. Where E was not said, k/E is taken for nothing. A model that is none has D alone.
struct Parameters {
  double dense = 0, experts = 0;
};

Parameters PartsOf(const ModelHints& model) {
  if (model.active <= 0 || model.active >= model.params) return {model.params, 0};
  const double share = model.experts > 0 ? TopK(model) / model.experts : 0;
  if (share >= 1) return {model.params, 0};
  const double experts = std::min(model.params, (model.params - model.active) / (1 - share));
  return {model.params - experts, experts};
}

// The ranks that hold the same experts.
double ExpertReplicas(const Parallelism& p) {
  return double(p.world()) / (double(p.ep) * ExpertTp(p) * p.pp);
}

Parameters OwnParameters(const Parallelism& p, const ModelHints& model) {
  const Parameters all = PartsOf(model);
  return {all.dense / (double(p.tp) * p.pp), all.experts / (double(p.ep) * ExpertTp(p) * p.pp)};
}

// What a token meets of them on one GPU: the experts' work is spread evenly.
double ActiveOf(const Parallelism& p, const ModelHints& model) {
  return ActiveParameters(model) / (double(p.tp) * p.pp);
}

// 2(n-1)/n for what passes over the array twice, (n-1)/n once, 1 for a send.
double Share(Collective collective, int ranks) {
  return BusFactor(collective, ranks);
}

void Add(AxisTraffic& axis, Collective collective, double bytes, double calls, Overlap overlap) {
  axis.transfers[std::size_t(axis.count++)] = {collective, bytes,
                                               std::max<std::int64_t>(1, std::int64_t(calls)), overlap};
}

// So many bytes on the wire, in so many calls.
void AddWire(AxisTraffic& axis, Collective collective, double wire, std::int64_t calls, Overlap overlap) {
  Add(axis, collective, wire / (Share(collective, axis.ranks) * double(calls)), double(calls), overlap);
}

// Without hints: TP ≈ EP ≫ CP > FSDP shard > DP > PP (design section 6), of a model of 80 layers. DP : PP is
// 24 : 1 as in the worked 70B case of performance anchors 3.3 (12.8 GB against 16 micro-batches of 2 x 16.8
// MB).
void DefaultTraffic(const Parallelism& p, StepTraffic& out) {
  const auto axis = [&](Axis a) -> AxisTraffic& { return out.axes[std::size_t(a)]; };
  if (p.tp > 1) AddWire(axis(Axis::kTp), Collective::kAllReduce, 64 * kGiga, 320, Overlap::kNone);
  if (p.ep > 1) {
    AddWire(axis(Axis::kEp), Collective::kAllToAll, 64 * kGiga / 3, 160, Overlap::kNone);
    AddWire(axis(Axis::kEp), Collective::kAllToAll, 64 * kGiga * 2 / 3, 160, Overlap::kNone);
  }
  if (p.cp > 1) {
    const std::int64_t hops = 80 * std::int64_t(p.cp - 1);
    AddWire(axis(Axis::kCp), Collective::kSendRecv, 16 * kGiga / 3, hops, Overlap::kNone);
    AddWire(axis(Axis::kCp), Collective::kSendRecv, 16 * kGiga * 2 / 3, hops, Overlap::kNone);
  }
  AxisTraffic& fsdp = axis(Axis::kFsdp);
  if (fsdp.ranks > 1) {
    AddWire(fsdp, Collective::kAllGather, 8 * kGiga / 3, 80, Overlap::kForward);
    AddWire(fsdp, Collective::kAllGather, 8 * kGiga / 3, 80, Overlap::kBackward);
    AddWire(fsdp, Collective::kReduceScatter, 8 * kGiga / 3, 80, Overlap::kBackward);
  }
  AxisTraffic& dp = axis(Axis::kDp);
  if (dp.ranks > 1 && fsdp.ranks > 1) {
    AddWire(dp, Collective::kAllReduce, 4 * kGiga, 80, Overlap::kBackward);
  } else if (dp.ranks > 1) {
    AddWire(dp, Collective::kReduceScatter, 4 * kGiga * 2 / 3, 1, Overlap::kBackward);
    AddWire(dp, Collective::kAllGather, 4 * kGiga / 3, 1, Overlap::kForward);
  }
  if (p.pp > 1) AddWire(axis(Axis::kPp), Collective::kSendRecv, 4 * kGiga / 24, 32, Overlap::kNone);
}

// Gradients and parameters. ZeRO-1 and 2 scatter FP32 gradients and gather parameters once a step; a shard
// gathers them layer by layer, forward and backward, scatters gradients likewise, and its replicas reduce
// their parts of those. The replicas of experts are fewer than those of the rest and lie among them: their
// bytes are counted with dp's, none where no expert has a replica.
void GradientTraffic(const Parallelism& p, const ModelHints& model, StepTraffic& out) {
  const Parameters parts = OwnParameters(p, model);
  const double own = parts.dense + (ExpertReplicas(p) > 1 ? parts.experts : 0);
  const double layers = std::max(1.0, Layers(p, model));
  AxisTraffic& fsdp = out.axes[std::size_t(Axis::kFsdp)];
  AxisTraffic& dp = out.axes[std::size_t(Axis::kDp)];
  if (fsdp.ranks > 1) {
    const double layer = own * kParameterBytes / layers;
    Add(fsdp, Collective::kAllGather, layer, layers, Overlap::kForward);
    Add(fsdp, Collective::kAllGather, layer, layers, Overlap::kBackward);
    Add(fsdp, Collective::kReduceScatter, layer, layers, Overlap::kBackward);
    if (dp.ranks > 1) Add(dp, Collective::kAllReduce, layer / fsdp.ranks, layers, Overlap::kBackward);
  } else if (dp.ranks > 1) {
    Add(dp, Collective::kReduceScatter, own * kGradientBytes, 1, Overlap::kBackward);
    Add(dp, Collective::kAllGather, own * kParameterBytes, 1, Overlap::kForward);
  }
}

void ActivationTraffic(const Parallelism& p, const ModelHints& model, StepTraffic& out) {
  const double layers = Layers(p, model), steps = MicroBatches(p, model);
  const double tokens = Batch(model) * model.seq / p.cp;
  const double activations = tokens * model.hidden * kActivationBytes;
  if (p.tp > 1) {
    Add(out.axes[std::size_t(Axis::kTp)], Collective::kAllReduce, activations, 4 * layers * steps,
        Overlap::kNone);
  }
  if (p.pp > 1) {
    // Forward and back, scattered over tp.
    Add(out.axes[std::size_t(Axis::kPp)], Collective::kSendRecv, activations / p.tp, 2 * steps,
        Overlap::kNone);
  }
  if (p.cp > 1) {
    // Keys and values of a GPU's own heads go once around the ring; backward they go again with their
    // gradients.
    const double kv = 2 * tokens * (model.hidden / QueriesPerKv(model) / p.tp) * kActivationBytes;
    const double hops = (p.cp - 1) * layers * steps;
    Add(out.axes[std::size_t(Axis::kCp)], Collective::kSendRecv, kv, hops, Overlap::kNone);
    Add(out.axes[std::size_t(Axis::kCp)], Collective::kSendRecv, 2 * kv, hops, Overlap::kNone);
  }
  if (p.ep > 1) {
    // Out and back, forward and backward.
    const double routed = tokens / p.tp * TopK(model) * model.hidden;
    Add(out.axes[std::size_t(Axis::kEp)], Collective::kAllToAll, routed * kDispatchBytes, 2 * layers * steps,
        Overlap::kNone);
    Add(out.axes[std::size_t(Axis::kEp)], Collective::kAllToAll, routed * kCombineBytes, 2 * layers * steps,
        Overlap::kNone);
  }
}

}  // namespace

bool SaysBytes(const ModelHints& model) {
  return model.params > 0 && model.layers > 0 && model.hidden > 0 && model.seq > 0;
}

bool SaysCompute(const ModelHints& model) {
  return SaysBytes(model) && model.tflops > 0;
}

StepTraffic TrafficPerStep(const Parallelism& p, const ModelHints& model) {
  StepTraffic out;
  for (int a = 0; a < kAxisCount; ++a) out.axes[std::size_t(a)].ranks = p.size(Axis(a));
  out.axes[std::size_t(Axis::kDp)].ranks = p.dp / p.size(Axis::kFsdp);
  if (!SaysBytes(model)) {
    DefaultTraffic(p, out);
  } else {
    ActivationTraffic(p, model, out);
    GradientTraffic(p, model, out);
  }
  return out;
}

double WireBytes(const Transfer& transfer, int ranks) {
  return transfer.bytes * double(transfer.calls) * Share(transfer.collective, ranks);
}

double WireBytes(const AxisTraffic& traffic) {
  double bytes = 0;
  for (int i = 0; i < traffic.count; ++i)
    bytes += WireBytes(traffic.transfers[std::size_t(i)], traffic.ranks);
  return bytes;
}

double ComputeMicrosPerStep(const Parallelism& p, const ModelHints& model) {
  if (!SaysCompute(model)) return 0;
  const Windows one = WindowsOf(p, model);
  return (one.forward_us + one.backward_us) * (MicroBatches(p, model) + p.pp - 1);
}

double ActiveParameters(const ModelHints& model) {
  return model.active > 0 ? model.active : model.params;
}

double StateBytesPerGpu(const Parallelism& p, const ModelHints& model) {
  const Parameters own = OwnParameters(p, model);
  const double replicas = std::max(1.0, ExpertReplicas(p));
  if (const int shard = p.size(Axis::kFsdp); shard > 1)
    return (2 + 4 + 12) * (own.dense / shard + own.experts / std::min<double>(shard, replicas));
  return own.dense * (2 + 4 + 12.0 / (double(p.dp) * p.cp)) + own.experts * (2 + 4 + 12.0 / replicas);
}

Windows WindowsOf(const Parallelism& p, const ModelHints& model) {
  Windows out;
  if (!SaysCompute(model)) return out;
  const double tokens = Batch(model) * model.seq / p.cp;
  const double forward = 2 * ActiveOf(p, model) * tokens / (model.tflops * 1e6);
  out.forward_us = forward;
  out.backward_us = 2 * forward;
  out.layers = std::max(1, model.layers / p.pp);
  return out;
}

double VisibleMicros(const Transfer& transfer, double micros, Windows& left) {
  if (!transfer.overlappable()) return micros;
  double& window = transfer.overlap == Overlap::kForward ? left.forward_us : left.backward_us;
  if (window <= 0) return micros;
  const double ends = micros / left.layers;  // of the layer beside which nothing is left to compute
  const double hidden = std::min(window, micros - ends);
  window -= hidden;
  return micros - hidden;
}

double AxisMicros(const AxisTraffic& traffic, const GroupShape& shape, Windows& left) {
  double micros = 0;
  for (int i = 0; i < traffic.count; ++i) {
    const Transfer& transfer = traffic.transfers[std::size_t(i)];
    const double call = Predict(transfer.collective, shape, transfer.bytes).micros;
    micros += VisibleMicros(transfer, call * double(transfer.calls), left);
  }
  return micros;
}

}  // namespace heddle::placement
