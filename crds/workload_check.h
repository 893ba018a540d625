#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "crds/object_meta.h"
#include "crds/pod_group.h"
#include "crds/rdma_device_policy.h"

namespace heddle::crds {

// What can be seen of a training workload before it runs: what would make it slow, fail, or end at its first trouble.

// What is known of where it is to run.
struct WorkloadGround {
  int gpus_per_node = 8;  // of the largest node
  bool roce = true;       // NICs speak RoCE; else InfiniBand or EFA, whose pods need no interface
  // Resources that bring RDMA devices, beside those that IsRdmaResource knows: of policies that there are, with the
  // rails that they are for, and of people who say so.
  std::vector<RdmaResource> rdma_resources;
};

struct WorkloadRule {
  std::string_view id;  // "no-rdma"
  bool error = true;    // else a warning: it runs, and is worse than it could be
  std::string_view forbids, why, remedy;
};
std::span<const WorkloadRule> WorkloadRules();

struct WorkloadFinding {
  const WorkloadRule* rule = nullptr;  // of WorkloadRules()
  std::string where;                   // path of the template, "spec.template"; empty = the object
  std::string fact, remedy;            // what is so, and what to change
};

struct WorkloadTemplate {
  std::string where;
  std::int64_t pods = 0;
  std::int64_t gpus = 0;          // of each pod
  std::vector<std::string> rdma;  // the resources by which its containers get RDMA devices; sorted
};

struct CheckedWorkload {
  std::string name;                         // "Job train/llama"
  std::vector<WorkloadTemplate> templates;  // those that ask for GPUs; none = there is nothing to check
  std::vector<WorkloadFinding> findings;    // errors first
  std::int64_t gang_pods =
      0;  // of a Pod: how many make its gang, itself among them; 0 = it is none, or not known
};

// Any object that is a pod or has pod templates; of a TrainJob that it could not be looked at (JobSetOf makes of it and
// its runtime what can). `group`: of the PodGroup that a Pod names (PodGroupOf); where it is not known, whether the
// parallelism makes the gang's GPUs is not judged. Pure and total.
CheckedWorkload CheckWorkload(const Json& object, const WorkloadGround& ground,
                              const PodGroupFacts& group = {});

// Whether a resource brings RDMA devices, by the names of the plugins that there are: those of RdmaDevicePolicies,
// rdma/ (k8s-rdma-shared-dev-plugin), vpc.amazonaws.com/efa, networking.gke.io.networks/ (GKE), openshift.io/ (its
// SR-IOV operator), mellanox.com/; of NVIDIA's network operator and of the SR-IOV plugin (nvidia.com/, intel.com/)
// those with hostdev, rdma, roce, sriov or mlnx in the name.
bool IsRdmaResource(std::string_view name);

}  // namespace heddle::crds
