#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_tree.h"
#include "nodeagent/nic/exclusion.h"
#include "nodeagent/nic/uncabled.h"
#include "topology/node.h"

namespace heddle::nodeagent {

// What a GID can be used for: RoCE v1 does not leave its Ethernet segment. InfiniBand's are kIbOrRoce1, too.
enum class GidType : std::uint8_t { kUnknown, kIbOrRoce1, kRoce2 };

struct Gid {
  int index = 0;
  GidType type = GidType::kUnknown;
  std::string netdev;
  bool ipv4 = false;        // it holds an IPv4 address
  bool unnumbered = false;  // HoldsNoAddress
  friend bool operator==(const Gid&, const Gid&) = default;
};

struct RdmaPort {
  int number = 1;
  topology::LinkState state = topology::LinkState::kUnknown;
  bool disabled = false;   // phys_state says Disabled
  std::string link_layer;  // "InfiniBand", "Ethernet", "Unspecified"
  int rate_gbps = 0;       // 0 = not said
  int lid = 0;
  std::vector<Gid> gids;  // of Ethernet ports: the used entries of the table, up to 32 unused in a row
  std::vector<std::string> netdevs;  // that its GIDs stand for, each once
  topology::Fact<int> plane;         // where somebody told it: sysfs does not
  // The file is there and could not be read: heard.h says what such a port counts with.
  bool state_unread = false, rate_unread = false;
  int assumed_gbps = 0;  // what it counts with while nobody knows its rate: heard.h; 0 = nothing is known
  // Bytes, 256 to 4096, as the driver says (verbs.h); 0 = nobody said.
  int active_mtu = 0;
  friend bool operator==(const RdmaPort&, const RdmaPort&) = default;
};

struct RdmaDevice {
  std::string name;
  std::string pci;          // empty for software devices (rxe, siw), also where the kernel links them to one
  std::string guid;         // "0x506b4b0300c3b4a2", empty where it is all zeros
  std::string system_guid;  // of the card: equal for all of its functions
  std::string board;
  std::string driver;  // of its PCI function: "mlx5_core", "efa"; empty where sysfs does not say
  topology::Transport transport = topology::Transport::kInfiniBand;
  std::vector<std::string> netdevs;  // of its PCI function, sorted
  std::vector<RdmaPort> ports;       // sorted by number, those down by design left out
  topology::Fact<int> rail;          // where somebody told it; what is measured wins
  friend bool operator==(const RdmaDevice&, const RdmaDevice&) = default;
};

struct RdmaReadings {
  std::vector<RdmaDevice> devices;  // sorted by name
  std::vector<Exclusion> excluded;
  std::vector<std::string> problems;
};

// sys/class/infiniband. Keeps what a device's VPD said: reading it takes milliseconds of the card's firmware
// each time, and it does not change while the card is in. One that could not be read is asked for again. Of ports it
// keeps whether they were up, for UncabledByDesign.
// Thread rule: one thread.
class RdmaProbe {
 public:
  explicit RdmaProbe(const base::FileTree& files) : files_(files) {}
  // Ports without a cable that nobody has to guess, from the next Read on.
  void LeaveOut(UncabledPorts named) { named_ = std::move(named); }
  RdmaReadings Read();

 private:
  struct Past {
    bool up = false;        // at any look
    bool left_out = false;  // at the last
  };
  bool ManagesNvlink(const std::string& base, const RdmaDevice& device);
  void LeaveOutUncabled(RdmaReadings& readings);
  void SayUncabled(const RdmaDevice& device, const std::vector<const RdmaPort*>& left_out, bool all,
                   RdmaReadings& readings) const;

  const base::FileTree& files_;
  std::map<std::string, bool> manages_nvlink_;  // by name and GUID
  std::map<std::string, Past> past_;            // by name, GUID and port
  UncabledPorts named_;
};

// Of a GID as sysfs writes it ("0000:0000:0000:0000:0000:ffff:0a01:0203"): whether it holds an IPv4 address.
bool HoldsIpv4(std::string_view gid);
// Whether it holds no address that somebody gave: a link-local one (fe80::/10), which each interface makes for itself,
// or zeros. Unique local addresses (fd00::/8) are given.
bool HoldsNoAddress(std::string_view gid);

// The GID that RoCE traffic over `netdev` should use, as NCCL chooses (src/transport/net_ib/connect.cc, 2.30): the
// first of RoCE v2, one with an IPv4 address before others, and a link-local one last. Null: the table has none.
const Gid* RoceGid(const RdmaPort& port, std::string_view netdev);

// "400 Gb/sec (4X NDR)", "2.5 Gb/sec (1X SDR)" rounded down. 0 where it is no rate.
int ParseRateGbps(std::string_view text);
// "4: ACTIVE". Anything but ACTIVE and DOWN (INIT, ARMED, a new word) is kUnknown.
topology::LinkState ParsePortState(std::string_view text);

}  // namespace heddle::nodeagent
