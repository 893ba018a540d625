#include "nodeagent/nic/heard.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace heddle::nodeagent {

using topology::LinkState;

int CountedGbps(LinkState state, bool unread, int gbps) {
  return state == LinkState::kActive || (state == LinkState::kUnknown && unread) ? gbps : 0;
}

namespace {

// The smaller of two rates, of which 0 is none.
int Least(int one, int other) {
  return one == 0 || (other > 0 && other < one) ? other : one;
}

int LeastOfKind(const RdmaReadings& rdma, const RdmaDevice& of) {
  int least = 0;
  for (const RdmaDevice& device : rdma.devices) {
    if (device.driver != of.driver || device.board != of.board) continue;
    for (const RdmaPort& port : device.ports) {
      if (port.state == LinkState::kActive) least = Least(least, port.rate_gbps);
    }
  }
  return least;
}

int LeastOfBond(const NetReadings& net, const std::string& bond) {
  int least = 0;
  for (const auto& [name, netdev] : net.netdevs) {
    if (!bond.empty() && netdev.bond == bond && netdev.state == LinkState::kActive)
      least = Least(least, netdev.gbps);
  }
  return least;
}

}  // namespace

void LastCounted::Settle(RdmaReadings& rdma, NetReadings& net) {
  std::map<std::string, int> now;
  const auto settle = [&](const std::string& port, auto& heard, int& gbps) {
    const auto last = last_.find(port);
    const bool carries = heard.state == LinkState::kActive || heard.state_unread;
    const bool unsaid = heard.state_unread || heard.rate_unread || gbps == 0;
    // That it carried nothing then says nothing of a port that is up now.
    const bool lasts = last != last_.end() && (heard.state_unread || last->second > 0);
    if (carries && unsaid && lasts) gbps = last->second;
    const bool never_said = carries && gbps == 0 && (last == last_.end() || !heard.state_unread);
    if (!never_said) now[port] = CountedGbps(heard.state, heard.state_unread, gbps);
    return never_said;
  };
  std::vector<std::pair<const RdmaDevice*, RdmaPort*>> ports;
  for (RdmaDevice& device : rdma.devices) {
    for (RdmaPort& port : device.ports) {
      if (settle(fmt::format("{} {}/{}", device.name, device.guid, port.number), port, port.rate_gbps))
        ports.emplace_back(&device, &port);
    }
  }
  for (const auto& [device, port] : ports) port->assumed_gbps = LeastOfKind(rdma, *device);
  std::vector<Netdev*> netdevs;
  for (auto& [name, netdev] : net.netdevs) {
    if (settle(fmt::format("{} {}", name, netdev.pci), netdev, netdev.gbps)) netdevs.push_back(&netdev);
  }
  for (Netdev* netdev : netdevs) netdev->assumed_gbps = LeastOfBond(net, netdev->bond);
  last_ = std::move(now);
}

}  // namespace heddle::nodeagent
