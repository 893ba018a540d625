#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crds/device_conditions.h"
#include "crds/gang.h"
#include "extender/pod_facts.h"
#include "topology/node.h"

namespace heddle::extender {

// What kubelets gave the pods of a gang, held against their plans. Whoever places a pod names its GPUs; which the pod
// gets is the device plugin's choice, and most plugins know of no plan
// (docs/decisions/0011-nobody-says-whose-devices.md).
inline constexpr std::string_view kDevicesDiffer = "DevicesDiffer";  // event of crds::kDevicesAsPlanned

struct GivenDevices {
  int compared = 0;   // pods
  int differ = 0;     // of these
  int rank = 0;       // the lowest that differs
  std::string first;  // "pod train/llama-3 (rank 3) holds GPU 4,5 of node-03 where its plan says GPU 0,1"
  friend bool operator==(const GivenDevices&, const GivenDevices&) = default;
};
using GivenByGang = std::map<std::string, GivenDevices, std::less<>>;  // by GangKey::owner_uid

// All that the containers of one pod were given.
struct PodGrants {
  std::uint32_t gpus = 0;  // bit = GPU index
  bool whole = true;       // every GPU of them has an index
  std::vector<std::string> nics;
};

// One pod that was held against its plan.
struct GivenPod {
  std::string owner_uid;  // as in GangKey
  int rank = 0;
  std::string difference;  // as GivenDevices::first; empty = it was given what was planned
  friend bool operator==(const GivenPod&, const GivenPod&) = default;
};

// Nothing is said of a pod without a plan for this node, of one whose plan is the whole node, and while not as many
// GPUs are known to be given as were planned: the kubelet has not said yet, or calls them by names nobody can join.
// NICs differ where one is on none of the rails of the planned GPUs; pods that were given none use their host's.
std::optional<GivenPod> CompareGrants(const PodFacts& pod, const PodGrants& given,
                                      const topology::Node& node);

// Adds one pod to what its gang was given.
void AddGiven(const GivenPod& pod, GivenByGang& all);

// Sets the Gang's condition to what it was given; nothing to say leaves it as it was.
// Returns the sentence of one that has come to differ; empty = it did not, or did before.
std::string SayGiven(const GivenDevices& given, base::WallTime now, std::int64_t generation,
                     std::vector<crds::Condition>& conditions);

// Whether the Gang's condition says just this already.
bool SaysGiven(const crds::Gang& gang, const GivenByGang& all);

}  // namespace heddle::extender
