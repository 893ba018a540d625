#pragma once

#include <string>
#include <string_view>

// Every name that Heddle shares with the API server, with people's manifests and with the chart. The chart
// and the admission policies repeat them in YAML; tests compare both.
namespace heddle::crds::keys {

inline constexpr std::string_view kGroup = "heddle.dev";
inline constexpr std::string_view kVersion = "v1alpha1";
inline constexpr std::string_view kApiVersion = "heddle.dev/v1alpha1";
inline constexpr std::string_view kNamespace = "heddle-system";
inline constexpr std::string_view kSchedulerName = "heddle";

struct Kind {
  std::string_view kind;
  std::string_view plural;
};
inline constexpr Kind kNodeTopology{"NodeTopology", "nodetopologies"};
inline constexpr Kind kFabric{"Fabric", "fabrics"};
inline constexpr Kind kGang{"Gang", "gangs"};
inline constexpr Kind kLosslessPolicy{"LosslessPolicy", "losslesspolicies"};
inline constexpr Kind kRdmaDevicePolicy{"RdmaDevicePolicy", "rdmadevicepolicies"};
inline constexpr Kind kFabricSwitch{"FabricSwitch", "fabricswitches"};

// What an ML engineer writes on the pod template.
inline constexpr std::string_view kParallelism = "heddle.dev/parallelism";
inline constexpr std::string_view kModel = "heddle.dev/model";
inline constexpr std::string_view kRequire = "heddle.dev/require";
inline constexpr std::string_view kPrefer = "heddle.dev/prefer";
inline constexpr std::string_view kWait = "heddle.dev/wait";
inline constexpr std::string_view kOnDegraded = "heddle.dev/on-degraded";  // wait, or restart
// "true": the gang gets a ComputeDomain, so that NVLink works between its nodes; "false": it gets none.
inline constexpr std::string_view kComputeDomain = "heddle.dev/compute-domain";
// When its last checkpoint was written, RFC 3339; on the job, or on any of its pods by the program itself.
inline constexpr std::string_view kCheckpoint = "heddle.dev/checkpoint";

// What the extender writes on a job that it has suspended, and takes back with the suspension: the gang that this
// makes room for, and whose pods have to be gone (GangKey::owner_uid). When it last was restarted as a whole stays.
inline constexpr std::string_view kPreemptedBy = "heddle.dev/preempted-by";
inline constexpr std::string_view kPreemptedGang = "heddle.dev/preempted-gang";
inline constexpr std::string_view kRestartedAt = "heddle.dev/restarted-at";

// What makes a gang of pods that no controller numbers, on each of them: a label, and two labels or annotations.
inline constexpr std::string_view kGangName = "heddle.dev/gang-name";
inline constexpr std::string_view kGangSize = "heddle.dev/gang-size";
inline constexpr std::string_view kGangRank = "heddle.dev/gang-rank";

// What admission adds to a pod of a gang.
inline constexpr std::string_view kGangGate = "heddle.dev/gang";
inline constexpr std::string_view kFabricResource = "heddle.dev/fabric";
// The entry of spec.resourceClaims that brings the IMEX channel of its gang's ComputeDomain.
inline constexpr std::string_view kComputeDomainClaim = "heddle-compute-domain";

// What only the extender may write on a pod: the plan.
inline constexpr std::string_view kRank = "heddle.dev/rank";
inline constexpr std::string_view kGpus = "heddle.dev/gpus";
inline constexpr std::string_view kNics = "heddle.dev/nics";
inline constexpr std::string_view kGangUid = "heddle.dev/gang-uid";
inline constexpr std::string_view kEpoch = "heddle.dev/epoch";
inline constexpr std::string_view kNode = "heddle.dev/node";
inline constexpr std::string_view kSubstitutes = "heddle.dev/substitutes";

// The ConfigMap that says which pod has which rank, where these are not the pods' own numbers:
// "<owner>-heddle-ranks".
inline constexpr std::string_view kRankFileSuffix = "-heddle-ranks";

// The ComputeDomain of a gang and the ResourceClaimTemplate that comes with it: "<owner>-<8 of its UID>-heddle".
inline constexpr std::string_view kComputeDomainSuffix = "-heddle";
// Who made an object that is not of Heddle's own kinds, by the label that Kubernetes recommends for that.
inline constexpr std::string_view kLabelManagedBy = "app.kubernetes.io/managed-by";

// Labels that the operator puts on nodes, so that other schedulers can use the topology too.
inline constexpr std::string_view kLabelNvlinkDomain = "heddle.dev/nvlink-domain";
inline constexpr std::string_view kLabelUnit = "heddle.dev/su";
inline constexpr std::string_view kLabelSite = "heddle.dev/site";
inline constexpr std::string_view kLabelRails = "heddle.dev/rails";
// Which configuration of another RDMA device plugin the node gets.
inline constexpr std::string_view kLabelRdmaClass = "heddle.dev/rdma-class";
inline constexpr std::string_view kLabelLeafPrefix = "heddle.dev/leaf-";
inline std::string LeafLabel(int rail) {
  return std::string(kLabelLeafPrefix) + std::to_string(rail);
}

// A namespace with this label is in Heddle's scope when the chart is not installed for the whole cluster.
inline constexpr std::string_view kLabelScope = "heddle.dev/scope";

// Server-side apply: one field manager per component, and its own for what it writes beside its objects.
inline constexpr std::string_view kAgentManager = "heddle-nodeagent";
inline constexpr std::string_view kOperatorManager = "heddle-operator";
inline constexpr std::string_view kOperatorLabelsManager = "heddle-operator-labels";
inline constexpr std::string_view kExtenderManager = "heddle-extender";

// Leases in kNamespace.
inline constexpr std::string_view kSchedulerLease = "heddle-scheduler";
inline constexpr std::string_view kOperatorLease = "heddle-operator";
inline constexpr std::string_view kNodeLeasePrefix = "heddle-node-";
inline std::string NodeLease(std::string_view node) {
  return std::string(kNodeLeasePrefix) + std::string(node);
}

}  // namespace heddle::crds::keys
