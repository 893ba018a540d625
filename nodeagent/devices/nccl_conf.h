#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "crds/node_lossless.h"
#include "topology/node.h"

namespace heddle::nodeagent {

// What NCCL's configuration stands on beside the node itself.
struct NcclFacts {
  std::vector<crds::LosslessWish> lossless;  // NodeTopology.spec.lossless
  // What ports were read back as, held against it; nothing = no port has been read yet.
  std::optional<std::vector<crds::LosslessReport>> reports;
  std::set<std::pair<std::string, int>> without_ipv4;  // RoCE ports whose GID holds an IPv6 address
  std::string topology_file;  // as containers see it; empty = NCCL sees the PCIe tree
};

// NCCL's configuration of one node: what its processes would otherwise be told by hand, node by node.
struct NcclConf {
  std::string text;                // lines NAME=VALUE, and comments
  std::vector<std::string> notes;  // what could not be said, and why; sentences
  bool efa = false;                // libfabric is to take the provider efa
  friend bool operator==(const NcclConf&, const NcclConf&) = default;
};

// NCCL (src/misc/param.cc, 2.30) takes a line's value for a variable that is not in the environment, and cuts it after
// 1,023 bytes. NCCL_IB_HCA has entries dev:port:rail:plane in the order of rails; NCCL 2.30.7 reads them
// (parseStringList), and those before it pass over what follows the port. NCCL takes 32 devices (MAX_IB_DEVS).
//
// Only what is known is written: never CollNet, which is a property of the switches; no interface for sockets, because
// whether a pod has the host's is not known here; no GID index, because it differs by network namespace. The traffic
// class is that of the policies, whether they set the ports or only look at what others set, and only while each of
// their ports was read back as trusting DSCP, mapping it and pausing its priority as they say: else packets that NCCL
// marks would be in another class than those of rdma_cm, so a comment says why there is none. On RoCE NCCL_IB_SL is the
// priority that goes with that class (it ends up in the address handle, where only VLAN tags show it), and adaptive
// routing is left as NCCL has it: off. On InfiniBand both are what the policies say in infiniBand: a host has nothing
// that could be read back, since the levels are the subnet manager's. Pure and total.
NcclConf NcclConfOf(const topology::Node& node, const NcclFacts& facts);

}  // namespace heddle::nodeagent
