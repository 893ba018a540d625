#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "crds/node_devices.h"
#include "crds/rdma_device_policy.h"
#include "operator/policies.h"
#include "topology/node.h"

namespace heddle::operators {

// What one node says that decides which RDMA devices it offers.
struct DeviceNode {
  std::string name;
  std::map<std::string, std::string> labels;  // of the Node
  topology::Node node;                        // as its agent published it
  bool observed = false;                      // it has published
  std::vector<crds::DeviceWish> wishes;       // that stand in its spec
  std::vector<crds::DeviceReport> reports;    // of its agent
};

// Nodes keep what policies that cannot be read told them.
using DevicePolicies = Policies<crds::RdmaDevicePolicy>;

// What is to stand in the specs of nodes and in the statuses of policies.
struct DeviceRollout {
  std::map<std::string, std::vector<crds::DeviceWish>> wishes;   // by node; every node is in it
  std::map<std::string, crds::RdmaDevicePolicyStatus> statuses;  // by policy
  // By policy, the nodes that wait for the devices of another plugin and for nothing worse, in the order of `nodes`.
  std::map<std::string, std::vector<std::string>> await_plugin;
};

// From all policies and all nodes which resources each node offers, of which ports. A NIC that two resources have, or a
// resource that two policies name, is offered by neither: each says so and names the other. Nor is a resource in which
// several entries of a policy have NICs of the node. A NIC without a known rail is in no resource by rail. A generation
// that tells a node nothing new keeps the old one's number there. A node whose agent has not published keeps what it
// was told. A resource of another plugin is offered once the node's kubelet has a device of it; one that another plugin
// offers beside Heddle's is a conflict. What a policy that cannot be read told a node stays, and others get neither its
// NICs nor its names. Pure: equal inputs give equal results. `now` is only the time of conditions whose status changes.
// `others`: the other plugins that can be run; a policy for one that cannot is refused on each node.
// `unread`: nodes that are told nothing new; a policy that selects one counts it as waiting and names it.
DeviceRollout DecideDevices(const DevicePolicies& policies, const std::vector<DeviceNode>& nodes,
                            const std::set<crds::DevicePlugin>& others, base::WallTime now,
                            const std::vector<UnreadNode>& unread = {});

}  // namespace heddle::operators
