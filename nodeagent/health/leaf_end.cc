#include "nodeagent/health/leaf_end.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "nodeagent/health/link_rules.h"

namespace heddle::nodeagent {
namespace {

const LeafCounts* Find(const std::vector<LeafCounts>& leaves, const WatchedPort& port) {
  if (port.transport != topology::Transport::kInfiniBand || port.device.empty()) return nullptr;
  const auto found = std::find_if(leaves.begin(), leaves.end(), [&port](const LeafCounts& one) {
    return one.device == port.device && one.port == port.device_port;
  });
  return found == leaves.end() ? nullptr : &*found;
}

}  // namespace

LeafEnd LeafEndOf(const LeafCounts& counts) {
  LeafEnd end;
  if (!counts.leaf.empty()) end.name = fmt::format("{} port {}", counts.leaf, counts.leaf_port);
  end.who = fmt::format("{} {}{}", counts.guid, counts.leaf_port, counts.extended ? " extended" : "");
  end.clear = fmt::format("perfquery -R {} {}", counts.lid, counts.leaf_port);
  end.unread = counts.unread;
  for (const PmaCount& count : counts.counts) {
    const auto counter = FindCounter("", CounterPlace::kPort, count.name);
    if (!counter) continue;
    end.samples.push_back({counter->id, count.value, counts.extended ? Width{64, true} : counter->width});
  }
  std::sort(end.samples.begin(), end.samples.end(),
            [](const CounterSample& a, const CounterSample& b) { return a.id < b.id; });
  return end;
}

std::string WhyLeafUnread(const LeafEnd& leaf) {
  if (!leaf.unread.empty()) return leaf.unread;
  std::vector<std::string> stuck;
  for (const CounterSample& sample : leaf.samples) {
    if (IsJudged(sample.id.counter) && IsStuck(sample))
      stuck.push_back(fmt::format("{} stands at {}", CounterName(sample.id.counter), sample.value));
  }
  if (stuck.empty()) return {};
  return fmt::format("at {} {} and counts no further: clear it with {}", leaf.name, fmt::join(stuck, ", "),
                     leaf.clear);
}

std::vector<RdmaPortName> PortsWithLeaves(const std::vector<WatchedPort>& ports) {
  std::vector<RdmaPortName> names;
  for (const WatchedPort& port : ports) {
    if (port.transport == topology::Transport::kInfiniBand && !port.device.empty())
      names.emplace_back(port.device, port.device_port);
  }
  return names;
}

void AddLeafEnds(const std::vector<LeafCounts>& leaves, CounterReadings& readings) {
  for (PortReading& reading : readings.ports) {
    if (const LeafCounts* counts = Find(leaves, reading.port)) reading.leaf = LeafEndOf(*counts);
  }
}

void SayLeafEnds(const std::vector<LeafCounts>& leaves, const std::vector<WatchedPort>& ports,
                 Observation& seen) {
  for (const WatchedPort& port : ports) {
    if (const LeafCounts* counts = Find(leaves, port))
      seen.leaf_ends[{port.nic, port.number}] = WhyLeafUnread(LeafEndOf(*counts));
  }
}

}  // namespace heddle::nodeagent
