#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/lint_devices.h"
#include "cli/lint_reports.h"
#include "crds/node_devices.h"

namespace heddle::cli {

// What an agent reports of a node's RDMA devices, held against what the node is told now and against the versions of
// policies that are looked at. That is of this version of a policy where it would tell the node the same of the
// resource, whatever its generation: the operator keeps the number of one that tells a node nothing new. Thread rule:
// one thread.
class ReportsOfNode {
 public:
  // Both outlive this.
  ReportsOfNode(const DevicePolicyVersions& versions, const LintDeviceNode& node)
      : versions_(versions), node_(node) {}

  // Of one of the node's reports.
  Speaks OfWhat(const crds::DeviceReport& report);

 private:
  const std::vector<crds::DeviceWish>& Tells(const crds::RdmaDevicePolicy& policy);

  const DevicePolicyVersions& versions_;
  const LintDeviceNode& node_;
  std::map<std::string, std::vector<crds::DeviceWish>> tells_;  // by policy, were it the only one
};

// Of the nodes of one file: appends a note for each policy of which agents report an earlier version, or that is not
// told there any more. Without one no finding would look as if all were well.
void NoteOutdatedDeviceReports(const DevicePolicyVersions& versions, const std::vector<LintDeviceNode>& nodes,
                               std::vector<std::string>& notes);

}  // namespace heddle::cli
