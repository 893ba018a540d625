#include "nodeagent/nic/rdma_mtu.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::nodeagent {
namespace {

// EFA sends its own datagrams, of a size that no peer has to share.
bool Counts(const topology::Nic& nic, const topology::NicPort& port) {
  return nic.role == topology::NicRole::kCompute && port.rdma_mtu > 0 &&
         (nic.transport == topology::Transport::kRoce || nic.transport == topology::Transport::kInfiniBand);
}

}  // namespace

int RoceMtu(int netdev_mtu) {
  // GRH 40, UDP 8, BTH 12, XRC 4, AtomicETH 28, ICRC 4 (the kernel's iboe_get_mtu, ib_addr.h).
  constexpr int kHeaders = 96;
  int mtu = 0;
  for (int size = 256; size <= 4096; size *= 2) {
    if (size <= netdev_mtu - kHeaders) mtu = size;
  }
  return mtu;
}

std::optional<RdmaMtus> CompareRdmaMtus(const topology::Node& node) {
  std::optional<RdmaMtus> found;
  for (const topology::Nic& nic : node.nics) {
    for (const topology::NicPort& port : nic.ports) {
      if (!Counts(nic, port)) continue;
      if (!found) found.emplace();
      found->bytes = std::max(found->bytes, port.rdma_mtu);
    }
  }
  if (!found) return found;
  for (const topology::Nic& nic : node.nics) {
    const auto less = std::find_if(nic.ports.begin(), nic.ports.end(), [&](const topology::NicPort& port) {
      return Counts(nic, port) && port.rdma_mtu < found->bytes;
    });
    if (less == nic.ports.end()) continue;
    const std::string of_netdev = nic.mtu > 0 ? fmt::format(" ({} has MTU {})", nic.netdev, nic.mtu) : "";
    found->faults.push_back(
        fmt::format("{} carries {} bytes{}, others {}", nic.name, less->rdma_mtu, of_netdev, found->bytes));
  }
  return found;
}

}  // namespace heddle::nodeagent
