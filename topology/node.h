#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/fact.h"

namespace heddle::topology {

// One machine of the fabric as its agent saw it. All are values: they copy, compare and do nothing else.

// A transport is a value with a name: a new one is an entry here and its name in names.cc, in the same order.
enum class Transport : std::uint8_t { kInfiniBand, kRoce, kEfa, kEthernet };  // kEthernet: no RDMA
enum class NicRole : std::uint8_t { kCompute, kStorage, kManagement };
enum class LinkState : std::uint8_t { kActive, kDown, kUnknown };
// What stands against a port that its state does not say: it comes and goes, it takes in broken packets, its
// lossless class is stopped by pause frames, packets are lost somewhere behind it. Agents know no kNotLossless: the
// two ends of its cable are set against each other (crds::CountCables).
enum class LinkFault : std::uint8_t { kNone, kFlapping, kErrors, kPauseStorm, kPathLoss, kNotLossless };
// The PCIe distance of a GPU and a NIC, nearest first, as NCCL and nvidia-smi name it: one switch, several
// switches, one host bridge, one NUMA node, across sockets.
enum class PciDistance : std::uint8_t { kPix, kPxb, kPhb, kNode, kSys };

std::string_view TransportName(Transport transport);  // "InfiniBand", "RoCE", "EFA", "Ethernet"
std::string_view NicRoleName(NicRole role);           // "compute", "storage", "management"
std::string_view LinkStateName(LinkState state);      // "Active", "Down", "Unknown"
// "None", "Flapping", "Errors", "PauseStorm", "PathLoss", "NotLossless"
std::string_view LinkFaultName(LinkFault fault);
std::string_view PciDistanceName(PciDistance distance);  // "PIX", "PXB", "PHB", "NODE", "SYS"
std::optional<Transport> ParseTransport(std::string_view name);
// All of them, in the order of the values.
std::span<const std::string_view> TransportNames();
std::optional<NicRole> ParseNicRole(std::string_view name);
std::optional<LinkState> ParseLinkState(std::string_view name);
std::optional<LinkFault> ParseLinkFault(std::string_view name);
std::optional<PciDistance> ParsePciDistance(std::string_view name);

// A compute NIC that a GPU should have and that is no longer there.
struct LostNic {
  int rail = 0;     // that it was on, 0 to kMaxRail
  std::string pci;  // its function, which has no RDMA device any more; empty: it is not on the PCI bus either
  friend bool operator==(const LostNic&, const LostNic&) = default;
};

struct Gpu {
  int index = 0;      // NVML index: the number a container sees in an unrestricted pod
  std::string uuid;   // "GPU-…"; empty where nothing names it
  std::string model;  // "NVIDIA H100 80GB HBM3"
  std::string pci;    // "0000:1b:00.0", lower case
  Fact<int> numa;
  bool healthy = true;
  std::string unhealthy_reason;  // a sentence; empty while healthy
  int memory_gib = 0;
  bool mig = false;   // cut into MIG instances, which are no whole GPUs
  int fatal_xid = 0;  // reported since the node booted, and ends the use of the GPU; 0 = none known
  std::optional<LostNic> nic_gone;  // the first, where several are
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

struct NvSwitch {
  std::string pci;
  friend bool operator==(const NvSwitch&, const NvSwitch&) = default;
};

// NVLink of a machine as counts; `exceptions` names the GPUs whose links differ from the rest.
struct NvLink {
  int generation = 0;     // 3 = A100, 4 = H100, 5 = B200; 0 = none
  int links_per_gpu = 0;  // that should be up
  int gbps_per_gpu = 0;   // one direction, all links of one GPU together, in Gb/s
  struct Exception {
    int gpu = 0;
    int links_up = 0;
    // What placement may count on, as gbps_per_gpu: less than the share of the links that are up where some trained
    // to less, counted errors, or came back a short while ago. Empty: that share.
    std::optional<int> usable_gbps;
    friend bool operator==(const Exception&, const Exception&) = default;
  };
  std::vector<Exception> exceptions;  // sorted by gpu
  friend bool operator==(const NvLink&, const NvLink&) = default;

