#pragma once

#include <map>
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
  std::set<std::pair<std::string, int>>
      without_ipv4;  // RoCE ports whose GID holds an IPv6 address that was given
  std::set<std::pair<std::string, int>> unnumbered;  // RoCE ports whose GID holds no address that was given
  std::map<std::string, std::vector<std::string>> functions;  // DeviceFiles::functions
  std::set<std::string> hidden_functions;                     // DeviceFiles::hidden_functions
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
// (parseStringList of src/misc/utils.cc), and those before it pass over what follows the port. It takes 32 entries
// (MAX_IB_DEVS of src/transport/net_ib/common.h), each of one port, and passes over those beyond. An exact list keeps
// NCCL from every device that is not on it, so virtual functions, which pods have in place of their physical one, are
// on it with the rail and plane of that; where one is not seen here there is no list. Each pod can open those only that
// it was given.
//
// Which family of addresses pods have is told by those of the ports here, and not guessed where they have none: pods
// may get theirs from a CNI (Multus). NCCL looks for IPv4 then, as it does by itself; told to look for IPv6 it would
// stay at entry 0 of a GID table that holds link-local addresses and IPv4, which is of RoCE v1 (ncclUpdateGidIndex of
// src/transport/net_ib/connect.cc).
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
