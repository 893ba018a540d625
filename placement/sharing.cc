#include "placement/sharing.h"

#include <algorithm>

namespace heddle::placement {
namespace {

constexpr double kSmallestPart = 1e-6;  // a flow is never starved: its price says how bad it is
constexpr int kMostRounds = 64;  // one per bottleneck; what still moves then stops at the last one's part

}  // namespace

Sharing::Sharing(std::span<const std::int64_t> capacity) : capacity_(capacity) {}

// The part at which a link is full when all that moves on it rises further.
double Sharing::FullAt(std::int32_t link) const {
  const auto l = std::size_t(link);
  if (capacity_[l] <= 0 || moving_[l] <= 0) return 1;
  const std::int64_t others = l < load_.size() ? load_[l] : 0;
  return (double(capacity_[l]) - stopped_[l]) / double(moving_[l] + others);
}

bool Sharing::Stops(const Flow& flow, double part) const {
  constexpr double kRounding = 1e-9;
  return std::any_of(flow.links.begin(), flow.links.end(),
                     [&](std::int32_t link) { return link >= 0 && FullAt(link) <= part + kRounding; });
}

void Sharing::Share(std::span<Flow> flows, std::span<const std::int64_t> load) {
  load_ = load;
  moving_.resize(capacity_.size(), 0);
  stopped_.resize(capacity_.size(), 0);
  used_.clear();
  std::size_t moving = 0;
  for (Flow& flow : flows) {
    flow.part = 1;
    const std::int64_t demand = flow.mbps * flow.count;
    if (demand <= 0) continue;
    flow.part = 0;
    ++moving;
    for (const std::int32_t link : flow.links) {
      if (link < 0) continue;
      if (moving_[std::size_t(link)] == 0) used_.push_back(link);
      moving_[std::size_t(link)] += demand;
    }
  }
  std::erase_if(used_, [this](std::int32_t link) {
    const auto l = std::size_t(link);
    const std::int64_t others = l < load_.size() ? load_[l] : 0;
    if (capacity_[l] > 0 && moving_[l] + others > capacity_[l]) return false;
    moving_[l] = 0;  // never full: no reason to look at it again
    return true;
  });
  for (int round = 0; moving > 0; ++round) {
    double part = 1;
    for (const std::int32_t link : used_) part = std::min(part, FullAt(link));
    const double given = std::max(part, kSmallestPart);
    const bool last = part >= 1 || round + 1 == kMostRounds;
    stopping_.clear();
    for (Flow& flow : flows) {
      if (flow.part > 0 || (!last && !Stops(flow, part))) continue;
      flow.part = given;
      --moving;
      for (const std::int32_t link : flow.links) {
        if (link >= 0 && moving_[std::size_t(link)] > 0) stopping_.emplace_back(link, flow.mbps * flow.count);
      }
    }
    // Only now: whether a flow stops is asked of the links as they were at the round's start.
    for (const auto& [link, demand] : stopping_) {
      moving_[std::size_t(link)] -= demand;
      stopped_[std::size_t(link)] += double(demand) * given;
    }
  }
  for (const std::int32_t link : used_) {
    moving_[std::size_t(link)] = 0;
    stopped_[std::size_t(link)] = 0;
  }
}

}  // namespace heddle::placement
