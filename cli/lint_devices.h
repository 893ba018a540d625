#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "crds/device_decision.h"
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

// Of versions of one policy, as a cluster has it and as it is to be, the last is looked at.
struct DevicePolicyVersions {
  // `policies` outlive this.
  explicit DevicePolicyVersions(const std::vector<crds::RdmaDevicePolicy>& policies);

  // As the cluster has the last; 0 = no cluster has it, as far as files say.
  std::int64_t Generation(const std::string& policy) const;

  std::map<std::string, const crds::RdmaDevicePolicy*> firsts, lasts;  // by name
  std::set<std::string> changed;  // whose last has another spec: what nodes were told is the first's
  std::set<std::string> moved;    // of these, those that need no longer select each node that the first did
};

// What these policies tell that node where the operator can run every plugin: whether it was given their images stands
// in no file. Both outlive it.
crds::DeviceDecision DecideDevices(const topology::Node& node,
                                   const std::vector<const crds::RdmaDevicePolicy*>& policies);

// By the operator's own rules (crds/device_decision.h): NICs in two resources and names in two policies, of one policy
// and of two whose nodeSelectors select the same nodes whatever those are, and names that several entries of a policy
// come to, one finding for each; and on nodes what they cannot offer. A policy with a nodeSelector is held against
// nodes that name it only: a NodeTopology does not say its Node's labels. Of policies that no file has, what nodes were
// refused and what agents refuse. Of what agents report that alone which is of the versions that are looked at
// (lint_device_reports.h). The last version of a policy is held against nodes that were told of the first where it
// selects all of them, too.
std::vector<lossless::Finding> LintDevices(const DevicePolicyVersions& versions,
                                           const std::vector<LintDeviceNode>& nodes);

}  // namespace heddle::cli
