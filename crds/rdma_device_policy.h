#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crds/condition.h"
#include "crds/node_devices.h"
#include "crds/object_meta.h"
#include "topology/node.h"

namespace heddle::crds {

// Which NICs become which resources of the kubelet. The operator makes of it what each node offers
// (NodeTopology.spec.devices) and alone writes status.

// One resource, or with "{rail}" at the end of its name one for each rail.
struct RdmaResource {
  std::string name;                      // "heddle.dev/rdma", "heddle.dev/rail{rail}"
  std::vector<topology::NicRole> roles;  // of the NICs; empty = compute
  std::vector<int> rails;                // empty = all
  int slots = 1;                         // so many pods may hold each device at a time; 1 = exclusive
  friend bool operator==(const RdmaResource&, const RdmaResource&) = default;
};
inline constexpr std::string_view kRailMark = "{rail}";
// Of a name with "{rail}" at its end what stands before it, a view of `name`; nothing of any other.
constexpr std::optional<std::string_view> RailStemOf(std::string_view name) {
  if (!name.ends_with(kRailMark)) return std::nullopt;
  return name.substr(0, name.size() - kRailMark.size());
}
// Whether an entry comes to this resource by its name and rails alone, whatever NICs nodes have: the name itself, or
// for "{rail}" the number of a rail (0 to topology::kMaxRail, without 0 in front) that it is for. Pure.
bool ComesTo(const RdmaResource& entry, std::string_view resource);
inline constexpr int kMaxSlots = 1000;
inline constexpr std::size_t kMaxRdmaResources = 16;

struct RdmaDevicePolicySpec {
  std::map<std::string, std::string> node_selector;  // labels that a Node has all of; empty = every Node
  DeviceMode mode = DeviceMode::kWholeNode;
  DevicePlugin plugin = DevicePlugin::kHeddle;
  std::vector<RdmaResource> resources;  // sorted by name, each once; at least one
  friend bool operator==(const RdmaDevicePolicySpec&, const RdmaDevicePolicySpec&) = default;
};

// Of the nodes that the policy selects.
struct DeviceCounts {
  int nodes = 0;
  int ready = 0;        // of these: all that they should offer is offered, by whichever plugin
  int waiting = 0;      // for their agent's report, or for the kubelet
  int refused = 0;      // something cannot be offered there
  int conflicting = 0;  // another policy, or another resource of this one, has the same NIC or the same name
  int devices = 0;      // healthy ones that are offered
  int unhealthy = 0;
  friend bool operator==(const DeviceCounts&, const DeviceCounts&) = default;
};

struct RdmaDevicePolicyStatus {
  std::int64_t observed_generation = 0;
  DeviceCounts counts;
  std::vector<std::string> problems;  // the worst first, each naming a node
  std::vector<Condition> conditions;
  friend bool operator==(const RdmaDevicePolicyStatus&, const RdmaDevicePolicyStatus&) = default;
};
inline constexpr std::size_t kMaxDeviceProblems = 16;

struct RdmaDevicePolicy : ObjectMeta {
  RdmaDevicePolicySpec spec;
  RdmaDevicePolicyStatus status;
  friend bool operator==(const RdmaDevicePolicy&, const RdmaDevicePolicy&) = default;
};

Json ToJson(const RdmaDevicePolicy& object);
// What a policy cannot be is refused by field, with what to write instead.
[[nodiscard]] base::Result<RdmaDevicePolicy> RdmaDevicePolicyFromJson(const Json& json);
Json StatusApplyJson(const RdmaDevicePolicy& object);

}  // namespace heddle::crds
