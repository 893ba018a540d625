#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_tree.h"
#include "crds/node_topology.h"
#include "topology/node.h"

namespace heddle::nodeagent {

// Devices of one resource, as a device plugin or a DRA driver calls them.
struct DeviceSet {
  std::string resource;          // "nvidia.com/gpu"; of a resource claim: its driver, "gpu.nvidia.com"
  bool claim = false;            // by a resource claim (DRA)
  std::vector<std::string> ids;  // sorted, each once
  friend bool operator==(const DeviceSet&, const DeviceSet&) = default;
};

// What the kubelet says that one container holds. It gives names only: no UID.
struct ContainerDevices {
  std::string pod_namespace;
  std::string pod;
  std::string container;
  std::vector<DeviceSet> devices;  // sorted by resource; none is empty
  friend bool operator==(const ContainerDevices&, const ContainerDevices&) = default;
};

enum class GrantsState : std::uint8_t {
  kNotAsked,  // nobody wants them: a recorded machine, or switched off
  kRead,
  kNoSocket,   // no kubelet listens there
  kForbidden,  // we may not open its socket
  kTooOld,     // a kubelet without this method
  kNoAnswer,   // it hangs, breaks off, refuses the call, or answers nonsense
};

// One answer of the kubelet.
struct GrantReadings {
  GrantsState state = GrantsState::kNotAsked;
  std::string problem;                                // a sentence; empty where it was read or not asked for
  std::vector<ContainerDevices> containers;           // sorted by namespace, pod, container
  std::optional<std::vector<DeviceSet>> allocatable;  // what it can give at all; nothing = it does not say
  // The PCI function behind a resource's device id where the id does not name it and sysfs does: a virtual
  // function's parent, "card1" of amdgpu, "nvidia0" by its minor number.
  std::map<std::pair<std::string, std::string>, std::string> functions;
  // What ids of our own device plugin stand for, by resource and id: GPUs by UUID, NICs by name.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> own;
  friend bool operator==(const GrantReadings&, const GrantReadings&) = default;
};

// Whoever knows what containers hold. Thread rule: one thread.
class GrantSource {
 public:
  GrantSource() = default;
  GrantSource(const GrantSource&) = delete;
  GrantSource& operator=(const GrantSource&) = delete;
  virtual ~GrantSource() = default;
  // Bounded in time, and shorter once `stop` asks.
  virtual GrantReadings Read(std::stop_token stop) = 0;
};

// Puts an answer into its order, with what stands there twice merged and containers without devices left out.
void Sort(GrantReadings& readings);

// Looks up `functions` for all ids in `readings`. Reads sys/bus/pci/devices/*/physfn, sys/class/drm/card*/device
// and proc/driver/nvidia/gpus/*/information, each only where an id asks for it.
void FindFunctions(const base::FileTree& files, GrantReadings& readings);

// status.grants holds so many (maxItems of the schema); of more the biggest are kept.
inline constexpr std::size_t kMaxGrants = 128;

struct JoinedGrants {
  std::vector<crds::Grant> grants;  // sorted by namespace, pod, container
  std::vector<std::string> notes;   // what an admin should know of them, as sentences
};

// Which GPUs and NICs of this node the containers hold. A device is joined by what its id says and nothing else:
//   GPU-<uuid>, with a time slice's "::0" or "-0" behind it   by UUID
//   0000:1b:00.0, or pci-0000-1b-00-0 as DRA drivers write it   by PCI address, of a GPU or a NIC
//   mlx5_0, eth1                                                by name, of a NIC
//   whatever `functions` has                                    by that PCI address
//   whatever `own` has                                          by those names
// All others (MIG devices, the counted slots of shared RDMA devices, a GPU that is not here) are published as
// they are. Pure and total.
JoinedGrants JoinGrants(const GrantReadings& readings, const topology::Node& node);

inline constexpr std::string_view kGrantsKnown = "GrantsKnown";
// Whether the grants are known, and what is odd about them; nothing where nobody asked.
std::optional<crds::Condition> GrantsCondition(const GrantReadings& readings, const JoinedGrants& joined,
                                               const topology::Node& node);

}  // namespace heddle::nodeagent
