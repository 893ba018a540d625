#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "crds/fabric.h"
#include "crds/fabric_switch.h"
#include "crds/gang.h"
#include "crds/lossless_policy.h"
#include "crds/node_topology.h"
#include "crds/rdma_device_policy.h"

namespace heddle::crds::samples {

// Together these write every field of the schema at least once.
std::vector<NodeTopology> FullNodeTopologies();
std::vector<Fabric> FullFabrics();
std::vector<Gang> FullGangs();
std::vector<LosslessPolicy> FullLosslessPolicies();
std::vector<RdmaDevicePolicy> FullRdmaDevicePolicies();
std::vector<FabricSwitch> FullFabricSwitches();

// A machine as it really is: 8 GPUs, 8 compute and 2 storage NICs, 4 NVSwitches, one grant, everything named.
NodeTopology DgxH100();
// `pods` pods of 8 GPUs, each on its own node with a name of `name_length` characters and 7 substitutes.
Gang LargeGang(int pods, std::size_t name_length);

// Anything that the schema allows, sorted as the structs promise.
NodeTopology RandomNodeTopology(base::Random& random);
Fabric RandomFabric(base::Random& random);
Gang RandomGang(base::Random& random);
LosslessPolicy RandomLosslessPolicy(base::Random& random);
RdmaDevicePolicy RandomRdmaDevicePolicy(base::Random& random);
FabricSwitch RandomFabricSwitch(base::Random& random);

// In samples_lossless.cc: all that a NodeTopology says of its lossless ports.
std::vector<LosslessWish> FullWishes();
std::vector<LosslessReport> FullReports();
std::vector<LosslessWish> RandomWishes(base::Random& random);
std::vector<LosslessReport> RandomReports(base::Random& random);
// In samples_devices.cc: all that it says of its RDMA devices.
std::vector<DeviceWish> FullDeviceWishes();
std::vector<DeviceReport> FullDeviceReports();
std::vector<DeviceWish> RandomDeviceWishes(base::Random& random);
std::vector<DeviceReport> RandomDeviceReports(base::Random& random);

base::WallTime At(std::int64_t second);

}  // namespace heddle::crds::samples
