#include "lossless/short_room.h"

#include <fmt/format.h>

#include <cstddef>

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

std::vector<Unsaid> FindUnsaidBuffers(const PortSettings& port, int priority, std::string_view where) {
  const auto has = [priority](const std::optional<PrioritySet>& set) {
    return set && set->Contains(priority);
  };
  std::vector<Unsaid> unsaid;
  if (!has(port.lossy_queues) && !has(port.lossless_queues)) {
    unsaid.push_back(
        {Setting::kLossyQueues,
         fmt::format("nobody says whether the queue by which priority {} leaves {} has a lossless buffer",
                     priority, where),
         "give that queue a row in BUFFER_QUEUE that names a lossless profile, as SONiC's template does"});
  }
  const bool sized = port.buffer_bytes && (*port.buffer_bytes)[std::size_t(priority)] != kNotSaid;
  if (!sized && !has(port.sized_by_switch)) {
    unsaid.push_back(
        {Setting::kBufferBytes,
         fmt::format("nobody says how much {} holds after a pause for priority {}", where, priority),
         "give that priority group a row in BUFFER_PG that names a profile with xoff; where the switch sizes "
         "headroom itself (buffer_model dynamic), one that names NULL, and the port a CABLE_LENGTH other "
         "than "
         "0m"});
  }
  return unsaid;
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
