#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "crds/cable_report.h"
#include "crds/condition.h"
#include "crds/object_meta.h"
#include "topology/fabric.h"
#include "topology/suspects.h"

namespace heddle::crds {

// One per transport and site. People write spec; the operator makes the object and writes status, a summary
// without host lists. Lists are capped (the limits are in fabrics.yaml); `counts` is always the whole truth.

struct FabricCounts {
  int nodes = 0;
  int gpus = 0;
  int units = 0;
  int leaves = 0;
  int spines = 0;  // of all tiers above the leaves
  int nvlink_domains = 0;
  int cabling_faults = 0;  // without the ambiguous
  friend bool operator==(const FabricCounts&, const FabricCounts&) = default;
};

struct UnitSummary {
  std::string name;
  int nodes = 0;
  std::vector<std::string> leaves;
  friend bool operator==(const UnitSummary&, const UnitSummary&) = default;
};

struct LeafSummary {
  std::string name;
  topology::Fact<int> rail;
  int plane = 0;
  std::string unit;  // empty = in none
  int down_gbps = 0;
  int up_gbps = 0;
  int nodes = 0;
  friend bool operator==(const LeafSummary&, const LeafSummary&) = default;
};

struct SpineSummary {
  std::string name;
  int tier = 2;
  friend bool operator==(const SpineSummary&, const SpineSummary&) = default;
};

struct NvlinkDomainSummary {
  std::string id;
  int nodes = 0;
  int gpus = 0;
  friend bool operator==(const NvlinkDomainSummary&, const NvlinkDomainSummary&) = default;
};

struct FabricStatus {
  std::int64_t observed_generation = 0;
  topology::Transport transport = topology::Transport::kEthernet;
  std::string site;
  topology::Shape shape = topology::Shape::kToR;
  int rails = 0;
  FabricCounts counts;
  std::vector<UnitSummary> units;
  std::vector<LeafSummary> leaves;
  std::vector<SpineSummary> spines;
  std::vector<NvlinkDomainSummary> nvlink_domains;  // those that span nodes
  std::vector<topology::CablingFault> faults;       // worst first
  CableCounts cables;                       // to switches that are asked, of ports that a policy selects
  std::vector<topology::Suspect> suspects;  // worst first
  std::vector<std::string> assumptions;     // sentences: what was neither measured nor declared
  std::vector<Condition> conditions;
  friend bool operator==(const FabricStatus&, const FabricStatus&) = default;
};

// NVIDIA UFM, which is asked what the switches of an InfiniBand fabric count: spec.ufm. Nothing is written to it.
// Secrets are named in Heddle's own namespace.
struct FabricUfm {
  std::string address;             // host:port of its REST API, over TLS
  std::string credentials_secret;  // with username and password, or with token
  std::string server_name;         // that its certificate is for; empty = the host of the address
  std::string ca_secret;           // with ca.crt
  int poll_seconds = 30;           // between two looks at its counters; as often as UFM itself looks
  friend bool operator==(const FabricUfm&, const FabricUfm&) = default;
};

struct Fabric : ObjectMeta {
  topology::Declaration spec;
  std::optional<FabricUfm> ufm;  // of spec, too
  FabricStatus status;
  friend bool operator==(const Fabric&, const Fabric&) = default;
};

// What status says of an assembled fabric, capped to the schema's limits. Conditions, assumptions and the
// observed generation are left for the caller.
FabricStatus Summarise(const topology::Fabric& fabric);

Json ToJson(const Fabric& object);
[[nodiscard]] base::Result<Fabric> FabricFromJson(const Json& json);
// See node_topology.h.
Json SpecApplyJson(const Fabric& object);
Json StatusApplyJson(const Fabric& object);

}  // namespace heddle::crds