  // What placement may count on of the GPU with that index, in one direction, in Gb/s. `assumed_gbps` stands for
  // gbps_per_gpu where nobody knows that (0).
  int usable_gbps(int gpu, int assumed_gbps = 0) const;
};

// The NVLink domain that this node's GPUs belong to. Within one server the id is the node's own name; over
// nodes (NVL72) it is "<cluster uuid>.<clique>", equal on every tray of the rack partition.
struct NvlinkMembership {
  std::string id;
  bool spans_nodes = false;
  friend bool operator==(const NvlinkMembership&, const NvlinkMembership&) = default;
};

struct LeafPort {
  std::string leaf;  // the switch's name: LLDP system name, or the InfiniBand node description, else its GUID
  std::string port;  // as the switch names it
  // By which LLDP knows the switch, beside its name, as it says it: two switches may have one name. Empty = not known,
  // as of InfiniBand's.
  std::string chassis_id;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 in it for a pointer
  friend auto operator<=>(const LeafPort&, const LeafPort&) = default;
};

// One physical port of a NIC. A bond is one NIC with two ports; a dual-ToR NIC has its ports on two leaves.
struct NicPort {
  int number = 1;
  int plane = 0;  // which of a multi-plane fabric's parallel networks
  LinkState state = LinkState::kUnknown;
  int rate_gbps = 0;  // what the link trained to; 0 = nothing, as it is down, or nobody could say
  // What placement may count on: 0 when down, less than rate when degraded; of an unknown rate what is assumed.
  int usable_gbps = 0;
  Fact<LeafPort> leaf_port;  // where the cable ends
  LinkFault fault = LinkFault::kNone;
  std::string reason;  // the evidence, as a sentence; empty without a fault
  int rdma_mtu = 0;    // bytes of one RDMA packet's payload, 256 to 4096; 0 = unknown
  // RoCE: the entry of the GID table that traffic over its interface should use (NCCL_IB_GID_INDEX), of RoCE v2.
  std::optional<int> gid_index;
  friend bool operator==(const NicPort&, const NicPort&) = default;
};

struct Nic {
  std::string name;    // RDMA device: "mlx5_0"
  std::string netdev;  // "eth1" where there is one
  std::string pci;
  std::string guid;    // "0x506b4b0300c3b4a2" or empty
  std::string driver;  // of its PCI function: "mlx5_core", "efa"; empty = unknown
  std::string pci_id;  // vendor and device of that function, "15b3:1021"; empty = unknown
  Transport transport = Transport::kEthernet;
  NicRole role = NicRole::kManagement;
  Fact<int> rail;  // compute NICs: which plane of rails
  Fact<int> numa;
  int mtu = 0;                 // bytes; 0 = unknown
  std::vector<NicPort> ports;  // sorted by number; at least one
  friend bool operator==(const Nic&, const Nic&) = default;

  int usable_gbps() const;  // over its ports that are not down
  bool up() const;          // a compute NIC with at least one usable port
};

// How far a GPU is from a NIC. Only the nearest NICs of a GPU are kept (all that tie), and all of its rail; none where
// nobody knows.
struct GpuNicPath {
  int gpu = 0;
  std::string nic;
  PciDistance distance = PciDistance::kSys;
  friend bool operator==(const GpuNicPath&, const GpuNicPath&) = default;
};

struct Node {
  std::string name;
  std::string machine;               // the product: "DGX H100"; empty = unknown
  std::vector<Gpu> gpus;             // sorted by index
  std::vector<NvSwitch> nvswitches;  // sorted by pci
  NvLink nvlink;
  Fact<NvlinkMembership> nvlink_domain;
  std::vector<Nic> nics;          // sorted by name
  std::vector<GpuNicPath> paths;  // sorted by gpu, distance, nic
  int numa_nodes = 0;
  std::string site;  // beyond it is WAN; empty = the one site
  friend bool operator==(const Node&, const Node&) = default;

  const Nic* FindNic(std::string_view nic_name) const;
  // The compute NIC that GPU `gpu` uses: the nearest, each NIC given to one GPU where there are enough, ties
  // by rail, then name. The first of NicsOfGpu; null when the node has none.
  const Nic* NicOfGpu(int gpu) const;
  // All compute NICs of GPU `gpu`: several where the nearest NICs are a multiple of the GPUs that tie for
  // them.
  std::vector<const Nic*> NicsOfGpu(int gpu) const;
};

// The compute NICs of every GPU: for each position in node.gpus, positions in node.nics. NICs are dealt out
// in rounds among the GPUs that compete for them, one a round and distinct; a round that cannot serve all of
// them is not dealt, so equal GPUs get equal bandwidth. Where there are fewer NICs than GPUs, a NIC is
// shared, the least used first. A GPU without any path is taken to be equally far from every compute NIC.
// Down NICs take part: a GPU does not change its rail because a cable was pulled.
std::vector<std::vector<int>> DealNics(const Node& node);
// Whether a GPU has lost its NIC and what DealNics gave it, positions in node.nics, are those of other GPUs: none is on
// the rail of the one that is gone.
bool BorrowsNics(const Node& node, const Gpu& gpu, const std::vector<int>& dealt);
// The distance of a GPU (by position) to a NIC (by position) of its node; kSys where no path says.
PciDistance Distance(const Node& node, int gpu_position, int nic_position);

// Larger numbers are nonsense, and Check says so: NCCL takes 13 planes at most, and no machine has 256 rails.
inline constexpr int kMaxRail = 255;
inline constexpr int kMaxPlane = 63;

// What is wrong inside one node's description: doubled indexes, a path to a NIC that is not there, a port
// on two leaves, a negative rate. Sentences; empty = sound.
std::vector<std::string> Check(const Node& node);

// A stable hash of everything in the node, for change detection: 16 hex digits (FNV-1a over a canonical
// text).
std::string ContentHash(const Node& node);

// What changed between two observations of one node, as sentences for an event: "mlx5_3 port 1: Active ->
// Down".
std::vector<std::string> Diff(const Node& before, const Node& after);

}  // namespace heddle::topology
