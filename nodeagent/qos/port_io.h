#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "lossless/cable_compare.h"
#include "lossless/port_settings.h"
#include "lossless/render.h"

namespace heddle::nodeagent {

// A port of an RDMA device as the QoS of its host sees it.
struct QosPort {
  std::string name;         // "mlx5_0:1", as the resources call it
  std::string rdma_device;  // "mlx5_0"
  int rdma_port = 1;
  std::string netdev;       // "eth2": DCB, MTU and the watchdog are set there
  std::string pci_address;  // "0000:17:00.0"; empty = no PCI device
  std::string driver;       // of that, "mlx5_core"; empty = not known
  friend bool operator==(const QosPort&, const QosPort&) = default;
};

// What a port is set to now. A setting that cannot be read is absent from `have`, and a gap says why.
struct QosReading {
  lossless::PortSettings have;
  std::vector<lossless::Gap> gaps;  // in the order of the settings
  bool gone = false;                // the interface is not there (any more); then have and gaps are empty
  std::optional<lossless::Fec> fec = std::nullopt;  // that its link runs with; no setting of ours
  bool roce1 = false;  // connections by rdma_cm are RoCE v1, and have.tos is 0 for that
  // Of what stands in `have`, what no write of ours could change, and why; none that is essential (decide.h).
  std::vector<lossless::Gap> read_only = {};
  // Of what does not, and has a gap, what the firmware does as it likes until the setting is written, and by what: a
  // drift where somebody wants it. A write that is taken back leaves such a one as it was written.
  std::vector<lossless::Gap> left_to_firmware = {};
  friend bool operator==(const QosReading&, const QosReading&) = default;
};

// What a write must not make worse.
struct LinkEvidence {
  bool carrier = false;
  std::uint64_t carrier_changes = 0;
  std::map<std::string, std::uint64_t> errors;  // counters of errors and losses, by the driver's names
  friend bool operator==(const LinkEvidence&, const LinkEvidence&) = default;
};

// The settings of this host's ports, as the kernel keeps them. Each call asks anew; none waits for a link.
// Thread rule: one thread.
class PortIo {
 public:
  virtual ~PortIo() = default;
  virtual QosReading Read(const QosPort& port) = 0;
  // Writes these settings of `want` (each of them set there), in an order that the kernel takes, and those that
  // it takes in one message as one. Stops at the first that fails; the error names the setting. kUnimplemented:
  // the driver has no such setting. kUnavailable: busy, or the interface is gone. kForbidden: no right to.
  [[nodiscard]] virtual base::Status Write(const QosPort& port, std::span<const lossless::Setting> settings,
                                           const lossless::PortSettings& want) = 0;
  // The same back to what Read said of them before. Of a DSCP map the entries that `before` does not have are deleted,
  // too: left there they would go on marking.
  [[nodiscard]] virtual base::Status WriteBack(const QosPort& port,
                                               std::span<const lossless::Setting> settings,
                                               const lossless::PortSettings& before) = 0;
  // Makes connections by rdma_cm RoCE v1 again: writing tos makes them v2, and writing that back leaves them so.
  [[nodiscard]] virtual base::Status WriteRoce1(const QosPort& port) = 0;
  // Whether processes use this port: what QueuePairs::CountUsers says of its RDMA device (rdma netlink) and of those
  // of its virtual and scalable functions, in sum; 0: nobody does. Fails where that cannot be told of any of them and
  // none of the others is used. The kernel's own are not counted.
  [[nodiscard]] virtual base::Result<int> UserQueuePairs(const QosPort& port) = 0;
  // The processes that hold them, for people: "python3 (pid 4711)"; sorted. Empty: nobody does, or this process is
  // shown none of them, as in a PID namespace of its own.
  virtual std::vector<std::string> QueuePairHolders(const QosPort& port) = 0;
  [[nodiscard]] virtual base::Result<LinkEvidence> Link(const QosPort& port) = 0;
  // Who probably wrote a setting that nobody of us did: "lldpad", "firmware DCBX", "manual"; empty = no guess.
  virtual std::string LikelyWriter(const QosPort& port, lossless::Setting setting) = 0;
};

}  // namespace heddle::nodeagent
