#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "crds/cable_report.h"
#include "crds/condition.h"
#include "crds/node_devices.h"
#include "crds/node_lossless.h"
#include "crds/object_meta.h"
#include "crds/place_labels.h"
#include "topology/node.h"

namespace heddle::crds {

// One per Node, of the same name. The operator makes it and writes spec; that node's agent alone writes
// status.

// What the operator tells the agent.
struct NodeTopologySpec {
  PlaceLabels labels;                  // of the Node's; see PlaceLabelsOf
  std::vector<LosslessWish> lossless;  // no port in two of them
  std::vector<DeviceWish> devices;     // sorted by resource
  std::vector<CableReport> cables;     // no port in two of them
  friend bool operator==(const NodeTopologySpec&, const NodeTopologySpec&) = default;
};

// What the kubelet really gave to one container. Grants outrank plans.
struct Grant {
  struct GpuRef {
    int index = 0;
    std::string uuid;  // empty where nothing names the GPU
    friend bool operator==(const GpuRef&, const GpuRef&) = default;
  };
  // A device that is none of the node's GPUs and NICs, or whose id does not say which: a MIG device, a slot of
  // a shared RDMA device.
  struct DeviceRef {
    std::string resource;
    std::string id;  // as the device plugin or DRA driver calls it
    friend bool operator==(const DeviceRef&, const DeviceRef&) = default;
  };
  std::string pod_namespace;
  std::string pod_name;
  std::string pod_uid;  // empty where the kubelet did not say: its pod-resources API never does
  std::string container;
  std::vector<GpuRef> gpus;            // sorted by index
  std::vector<std::string> nics;       // sorted
  std::vector<std::string> resources;  // by which it holds them, sorted: "nvidia.com/gpu", a DRA driver
  std::vector<DeviceRef> unmatched;    // in the order of resource and id
  friend bool operator==(const Grant&, const Grant&) = default;
};

// A port that is congested, as its agent counts it: no fault of its link, and nothing of the machine, so it stands
// beside `node` and changes no hash.
struct CongestedPort {
  std::string nic;
  int port = 0;
  base::WallTime since;  // whole seconds
  std::string evidence;  // "70000 CNPs handled in 1 min", as it was when that began
  friend bool operator==(const CongestedPort&, const CongestedPort&) = default;
};

inline constexpr std::size_t kMaxLabels = 16;  // of spec.labels
inline constexpr std::size_t kMaxCableEntries = 32;
// A dozen of the machine, and one for each rail.
inline constexpr std::size_t kMaxConditions = 48;
inline constexpr std::size_t kMaxCongestedPorts = 128;

struct NodeTopologyStatus {
  std::int64_t observed_generation = 0;
  topology::Node node;                        // its name is the object's and is not repeated in JSON
  std::string hash;                           // topology::ContentHash of `node`, 16 hex digits
  std::optional<base::WallTime> observed_at;  // whole seconds; nothing = no agent has reported yet
  std::string agent_version;
  std::string boot_id;        // of the node's run that the faults were seen in; empty = unknown
  std::vector<Grant> grants;  // sorted by namespace, pod, container
  std::vector<LosslessReport> lossless;
  std::vector<DeviceReport> devices;      // sorted by resource
  std::vector<CongestedPort> congestion;  // sorted by NIC and port, none in two of them
  std::vector<Condition> conditions;
  friend bool operator==(const NodeTopologyStatus&, const NodeTopologyStatus&) = default;
};

struct NodeTopology : ObjectMeta {
  NodeTopologySpec spec;
  NodeTopologyStatus status;
  friend bool operator==(const NodeTopology&, const NodeTopology&) = default;
};

// The words of `kubectl get nt`. JSONPath cannot compute, so they are written beside the facts; reading back
// ignores them.
struct NodeSummary {
  std::string machine;  // "DGX H100", "?" when unknown
  std::string gpus;     // "8", or "7/8" healthy
  std::string
      nvlink_domain;      // "node" = its own GPUs only, "3f2a91c0.1" = a rack's, "-" = none, "?" = unknown
  std::string rails;      // "7/8" up; "-" where rails do not apply, "?" where nobody could measure them
  std::string leaf;       // "su0-r0…r7", "tor-1"; "-" = no compute NIC, "?" = unknown
  std::string transport;  // "InfiniBand", "RoCE", "EFA", "Ethernet", "Mixed", "-" = no compute NIC
  friend bool operator==(const NodeSummary&, const NodeSummary&) = default;
};
NodeSummary Summarise(const topology::Node& node);

// The whole object, for PUT (of /status, where the server ignores spec) and for people.
Json ToJson(const NodeTopology& object);
[[nodiscard]] base::Result<NodeTopology> NodeTopologyFromJson(const Json& json);
// Makes of status.node what placement may count on: a port whose cable counts less than whole (spec.cables) has that
// much less usable bandwidth, with the fault kNotLossless where the agent knows none; hash follows. Whoever plans
// reads nodes so; the agent and whoever compares its report do not.
void CountCables(NodeTopology& object);
// What an agent makes of its own object. A newer operator may have written its spec, and anybody its status: what can
// be read is read.
struct OwnNodeTopology {
  NodeTopology object;
  bool has_status = false;  // an agent wrote one that can be read
  // What stands in spec and this version does not know, with its path: keys, and values as sentences; 16 at most. An
  // entry of spec.lossless that has one says so itself, and one of spec.devices has a reason.
  std::vector<std::string> not_understood;
  friend bool operator==(const OwnNodeTopology&, const OwnNodeTopology&) = default;
};
// Errors: kInvalid where the object is no NodeTopology at all.
[[nodiscard]] base::Result<OwnNodeTopology> OwnNodeTopologyFromJson(const Json& json);
// The same object with its status as one binary value, which NodeTopologyFromJson reads too: a tenth of the
// memory, for the caches of a large cluster. What has no object for a status comes back as it was.
Json Packed(Json node_topology);
// The bodies of server-side apply: kind, name, uid (a precondition, where known) and one half of the object.
// The first also carries the owners.
Json SpecApplyJson(const NodeTopology& object);
Json StatusApplyJson(const NodeTopology& object);

}  // namespace heddle::crds
