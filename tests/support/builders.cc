#include "tests/support/builders.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "topology/synthetic.h"

namespace heddle::test {

using topology::Fact;
using topology::GpuNicPath;
using topology::LeafPort;
using topology::LinkState;
using topology::NicPort;
using topology::NicRole;
using topology::PciDistance;
using topology::Transport;

NodeNamed::NodeNamed(std::string name) {
  node_.name = std::move(name);
}

NodeNamed& NodeNamed::Machine(std::string product) {
  node_.machine = std::move(product);
  return *this;
}

NodeNamed& NodeNamed::Site(std::string site) {
  node_.site = std::move(site);
  return *this;
}

NodeNamed& NodeNamed::Gpus(int count) {
  for (int g = 0; g < count; ++g) {
    node_.gpus.push_back({g, fmt::format("GPU-{}-{}", node_.name, g), "NVIDIA H100 80GB HBM3",
                          fmt::format("0000:{:02x}:00.0", 0x10 + g), Fact<int>(g * 2 / count), true, "", 80});
  }
  node_.nvlink = {4, 18, 3600, {}};
  node_.nvlink_domain = topology::NvlinkMembership{node_.name, false};
  return *this;
}

NodeNamed& NodeNamed::BadGpu(int index, std::string reason) {
  auto& gpu = node_.gpus.at(std::size_t(index));
  gpu.healthy = false;
  gpu.unhealthy_reason = std::move(reason);
  return *this;
}

NodeNamed& NodeNamed::Domain(std::string id) {
  node_.nvlink_domain = topology::NvlinkMembership{std::move(id), true};
  return *this;
}

topology::Nic& NodeNamed::Add(NicRole role, Fact<int> rail, std::string leaf, std::string port, int gbps) {
  topology::Nic nic;
  nic.name = fmt::format("mlx5_{}", node_.nics.size());
  nic.transport = Transport::kInfiniBand;
  nic.role = role;
  nic.rail = rail;
  NicPort end{1, 0, LinkState::kActive, gbps, gbps, {}};
  if (!leaf.empty()) end.leaf_port = LeafPort{std::move(leaf), std::move(port)};
  nic.ports.push_back(std::move(end));
  node_.nics.push_back(std::move(nic));
  return node_.nics.back();
}

NodeNamed& NodeNamed::Rail(int rail, std::string leaf, std::string port, int gbps) {
  const std::string nic = Add(NicRole::kCompute, rail, std::move(leaf), std::move(port), gbps).name;
  if (rail < int(node_.gpus.size())) Path(rail, nic, PciDistance::kPix);
  return *this;
}

NodeNamed& NodeNamed::Rails(int count, std::string_view leaf_prefix, std::string_view port) {
  for (int rail = 0; rail < count; ++rail) {
    Rail(rail, fmt::format("{}{}", leaf_prefix, rail), std::string(port));
  }
  return *this;
}

NodeNamed& NodeNamed::Nic(std::string leaf, std::string port) {
  Add(NicRole::kCompute, {}, std::move(leaf), std::move(port), 400);
  return *this;
}

NodeNamed& NodeNamed::Storage(std::string leaf, std::string port) {
  Add(NicRole::kStorage, {}, std::move(leaf), std::move(port), 200);
  return *this;
}

NodeNamed& NodeNamed::Path(int gpu, std::string nic, PciDistance distance) {
  node_.paths.push_back(GpuNicPath{gpu, std::move(nic), distance});
  return *this;
}

NodeNamed& NodeNamed::Down(std::string_view nic_name) {
  for (topology::Nic& nic : node_.nics) {
    if (nic.name != nic_name) continue;
    for (NicPort& port : nic.ports) {
      port.state = LinkState::kDown;
      port.rate_gbps = port.usable_gbps = 0;
      port.leaf_port = topology::Missing::kUnknown;
    }
  }
  return *this;
}

NodeNamed::operator topology::Node() const {
  topology::Node node = node_;
  std::sort(node.nics.begin(), node.nics.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::sort(node.paths.begin(), node.paths.end(), [](const auto& a, const auto& b) {
    return std::tie(a.gpu, a.distance, a.nic) < std::tie(b.gpu, b.distance, b.nic);
  });
  return node;
}

topology::Fabric FabricOf(std::string_view synthetic_line) {
  auto made = topology::ParseSynthetic(synthetic_line);
  if (!made) {
    std::fprintf(stderr, "FabricOf(\"%s\"): %s\n", std::string(synthetic_line).c_str(),
                 made.error().message.c_str());
    std::abort();
  }
  return topology::BuildFabric(std::move(made->nodes), made->declaration);
}

std::vector<std::string> Sentences(const topology::Fabric& fabric) {
  std::vector<std::string> sentences;
  for (const topology::CablingFault& fault : fabric.faults) sentences.push_back(fault.sentence);
  return sentences;
}

}  // namespace heddle::test
