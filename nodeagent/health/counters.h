#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_tree.h"
#include "nodeagent/assembly/assemble.h"
#include "nodeagent/health/counter_aliases.h"
#include "nodeagent/health/ethtool_stats.h"
#include "nodeagent/health/kept_file.h"
#include "topology/node.h"

namespace heddle::nodeagent {

// One physical port whose counters are read. Known from the last look at the machine, so that the fast path
// between two looks searches nothing.
struct WatchedPort {
  std::string key;      // who it is, across renames and restarts: PortKey
  std::string nic;      // topology::Nic::name
  int number = 1;       // topology::NicPort::number
  std::string device;   // RDMA device; empty where it has none, or where another port of a bond stands for it
  int device_port = 1;  // its port there
  std::string netdev;   // interface of this port; empty where it has none
  bool of_bond = false;  // then its state is that of the interface, as the driver shows the bond as one port
  std::string leaf;      // "leaf port" for people; empty = unknown
  topology::Transport transport = topology::Transport::kEthernet;
  topology::NicRole role = topology::NicRole::kManagement;
  int rate_gbps = 0;
  friend bool operator==(const WatchedPort&, const WatchedPort&) = default;
};

// The driver by which the counters of an RDMA device are called (CounterAlias::driver); empty = not known.
std::string RdmaDriver(const base::FileTree& files, const std::string& device);

// A card keeps its place on the bus and its GUID when a reboot calls mlx5_2 mlx5_3; another card in the same
// slot has another GUID. What has neither is known by name.
std::string PortKey(const topology::Nic& nic, int number);
// Ports of compute and storage NICs: what a management NIC loses is no business of the fabric. Pure.
std::vector<WatchedPort> WatchedPorts(const Readings& readings, const topology::Node& node);

struct CounterSample {
  CounterId id;
  std::uint64_t value = 0;
  Width width;
  friend bool operator==(const CounterSample&, const CounterSample&) = default;
};

struct UnreadCounter {
  CounterId id;
  std::string reason;  // a sentence that names the file
  friend bool operator==(const UnreadCounter&, const UnreadCounter&) = default;
};

// A counter that has come to its end, and cannot tell what happens from now on.
inline bool IsStuck(const CounterSample& sample) {
  return sample.width.saturates && sample.value == sample.width.max();
}

// What the switch port at the other end of the cable said, where it was asked since the last reading.
struct LeafEnd {
  std::string name;  // "su1-r3 port 18"; empty = not known
  // Which switch port it is, and counted how: what another one counted is another history.
  std::string who;
  std::string clear;  // the command that sets its counters to 0
  std::vector<CounterSample>
      samples;         // sorted by id, each once; empty with `unread`, or where nothing came this time
  std::string unread;  // a sentence
  friend bool operator==(const LeafEnd&, const LeafEnd&) = default;
};

// What one port said. A counter that its driver does not have stands nowhere; one that could not be read now is
// in `unread`, never 0.
struct PortReading {
  WatchedPort port;
  topology::LinkState state = topology::LinkState::kUnknown;
  std::string state_unread;            // why the state is not known; empty when it is
  std::string phys_state;              // "LinkUp", "Polling", "Disabled"; empty = not said
  std::vector<CounterSample> samples;  // sorted by id, each once
  std::vector<UnreadCounter> unread;   // sorted by id
  std::optional<LeafEnd> leaf;         // by AddLeafEnds
  friend bool operator==(const PortReading&, const PortReading&) = default;
};

struct CounterReadings {
  std::vector<PortReading> ports;  // in the order of the watched ports
};

// Whether to ask the drivers for their ethtool statistics, too: some of them take milliseconds of a card's
// firmware for it. What was not asked is not `unread`.
enum class Ask : std::uint8_t { kFiles, kFilesAndEthtool };

// Reads the counters of the watched ports: of every port the files that its driver really has, and nothing
// else. Thread rule: one thread.
class CounterReader {
 public:
  // Both must outlive it. `root`: where `files` lie on disk; then those that each pass reads are kept open from one
  // look to the next. Empty: they are read through `files` each time.
  CounterReader(const base::FileTree& files, EthtoolSource& ethtool, std::string root = {})
      : files_(files), ethtool_(ethtool), root_(std::move(root)), most_kept_(MostKeptFiles()) {}
  CounterReader(const CounterReader&) = delete;
  CounterReader& operator=(const CounterReader&) = delete;

  // After each look at the machine: which ports there are, and anew which counters each has.
  void Watch(std::vector<WatchedPort> ports);
  // One pass. Never fails as a whole: what cannot be read is said port by port.
  CounterReadings Read(Ask ask);

 private:
  struct Text {
    std::string path;  // empty: there is no such file
    KeptFile kept{};
  };
  struct File {
    Text text;
    CounterId id;
    Width width;
  };
  struct Column {
    std::size_t index = 0;
    CounterId id;
    Width width;
  };
  struct Plan {
    WatchedPort port;
    Text state, phys_state, operstate;
    std::vector<File> files;
    std::string driver;  // of the interface
    // Which of the interface's statistics are wanted, as long as its driver has these names.
    std::shared_ptr<const std::vector<std::string>> ethtool_names;
    std::vector<Column> columns;
  };

  Plan MakePlan(WatchedPort port) const;
  void AddFiles(const std::string& folder, CounterPlace place, std::string_view driver, Plan& plan) const;
  // What it says now, without a newline at its end.
  base::Result<std::string> Said(Text& text);
  void ReadEthtool(Plan& plan, PortReading& reading);

  const base::FileTree& files_;
  EthtoolSource& ethtool_;
  const std::string root_;
  const std::size_t most_kept_;
  std::size_t kept_ = 0;  // files that are open
  std::vector<Plan> plans_;
};

// Reads through `files` what a CounterReader would, so that a recording keeps it. Returns the statistics of the
// interfaces as files at its root, "ethtool/eth1".
std::map<std::string, std::string> RecordCounters(const base::FileTree& files, EthtoolSource& ethtool,
                                                  const std::vector<WatchedPort>& ports);

}  // namespace heddle::nodeagent
