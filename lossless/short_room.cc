#include "lossless/short_room.h"

#include <fmt/format.h>

#include "lossless/headroom.h"

namespace heddle::lossless {

std::optional<ShortRoom> FindShortRoom(const PortSettings& port, int priority,
                                       const std::optional<int>& speed_mbps) {
  if (!port.buffer_bytes || !port.mtu || !port.cable_metres || *port.cable_metres == 0 || !speed_mbps)
    return std::nullopt;
  const int has = (*port.buffer_bytes)[std::size_t(priority)];
  if (has == kNotSaid || has == 0) return std::nullopt;
  const auto least = LeastXoff(*speed_mbps, *port.cable_metres, *port.mtu + kFrameAround);
  if (!least || has * 100LL >= *least * kUnprovedBelowPercent) return std::nullopt;
  // How long a cable is somebody wrote, mostly one number for many: only what is too little over any contradicts.
  const auto shortest = LeastXoff(*speed_mbps, 1, *port.mtu + kFrameAround);
  const bool contradicts = shortest && has * 100LL < *shortest * kContradictsBelowPercent;
  return ShortRoom{contradicts ? LosslessVerdict::kContradiction : LosslessVerdict::kUnproved, priority, has,
                   *least};
}

std::string SentenceOf(const ShortRoom& found, const PortSettings& port, int speed_mbps) {
  return fmt::format(
      "after a pause for priority {} there is room for {} bytes, and at least {} may still arrive at {} Gb/s "
      "over {} m with an MTU of {}",
      found.priority, found.has_bytes, found.least_bytes, speed_mbps / 1000, port.cable_metres.value_or(0),
      port.mtu.value_or(0));
}

std::string ValueOf(const ShortRoom& found) {
  return fmt::format("{} of {} bytes", found.has_bytes, found.least_bytes);
}

}  // namespace heddle::lossless
