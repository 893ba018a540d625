#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lossless/port_settings.h"

namespace heddle::lossless {

// What else runs over the same ports, so that it can be kept off the lossless class.
enum class ClassUse : std::uint8_t { kStorage, kManagement, kOther };
std::string_view ClassUseName(ClassUse use);  // "Storage", "Management", "Other"
std::optional<ClassUse> ParseClassUse(std::string_view name);

struct OtherClass {
  std::string name;
  ClassUse use = ClassUse::kOther;
  std::vector<int> dscps;  // ascending, each once
  int priority = 0;
  friend bool operator==(const OtherClass&, const OtherClass&) = default;
};

// How one priority is sent: before all others, or its share of what those leave. Each priority that is named
// gets the traffic class of its number; the others share that of priority 0.
struct EtsShare {
  int priority = 0;
  Algorithm algorithm = Algorithm::kEts;
  int percent = 0;  // ETS only; the shares of a port sum to 100
  friend bool operator==(const EtsShare&, const EtsShare&) = default;
};

inline constexpr int kServiceLevels = 16;  // InfiniBand Architecture: SL has 4 bits

// What NCCL is to do on InfiniBand, where hosts set nothing: service level and adaptive routing are the subnet
// manager's, and a queue pair only says which level it takes and whether packets may overtake each other.
// Nothing = NCCL's own default: level 0, or a communicator's traffic class, and adaptive routing
// (src/transport/net_ib of 2.30.7, connect.cc and init.cc).
struct InfiniBand {
  std::optional<int> service_level;      // 0 to 15, NCCL_IB_SL
  std::optional<bool> adaptive_routing;  // NCCL_IB_ADAPTIVE_ROUTING
  bool empty() const { return !service_level && !adaptive_routing; }
  friend bool operator==(const InfiniBand&, const InfiniBand&) = default;
};
// "service level 1, adaptive routing off"; "nothing" of nothing.
std::string Text(const InfiniBand& infiniband);

// What a person wants of a lossless class, or what a profile proposes. Nothing = not said here. Ranges are
// the reader's to check: DSCPs 0 to 63, priorities 0 to 7, ToS bytes 0 to 255.
struct Policy {
  std::string profile;  // "connectx-7/v1"; empty = generic/v1
  std::optional<Trust> trust;
  std::optional<int> rdma_dscp;
  std::optional<int> rdma_priority;
  std::optional<int> cnp_dscp;
  std::optional<int> cnp_priority;
  std::optional<PrioritySet> pfc;
  std::vector<OtherClass> classes;
  std::vector<EtsShare> ets;        // empty = not said
  std::optional<int> rdma_percent;  // of ETS, where `ets` says nothing
  std::optional<int> cable_metres;
  std::optional<PriorityTable> priority_to_buffer;
  std::optional<Numbers> buffer_bytes;
  std::optional<int> mtu;
  std::optional<int> watchdog_ms;
  std::optional<PrioritySet> ecn;
  std::optional<Dcqcn> dcqcn;
  std::optional<int> tos;
  std::optional<int> traffic_class;
  std::optional<EcnMarking> marking;  // what the switch is to do with the lossless queue
  InfiniBand infiniband;              // of InfiniBand ports, and of no others
  friend bool operator==(const Policy&, const Policy&) = default;
};

// Where a value of a policy comes from, for people.
struct Provenance {
  std::string field;   // as the resource calls it: "rdma.dscp"
  std::string source;  // "the policy", "generic/v1: …", "follows rdma.dscp"
  friend bool operator==(const Provenance&, const Provenance&) = default;
};

// A policy in which every value is set that a port needs: trust, both classes, pfc, ets, mtu, ecn, tos,
// traffic_class, and watchdog_ms where the NIC has one.
struct ResolvedPolicy {
  Policy policy;
  std::vector<Provenance> provenance;  // in the order of Policy's members, what has a value only
  std::string profile;
  std::string no_watchdog;  // why this NIC has none; empty = it has
  friend bool operator==(const ResolvedPolicy&, const ResolvedPolicy&) = default;
};

// What `declared` says, then what its profile does, then what follows from both: PFC and ECN on the RDMA
// priority only, a ToS byte of the RDMA DSCP with ECT(0), NCCL's equal to it, ETS shares for RDMA and the
// rest with CNPs strict. Errors: kNotFound for a profile that there is not, with those that there are.
[[nodiscard]] base::Result<ResolvedPolicy> Resolve(const Policy& declared);

// ToS byte of a DSCP with the ECT(0) codepoint (RFC 3168), so that switches mark instead of dropping.
inline int TosOf(int dscp) {
  return dscp * 4 + 2;
}

}  // namespace heddle::lossless
