#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "crds/policy_edition.h"

namespace heddle::crds {

// The RDMA devices of a NodeTopology: in spec which resources its kubelet is to have, in status which it has.

// How pods get NICs (docs/devices.md).
enum class DeviceMode : std::uint8_t {
  kWholeNode,  // a pod takes a whole node: the resource is all of these NICs at once
  kPairs,      // each device is a GPU with its NIC; the GPU vendor's own plugin is off
  kNics,       // each device is a NIC; which one a pod gets follows its plan
};
// Who offers the resource to the kubelet.
enum class DevicePlugin : std::uint8_t { kHeddle, kRdmaShared, kSriov };
std::string_view DeviceModeName(DeviceMode mode);        // "WholeNode", "Pairs", "Nics"
std::string_view DevicePluginName(DevicePlugin plugin);  // "Heddle", "RdmaShared", "Sriov"

// One resource that the node is to offer, or why it does not.
struct DeviceWish {
  std::string resource;               // "heddle.dev/rail0"
  std::vector<std::string> policies;  // one; several = they conflict, and none of them applies
  std::int64_t generation = 0;        // of the policy
  std::string policy_uid;             // whose generation that is; empty = an operator told it that said none
  DeviceMode mode = DeviceMode::kWholeNode;
  DevicePlugin plugin = DevicePlugin::kHeddle;
  std::vector<std::string> ports;  // "mlx5_0:1", sorted
  int slots = 1;                   // so many pods may hold each device at a time; 1 = exclusive
  std::string reason;              // why it is not offered; empty = it is
  // Read only: keys that stand in it and this version does not know. Of what an agent reads `reason` says so instead.
  std::vector<std::string> not_understood;
  friend bool operator==(const DeviceWish&, const DeviceWish&) = default;
};

enum class DeviceState : std::uint8_t {
  kOffered,    // the kubelet took it
  kPending,    // not yet: the kubelet is away, or has no device of another plugin's resource
  kRefused,    // it cannot be offered; see reason
  kElsewhere,  // another plugin offers it; where that is not as the policy says, `healthy` is 0
};
std::string_view DeviceStateName(DeviceState state);  // "Offered", …

struct DeviceReport {
  std::string resource;
  PolicyEdition edition;  // of the wish that this answers
  DeviceState state = DeviceState::kPending;
  std::string reason;  // a sentence; while offered, what is wrong with a device that is not healthy
  int healthy = 0;     // devices (slots are not counted); of another plugin all that the kubelet lists
  int total = 0;
  friend bool operator==(const DeviceReport&, const DeviceReport&) = default;
};

inline constexpr std::size_t kMaxDeviceEntries = 64;

// Where containers with heddle.dev/fabric find NCCL's configuration.
inline constexpr std::string_view kNcclFolder = "/etc/heddle/nccl";
inline constexpr std::string_view kNcclConf = "nccl.conf";

// "2/2": resources that are offered, of those that should be; "?" where nobody reported.
std::string DevicesSummary(const std::vector<DeviceReport>& reports);

}  // namespace heddle::crds
