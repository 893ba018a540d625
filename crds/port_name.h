#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "topology/node.h"

namespace heddle::crds {

// "mlx5_0:1", as the resources call a port, and NCCL too: RDMA device and number.
inline std::string PortName(std::string_view nic, int number) {
  return fmt::format("{}:{}", nic, number);
}
inline std::string PortName(const topology::Nic& nic, const topology::NicPort& port) {
  return PortName(nic.name, port.number);
}

}  // namespace heddle::crds
