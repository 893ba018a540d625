#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "crds/node_devices.h"
#include "nodeagent/grants/grants.h"
#include "topology/node.h"

namespace heddle::nodeagent {

// Which devices the kubelet is offered, and what a container that gets some of them is given. Pure: the gRPC of it is
// in endpoint.h.

// What Allocate answers for one container.
struct ContainerGift {
  std::map<std::string, std::string> variables;  // one that the pod's spec sets as well is the pod's
  std::map<std::string, std::string> folders;    // read-only mounts: path in the container → on the host
  std::map<std::string, std::string>
      devices;                   // device nodes, to be read and written: in the container → on the host
  std::vector<std::string> cdi;  // "nvidia.com/gpu=GPU-…"
  friend bool operator==(const ContainerGift&, const ContainerGift&) = default;
};

// One device of a resource. As a resource that several pods may share it is so many ids to the kubelet.
struct OfferedDevice {
  std::string id;       // "mlx5_0", "GPU-…", "node"
  std::string trouble;  // why it is unhealthy, as a sentence; empty = healthy
  std::optional<int> numa;
  std::optional<int> gpu;         // index of the GPU that it is or has
  std::string uuid;               // of that GPU
  std::vector<std::string> nics;  // by name, that it is or has
  ContainerGift gift;
  friend bool operator==(const OfferedDevice&, const OfferedDevice&) = default;
};

struct Offer {
  std::string resource;                // "heddle.dev/rail0"
  std::vector<OfferedDevice> devices;  // none has the id of another
  int slots = 1;                       // ids of each device
  crds::PolicyEdition edition;         // of the wish; none for heddle.dev/fabric, which is nobody's policy
  crds::DeviceMode mode = crds::DeviceMode::kWholeNode;
  crds::DeviceState state =
      crds::DeviceState::kPending;  // kRefused, kElsewhere: it is not offered, see reason
  std::string reason;
  std::string note;  // what is to be known of a device that is offered all the same; a sentence, or empty
  friend bool operator==(const Offer&, const Offer&) = default;

  bool offered() const { return state == crds::DeviceState::kPending; }
};

// The NCCL files of this node, as they stand in the state directory.
struct NcclMount {
  std::string folder;  // on the host; empty = they are not there yet
  bool efa = false;
  bool over_etc = false;  // mounted as /etc/nccl.conf, for NCCL before 2.23
  friend bool operator==(const NcclMount&, const NcclMount&) = default;
};

// Where containers find them, and under which names.
using crds::kNcclConf;
using crds::kNcclFolder;
inline constexpr std::string_view kNcclTopology = "topology.xml";

// So many pods of a node can have heddle.dev/fabric. It must not be what a node runs out of: kubelets have 110 pods by
// default, and 250 is the most that OpenShift, AKS and EKS set.
inline constexpr int kFabricSlots = 250;
inline constexpr std::size_t kMaxDeviceId = 63;  // device-plugin API
inline constexpr int kMaxSlots = 1000;  // of one device; of rdma-shared plugins it is the usual number

// What is known of the machine beside the node itself.
struct DeviceFacts {
  std::map<std::string, std::string> verbs;  // "mlx5_0" → "uverbs0"
  bool rdma_cm = false;                      // the connection manager's device is there
  std::string folder = "/dev/infiniband";    // where those lie on the host
  NcclMount nccl;
  std::map<std::string, std::string> withdrawn;  // ports ("mlx5_0:1") → why, as a sentence
  // Resources that this agent offered before: the kubelet may still have their devices, which are no other plugin's.
  std::set<std::string> ours;
  // What the kubelet can give at all; nothing = it did not say.
  std::optional<std::vector<DeviceSet>> allocatable;
  // What it could at the question before. One that has just started knows no plugin until that registers again.
  std::optional<std::vector<DeviceSet>> allocatable_before;
  decltype(GrantReadings::functions) functions;  // what ids in it stand for that name no device themselves
  friend bool operator==(const DeviceFacts&, const DeviceFacts&) = default;
};

// heddle.dev/fabric first, then an offer for each wish, in their order. A wish for heddle.dev/fabric, a second one for
// a resource, and one that the machine cannot fulfil are refused with a reason. Pure and total.
std::vector<Offer> OffersOf(const std::vector<crds::DeviceWish>& wishes, const topology::Node& node,
                            const DeviceFacts& facts);

// The ids of a device: its own, or "mlx5_0::0" to "mlx5_0::7" where 8 may share it.
std::vector<std::string> IdsOf(const Offer& offer, const OfferedDevice& device);
// The device that an id is of; null where there is none.
const OfferedDevice* FindDevice(const Offer& offer, std::string_view id);

// What a container gets with these ids. kNotFound: one is no device of this offer.
[[nodiscard]] base::Result<ContainerGift> Allocate(const Offer& offer, const std::vector<std::string>& ids);

// The report of an offer: `state` and `reason` as the kubelet takes it, where it is offered.
crds::DeviceReport ReportOf(const Offer& offer, crds::DeviceState state, std::string_view reason);

// The report of an offer that is another plugin's (kElsewhere), by what the kubelet can give: kPending until that has a
// device of the resource, then kElsewhere with as many as it lists. Of k8s-rdma-shared-dev-plugin those are shares.
// `allocatable`: nothing = it is not known, and so nobody says that the plugin runs. `unheard`: why not, as a part of a
// sentence, where this agent has no answer of the kubelet yet.
crds::DeviceReport ReportOfOther(const Offer& offer, const std::optional<std::vector<DeviceSet>>& allocatable,
                                 std::string_view unheard = {});

// Of resources that are offered and of which the kubelet can give a device that is not ours: that device. Then another
// plugin has the same resource, and the kubelet takes whichever spoke last.
std::map<std::string, std::string> ForeignDevices(const std::vector<Offer>& offers,
                                                  const GrantReadings& readings);

// What ids of our own stand for: GPUs by UUID and NICs by name (GrantReadings::own).
void NameOwn(const std::vector<Offer>& offers, GrantReadings& readings);

}  // namespace heddle::nodeagent
