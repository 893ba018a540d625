#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_tree.h"
#include "base/result.h"
#include "nodeagent/nic/net_probe.h"
#include "nodeagent/nic/rdma_probe.h"

namespace heddle::nodeagent {

// What a card's driver says of a port; sysfs has all of it but the MTU.
struct VerbsPort {
  topology::LinkState state = topology::LinkState::kUnknown;
  std::string link_layer;  // "InfiniBand", "Ethernet", "Unspecified", as sysfs calls them
  int active_mtu = 0;      // bytes, 256 to 4096; 0 = none
  friend bool operator==(const VerbsPort&, const VerbsPort&) = default;
};

// Whoever asks the driver. A call lasts as long as the driver takes, which may be for ever. Thread rule: one thread.
class VerbsSource {
 public:
  VerbsSource() = default;
  VerbsSource(const VerbsSource&) = delete;
  VerbsSource& operator=(const VerbsSource&) = delete;
  virtual ~VerbsSource() = default;
  // kNotFound: libibverbs has no such device, or no provider for it. kForbidden, kUnavailable: it cannot be opened or
  // does not answer.
  virtual base::Result<VerbsPort> Ask(const std::string& device, int port) = 0;
};

// ibv_query_port of this machine. Opens the card for the question and closes it: of rxe and EFA an open device cannot
// be removed.
class LiveVerbs final : public VerbsSource {
 public:
  base::Result<VerbsPort> Ask(const std::string& device, int port) override;
};

// Fills in RdmaPort::active_mtu. Thread rule: one thread.
class MtuSource {
 public:
  MtuSource() = default;
  MtuSource(const MtuSource&) = delete;
  MtuSource& operator=(const MtuSource&) = delete;
  virtual ~MtuSource() = default;
  // Once a look. Problems go to `rdma`.
  virtual void Tell(RdmaReadings& rdma, const NetReadings& net) = 0;
};

// Asks the drivers of ports that are up, and again only when state, rate or an interface's MTU changed: opening a card
// costs milliseconds. They are asked on a thread of their own; a look waits `patience` for it, once. A driver that
// hangs then costs no further look anything but the MTUs that are not known yet, and is a problem.
class DriverMtus final : public MtuSource {
 public:
  // `stop` ends a wait.
  explicit DriverMtus(std::unique_ptr<VerbsSource> verbs, std::stop_token stop = {},
                      std::chrono::milliseconds patience = std::chrono::seconds(5));
  ~DriverMtus() override;  // waits as long for a call that is under way, and leaves its thread alone then
  void Tell(RdmaReadings& rdma, const NetReadings& net) override;

 private:
  using Port = std::pair<std::string, int>;  // device and number
  // What it was when the driver was asked.
  struct Asked {
    std::string guid;
    int rate_gbps = 0;
    std::vector<int> mtus;  // of its interfaces
    friend bool operator==(const Asked&, const Asked&) = default;
  };
  struct Worker;  // shared with the thread, which may outlive this

  const std::stop_token stop_;
  const std::chrono::milliseconds patience_;
  std::shared_ptr<Worker> worker_;
  std::map<Port, Asked> asked_;
  std::map<Port, VerbsPort> told_;
};

// verbs.yaml of a recorded machine: a list of {device, port, link_layer, active_mtu}, of ports that were up when they
// were asked. Entries that make no sense are left out, each with a problem. Absent: nobody asked.
class RecordedMtus final : public MtuSource {
 public:
  explicit RecordedMtus(const base::FileTree& files) : files_(files) {}
  void Tell(RdmaReadings& rdma, const NetReadings& net) override;

 private:
  const base::FileTree& files_;
};

struct VerbsFile {
  std::map<std::pair<std::string, int>, VerbsPort> ports;
  std::vector<std::string> problems;
};
VerbsFile ParseVerbsYaml(std::string_view yaml);
// Of the ports whose MTU is known; empty where there is none.
std::string FormatVerbsYaml(const RdmaReadings& rdma);

}  // namespace heddle::nodeagent
