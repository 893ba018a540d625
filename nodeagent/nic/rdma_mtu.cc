#include "nodeagent/nic/rdma_mtu.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::nodeagent {
namespace {

bool Counts(const topology::Nic& nic) {
  return nic.role == topology::NicRole::kCompute && nic.transport == topology::Transport::kRoce &&
         nic.mtu > 0;
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
    if (!Counts(nic)) continue;
    if (!found) found.emplace();
    found->bytes = std::max(found->bytes, RoceMtu(nic.mtu));
  }
  if (!found) return found;
  for (const topology::Nic& nic : node.nics) {
    if (!Counts(nic) || RoceMtu(nic.mtu) == found->bytes) continue;
    found->faults.push_back(fmt::format("{} carries {} bytes ({} has MTU {}), others {}", nic.name,
                                        RoceMtu(nic.mtu), nic.netdev, nic.mtu, found->bytes));
  }
  return found;
}

}  // namespace heddle::nodeagent
