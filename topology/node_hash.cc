#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "topology/node.h"

namespace heddle::topology {
namespace {

// FNV-1a over a canonical text of the node: every number in decimal with ';' behind it, every string with its
// length in front, every list with its count. So no two different nodes have the same text, and the text is
// never kept.
class Fnv1a {
 public:
  void Add(std::string_view text) {
    Number(text.size());
    Bytes(text);
  }
  void Add(const char* text) = delete;  // would become a bool
  void Add(bool value) { Number(value ? 1 : 0); }
  void Add(int value) { Number(value); }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void Add(Enum value) { Number(static_cast<int>(value)); }
  template <class T>
  void Add(const Fact<T>& fact) {
    Bytes(fact.known() ? "=" : "?");
    if (fact.known()) {
      Add(*fact);
    } else {
      Add(fact.missing());
    }
  }
  template <class T>
  void Add(const std::vector<T>& items) {
    Number(items.size());
    for (const T& item : items) Add(item);
  }

  void Add(const Gpu& gpu) {
    AddAll(gpu.index, gpu.uuid, gpu.model, gpu.pci, gpu.numa, gpu.healthy, gpu.unhealthy_reason,
           gpu.memory_gib);
    if (gpu.mig) Bytes("!mig");
    if (gpu.fatal_xid != 0) {
      Bytes("!xid");
      Add(gpu.fatal_xid);
    }
    if (gpu.nic_gone) {
      Bytes("!gone");
      AddAll(gpu.nic_gone->rail, gpu.nic_gone->pci);
    }
  }
  void Add(const NvSwitch& nvswitch) { Add(nvswitch.pci); }
  void Add(const NvLink::Exception& exception) {
    AddAll(exception.gpu, exception.links_up);
    if (exception.usable_gbps) {
      Bytes("!usable");
      Add(*exception.usable_gbps);
    }
  }
  void Add(const NvLink& nvlink) {
    AddAll(nvlink.generation, nvlink.links_per_gpu, nvlink.gbps_per_gpu, nvlink.exceptions);
  }
  void Add(const NvlinkMembership& membership) { AddAll(membership.id, membership.spans_nodes); }
  void Add(const LeafPort& leaf_port) {
    AddAll(leaf_port.leaf, leaf_port.port);
    if (leaf_port.chassis_id.empty()) return;
    Bytes("!chassis");
    Add(leaf_port.chassis_id);
  }
  void Add(const NicPort& port) {
    AddAll(port.number, port.plane, port.state, port.rate_gbps, port.usable_gbps, port.leaf_port);
    // What an older agent did not know of comes by its name, where it is there: no number and no fact starts so.
    if (port.fault != LinkFault::kNone) {
      Bytes("!");
      AddAll(port.fault, port.reason);
    }
    if (port.rdma_mtu != 0) {
      Bytes("!mtu");
      Add(port.rdma_mtu);
    }
    if (port.gid_index) {
      Bytes("!gid");
      Add(*port.gid_index);
    }
  }
  void Add(const Nic& nic) {
    AddAll(nic.name, nic.netdev, nic.pci, nic.guid, nic.transport, nic.role, nic.rail, nic.numa, nic.mtu,
           nic.ports);
    if (!nic.driver.empty()) {
      Bytes("!driver");
      Add(nic.driver);
    }
    if (!nic.pci_id.empty()) {
      Bytes("!id");
      Add(nic.pci_id);
    }
  }
  void Add(const GpuNicPath& path) { AddAll(path.gpu, path.nic, path.distance); }
  void Add(const Node& node) {
    AddAll(node.name, node.machine, node.gpus, node.nvswitches, node.nvlink, node.nvlink_domain, node.nics,
           node.paths, node.numa_nodes, node.site);
  }

  std::uint64_t value() const { return hash_; }

 private:
  template <class... Parts>
  void AddAll(const Parts&... parts) {
    (Add(parts), ...);
  }
  template <class Integer>
  void Number(Integer value) {
    const fmt::format_int text(value);
    Bytes({text.data(), text.size()});
    Bytes(";");
  }
  void Bytes(std::string_view bytes) {
    for (const char byte : bytes) hash_ = (hash_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  }

  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace

std::string ContentHash(const Node& node) {
  Fnv1a hash;
  hash.Add(node);
  return fmt::format("{:016x}", hash.value());
}

}  // namespace heddle::topology
