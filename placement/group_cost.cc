#include "placement/group_cost.h"

#include <algorithm>

#include "placement/constants.h"

namespace heddle::placement {
namespace {

constexpr std::size_t kSlots = 256;     // per axis, 16 KiB
constexpr double kMbpsPerGbs = 8000.0;  // megabits in a gigabyte

// A group as NCCL sees it; see GroupShape.
GroupShape ShapeOf(int ranks, const GroupTally& tally) {
  GroupShape shape;
  shape.ranks = ranks;
  shape.domains = std::max(1, tally.domains);
  shape.ranks_per_domain = std::min(ranks, tally.most);
  if (tally.near_mbps != GroupTally::kNothing) {
    (tally.pcie ? shape.pcie_gbs : shape.nvlink_gbs) = double(tally.near_mbps) / kMbpsPerGbs;
  }
  shape.nvlink_generation = tally.generation;
  shape.nvswitch = tally.nvswitch;
  shape.crosses_rails = tally.crosses_rail;
  shape.extra_latency_us = double(tally.extra_tenths) / 10;
  if (tally.net_mbps != GroupTally::kNothing) {
    shape.net_gbs = double(tally.net_mbps) / kMbpsPerGbs;
    shape.net_domain_gbs = shape.net_gbs * std::max(1, tally.fewest);
  }
  return shape;
}

// A send knows two ranks: the slowest pair of the chain or ring sets the pace, be it inside or outside.
Prediction PredictSend(double bytes, const GroupTally& tally) {
  Prediction worst;
  for (const bool net : {false, true}) {
    if ((net ? tally.net_mbps : tally.near_mbps) == GroupTally::kNothing) continue;
    GroupTally pair = tally;
    pair.domains = net ? 2 : 1;
    pair.fewest = pair.most = net ? 1 : 2;
    const Prediction one = Predict(Collective::kSendRecv, ShapeOf(2, pair), bytes);
    if (one.micros > worst.micros) worst = one;
  }
  return worst;
}

Prediction PredictCall(const AxisTraffic& traffic, const Transfer& transfer, const GroupTally& tally) {
  if (transfer.collective == Collective::kSendRecv) return PredictSend(transfer.bytes, tally);
  return Predict(transfer.collective, ShapeOf(traffic.ranks, tally), transfer.bytes);
}

std::uint64_t HashOf(const GroupTally& tally) {
  std::uint64_t hash = 1469598103934665603U;  // FNV-1a, by word
  for (const std::int64_t value : {tally.near_mbps, tally.net_mbps, std::int64_t(tally.domains),
                                   std::int64_t(tally.extra_tenths), std::int64_t(tally.fewest)}) {
    hash = (hash ^ std::uint64_t(value)) * 1099511628211U;
  }
  return hash ^ (hash >> 32);
}

}  // namespace

GroupCost::GroupCost(const Parallelism& parallelism, const ModelHints& model)
    : traffic_(TrafficPerStep(parallelism, model)), windows_(WindowsOf(parallelism, model)) {}

GroupCost::Known& GroupCost::Slot(Axis axis, const GroupTally& tally) {
  std::vector<Known>& known = known_[std::size_t(axis)];
  if (known.empty()) known.resize(kSlots);
  return known[HashOf(tally) % kSlots];
}

double GroupCost::Micros(Axis axis, const GroupTally& tally) {
  Known& known = Slot(axis, tally);
  if (known.micros >= 0 && known.tally == tally) return known.micros;
  const AxisTraffic& traffic = traffic_.of(axis);
  double micros = 0;
  for (int i = 0; i < traffic.count; ++i) {
    const Transfer& transfer = traffic.transfers[std::size_t(i)];
    micros += double(transfer.calls) * PredictCall(traffic, transfer, tally).micros;
  }
  known = {tally, micros};
  return micros;
}

double GroupCost::VisibleMicros(Axis axis, const GroupTally& tally, Windows& left) const {
  const AxisTraffic& traffic = traffic_.of(axis);
  double micros = 0;
  for (int i = 0; i < traffic.count; ++i) {
    const Transfer& transfer = traffic.transfers[std::size_t(i)];
    micros += placement::VisibleMicros(
        transfer, double(transfer.calls) * PredictCall(traffic, transfer, tally).micros, left);
  }
  return micros;
}

Prediction MainCall(const AxisTraffic& traffic, const GroupTally& tally) {
  Prediction main;
  double most = 0;
  for (int i = 0; i < traffic.count; ++i) {
    const Transfer& transfer = traffic.transfers[std::size_t(i)];
    const Prediction one = PredictCall(traffic, transfer, tally);
    if (one.micros * double(transfer.calls) <= most) continue;
    most = one.micros * double(transfer.calls);
    main = one;
  }
  return main;
}

}  // namespace heddle::placement
