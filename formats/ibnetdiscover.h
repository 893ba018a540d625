#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/ib_neighbours.h"

namespace heddle::formats {

// One end of a cable as it stands under its node.
struct IbLink {
  int port = 0;
  std::string remote_id;  // "S-0008f10400410015": the key of a node, since descriptions recur
  int remote_port = 0;
  int lanes = 0;      // 4 of "4xEDR"; 0 = not said
  std::string speed;  // "EDR"; empty = not said
  friend bool operator==(const IbLink&, const IbLink&) = default;
};

struct IbNode {
  IbNodeKind kind = IbNodeKind::kNone;
  std::string id;    // "S-…", "H-…"
  std::string guid;  // "0x0008f10400410015"
  std::string description;
  int port_count = 0;
  int lid = 0;                // switches: of port 0; adapters have one a port and 0 here
  std::vector<IbLink> links;  // as listed
  int line = 0;               // where it begins in the dump
  friend bool operator==(const IbNode&, const IbNode&) = default;
};

struct IbNetwork {
  std::vector<IbNode> nodes;  // as listed
  // What the dump itself says is wrong or contradicts in it, as sentences: lines that are none of its own (a
  // tool's error mixed into stdout), a node or a port listed twice, a cable seen from one end only.
  std::vector<std::string> problems;

  const IbNode* Find(std::string_view id) const;
};

// The text that ibnetdiscover prints and ibsim reads. Total.
IbNetwork ParseIbNetwork(std::string_view dump);

// What a channel adapter is, as its node description says it.
enum class IbAdapterKind : std::uint8_t {
  kHost,         // "gpu-017 mlx5_3", "compute-00-01 HCA-1"
  kAggregation,  // inside of a switch, for SHARP: "Mellanox Technologies Aggregation Node"
  kNameless,     // the maker's default: nobody told the adapter its host (rdma-ndd or the driver does)
};
struct IbAdapterName {
  IbAdapterKind kind = IbAdapterKind::kNameless;
  std::string host;    // of kHost
  std::string device;  // of kHost: "mlx5_3", "HCA-1"; "HCA-1" where only a host is named
};
IbAdapterName ParseIbAdapterName(std::string_view description);

// What one direction of a link carries, in Gb/s as such links are called: 400 for 4xNDR, 100 for 2xHDR, 10
// for 4xSDR; 0 where lanes or speed are not said or not known.
int IbLinkGbps(const IbLink& link);

// Whether both ends of the cable are on one node, as when somebody tests a switch with loopback cables.
bool IsLoopback(const IbNode& node, const IbLink& link);

}  // namespace heddle::formats
