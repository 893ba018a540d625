#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/fabric.h"
#include "topology/node.h"

namespace heddle::test {

// A node in words: NodeNamed("a1").Gpus(8).Rails(8, "su0-r") is eight GPUs, each beside mlx5_<rail> on
// "su0-r<rail>". It reads as a topology::Node.
class NodeNamed {
 public:
  explicit NodeNamed(std::string name);

  NodeNamed& Machine(std::string product);
  NodeNamed& Site(std::string site);
  // H100s in one NVLink domain of their own.
  NodeNamed& Gpus(int count);
  NodeNamed& BadGpu(int index, std::string reason = "XID 79");
  NodeNamed& Domain(std::string id);  // over nodes
  // One compute NIC "mlx5_<n>" on the next free number; GPU `rail`, where there is one, is beside it.
  NodeNamed& Rail(int rail, std::string leaf, std::string port = "", int gbps = 400);
  NodeNamed& Rails(int count, std::string_view leaf_prefix, std::string_view port = "");
  // One compute NIC of unknown rail.
  NodeNamed& Nic(std::string leaf, std::string port = "");
  NodeNamed& Storage(std::string leaf, std::string port = "");
  NodeNamed& Path(int gpu, std::string nic, topology::PciDistance distance);
  NodeNamed& Down(std::string_view nic);

  operator topology::Node() const;  // NOLINT(google-explicit-constructor): a builder reads as what it builds

 private:
  topology::Nic& Add(topology::NicRole role, topology::Fact<int> rail, std::string leaf, std::string port,
                     int gbps);
  topology::Node node_;
};

// What a synthetic line builds; a line that does not parse ends the test program with its refusal.
topology::Fabric FabricOf(std::string_view synthetic_line);
// What its cabling faults say.
std::vector<std::string> Sentences(const topology::Fabric& fabric);

}  // namespace heddle::test
