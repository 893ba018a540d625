#pragma once

#include <set>
#include <string>
#include <vector>

#include "crds/node_topology.h"
#include "crds/rdma_device_policy.h"
#include "lossless/lint.h"

namespace heddle::cli {

// A node that an agent has seen, as RdmaDevicePolicies are held against it.
struct LintDeviceNode {
  std::string name;
  topology::Node node;
  std::vector<crds::DeviceWish> told;
  std::vector<crds::DeviceReport> reports;
};

// By the operator's own rules (crds/device_decision.h): NICs in two resources and names in two policies, of one policy
// and of two whose nodeSelectors select the same nodes whatever those are, and names that several entries of a policy
// come to, one finding for each; and on nodes what they cannot offer. A policy with a nodeSelector is held against
// nodes that name it only: a NodeTopology does not say its Node's labels. Of policies that no file has, what nodes were
// refused and what agents refuse. Of two versions of one policy, as a cluster has it and as it is to be, the last is
// looked at: what agents refused of the first says nothing of it, and it is held against nodes that were told of the
// first where it selects all of them, too.
std::vector<lossless::Finding> LintDevices(const std::vector<crds::RdmaDevicePolicy>& policies,
                                           const std::vector<LintDeviceNode>& nodes);

}  // namespace heddle::cli
