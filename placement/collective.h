#pragma once

#include <cstdint>
#include <string_view>

namespace heddle::placement {

// What one collective takes, by the formulas of NCCL 2.30's tuner (src/graph/tuning.cc, commit 5067397c;
// performance anchors 2.1) and a thin layer of measured efficiency over it (docs/cost-model.md).

enum class Collective : std::uint8_t { kAllReduce, kReduceScatter, kAllGather, kAllToAll, kSendRecv };
enum class Algorithm : std::uint8_t {
  kRing,
  kTree,  // double binary tree
  kNvls,  // NVLink SHARP: the switch adds
  kNvlsTree,
  kCollNetDirect,  // in-network reduction (InfiniBand SHARP)
  kCollNetChain,
  kPairwise,  // every rank to every other: all-to-all and sends
};
enum class Protocol : std::uint8_t { kLl, kLl128, kSimple };
std::string_view CollectiveName(Collective collective);  // "all_reduce", as nccl-tests' programs are called
std::string_view AlgorithmName(Algorithm algorithm);     // "Ring", "NVLSTree", as NCCL_ALGO takes them
std::string_view ProtocolName(Protocol protocol);        // "LL", "LL128", "Simple", as NCCL_PROTO takes them

// A group as NCCL sees it: a domain is an NVLink domain (NCCL's node; a whole NVL72 rack is one), or a server
// where there is no NVLink. A group of unlike domains is described by its worst: the fewest gigabytes, the
// most ranks. All rates are one way, in GB/s (1e9 bytes).
struct GroupShape {
  int ranks = 2;             // >= 1
  int domains = 1;           // 1 … ranks
  int ranks_per_domain = 2;  // in the fullest domain; >= ranks / domains
  // Between the ranks of a domain, without meaning where each has but one: of one GPU, as NCCL counts it
  // (kNvlink4Percent and its like: 369 for the 18 links of an H100); 0 = the GPUs meet over PCIe.
  double nvlink_gbs = 0;
  int nvlink_generation = 0;  // 3 A100, 4 H100 and H200, 5 B200, GB200 and GB300; 0 = none or not known
  bool nvswitch = false;  // with generation 4 and up: the switch can add (NVLS; NCCL_NVLS_ENABLE=0 says no)
  double pcie_gbs = 24;   // of one GPU
  // The network, where domains > 1. A rank's own way out is its NIC (or its share of one that several ranks
  // use), as slow as the slowest hop to the group's other domains; sharing with other gangs already taken off.
  double net_gbs = 0;         // of the slowest member's own way, payload: kNetPercent of what its NIC signals
  double net_domain_gbs = 0;  // of all members of the poorest domain together; 0 = ranks_per_domain x net_gbs
  // Network devices of a domain as NCCL counts them, from which it makes its channels: a NIC of two ports that
  // it does not fuse (before 2.20, NCCL_IB_MERGE_NICS=0) is two. 0 = one a rank.
  int net_devices = 0;
  int peer_channels = 0;  // of a send or all-to-all: NCCL_NCHANNELS_PER_NET_PEER; 0 = as NCCL chooses
  // Some peer sits on another rail: its bytes turn in a peer GPU (PXN) or in a spine.
  bool crosses_rails = false;
  bool ring_only = false;       // NCCL_ALGO=Ring
  bool sharp = false;           // measured in-network reduction on every switch the group crosses
  double extra_latency_us = 0;  // one way, beyond the first leaf switch: 0.5 a switch, fibre to another site
};

struct Prediction {
  double micros = 0;
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
};

// Of one call; `bytes` is nccl-tests' S (the whole array, >= 0). The least predicted time over the algorithms
// and protocols that the group allows, as NCCL chooses. A group of one rank, or no bytes, takes nothing. A
// network of 0 GB/s takes as long as one byte per microsecond does: dear, but finite.
Prediction Predict(Collective collective, const GroupShape& shape, double bytes);

// nccl-tests' bus bandwidth in GB/s (doc/PERFORMANCE.md): bytes / micros times 2(n-1)/n for all-reduce,
// (n-1)/n for reduce-scatter, all-gather and all-to-all, 1 for send and receive.
double BusBandwidth(Collective collective, int ranks, double bytes, double micros);
double BusFactor(Collective collective, int ranks);

}  // namespace heddle::placement
