#include "nodeagent/nic/heard.h"

#include <fmt/format.h>

#include <utility>

namespace heddle::nodeagent {

using topology::LinkState;

int CountedGbps(LinkState state, bool unread, int gbps) {
  return state == LinkState::kActive || (state == LinkState::kUnknown && unread) ? gbps : 0;
}

void LastCounted::Settle(RdmaReadings& rdma, NetReadings& net) {
  std::map<std::string, int> now;
  const auto settle = [&](const std::string& port, auto& heard, int& gbps) {
    if (heard.state_unread || heard.rate_unread) {
      const auto last = last_.find(port);
      gbps = last == last_.end() ? 0 : last->second;
    }
    now[port] = CountedGbps(heard.state, heard.state_unread, gbps);
  };
  for (RdmaDevice& device : rdma.devices) {
    for (RdmaPort& port : device.ports)
      settle(fmt::format("{} {}/{}", device.name, device.guid, port.number), port, port.rate_gbps);
  }
  for (auto& [name, netdev] : net.netdevs)
    settle(fmt::format("{} {}", name, netdev.pci), netdev, netdev.gbps);
  last_ = std::move(now);
}

}  // namespace heddle::nodeagent
