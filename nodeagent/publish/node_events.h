#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "crds/place_labels.h"
#include "kube/events.h"
#include "nodeagent/health/gpu_health.h"
#include "nodeagent/monitor/monitor.h"

namespace heddle::nodeagent {

// What people are told about a Node, in `kubectl describe node` and `kubectl get events`.
struct NodeEvent {
  kube::Severity severity = kube::Severity::kNormal;
  std::string_view reason;  // one of those below
  std::string note;
  friend bool operator==(const NodeEvent&, const NodeEvent&) = default;
};
inline constexpr std::string_view kLinkFlapping = "LinkFlapping";
inline constexpr std::string_view kLinkDown = "LinkDown";
inline constexpr std::string_view kLinkDegraded = "LinkDegraded";
inline constexpr std::string_view kLinkHealthy = "LinkHealthy";
inline constexpr std::string_view kLeafChanged = "LeafChanged";
inline constexpr std::string_view kGpuUnhealthy = "GpuUnhealthy";
inline constexpr std::string_view kGpuHealthy = "GpuHealthy";
inline constexpr std::string_view kGpuGone = "GpuGone";
inline constexpr std::string_view kNicGone = "NicGone";
inline constexpr std::string_view kGpuXid = "GpuXid";
inline constexpr std::string_view kNvlinkFault = "NvlinkFault";
inline constexpr std::string_view kNvlinkRecovered = "NvlinkRecovered";

// One event for each transition, from Sight to Sight. What cannot be read is no transition: the last that was known
// stays the measure. The first Sight is compared with what was published before this agent started, where that was
// given, else it is only where counting begins. Of one GPU, or NIC that goes, there are no more events than
// GpuAllowance says, and the next that may be told says how many were left out; an XID that ends the use of a GPU is
// always told. A value.
// Thread rule: one thread.
class NodeEvents {
 public:
  // `boot_id`: of the run of the machine that this was published in; empty = unknown.
  void Restore(const topology::Node& published, std::string boot_id = {});
  // The labels of the Node that name a place: the leaf of ports whose network tells none.
  void Learn(crds::PlaceLabels labels) { labels_ = std::move(labels); }
  std::vector<NodeEvent> Look(const Sight& sight);

 private:
  void LookAtLinks(const Sight& sight, std::vector<NodeEvent>& events);
  void LookAtLeaves(const Sight& sight, std::vector<NodeEvent>& events);
  void LookAtNics(const Sight& sight, std::vector<NodeEvent>& events);
  void LookAtGpus(const Sight& sight, std::vector<NodeEvent>& events);
  void LookAtXids(const Sight& sight, std::vector<NodeEvent>& events);

  // Adds its name where there may be one more event about it.
  void Add(const std::string& key, std::string name, base::MonotonicTime at, std::vector<std::string>& names);
  template <class AnyGpu>
  void AddGpu(const AnyGpu& gpu, base::MonotonicTime at, std::vector<std::string>& names);

  std::string LeafByLabels(const WatchedPort& watched, const Sight& sight) const;

  crds::PlaceLabels labels_;
  bool compares_ = false;                             // there is something to compare with
  bool looked_ = false;                               // and it is not what was published, which has no XIDs
  std::map<std::string, Verdict> verdicts_;           // by WatchedPort::key; those that are not kUnknown
  std::map<std::string, topology::LeafPort> leaves_;  // by PortKey
  std::map<std::string, topology::Nic> nics_;  // with RDMA, by PCI address, or name where there is none
  std::map<std::string, topology::Gpu> gpus_;  // by GpuKey
  std::map<std::string, int> xids_;            // the same
  struct Told {
    GpuAllowance allowance;
    int left_out = 0;  // since the last that was told
  };
  std::map<std::string, Told> told_;  // as gpus_ and nics_
  std::string restored_boot_;         // until the first look
};

// The Node, as the kubelet's events name it: its name in place of the uid, by which `kubectl describe node` finds
// them (kubernetes pkg/kubelet/kubelet.go, nodeRef).
kube::ObjectReference NodeReference(const std::string& node);

}  // namespace heddle::nodeagent
