#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_tree.h"
#include "crds/object_meta.h"
#include "nodeagent/qos/port_io.h"

namespace heddle::nodeagent {

// A write that a recorded port refuses, so that a test can have a driver that does.
struct QosRefusal {
  lossless::Setting setting = lossless::Setting::kDcbx;
  base::Error error;
  friend bool operator==(const QosRefusal&, const QosRefusal&) = default;
};

// One port as qos.yaml keeps it: all that a PortIo says of it.
struct RecordedQosPort {
  QosPort port;
  QosReading reading;
  int queue_pairs = 0;  // of processes; -1 = could not be counted
  std::vector<std::string>
      holders;  // of them; no recording of a live machine keeps the names of its programs
  LinkEvidence link;
  std::string writer;  // LikelyWriter of every setting
  std::vector<QosRefusal> refuses;
  friend bool operator==(const RecordedQosPort&, const RecordedQosPort&) = default;
};
using RecordedQosPorts = std::map<std::string, RecordedQosPort>;  // by name: "mlx5_0:1"

// {ports: [{name, rdmaDevice, rdmaPort, netdev, pciAddress, driver, settings, fec, gaps, gone, queuePairs, holders,
// link: {carrier, carrierChanges, errors}, writer, refuses: [{setting, code, message}]}]}; only the name must be there.
// Errors: kInvalid with the port and the key, kTooLarge past 1 MiB or 1,024 ports. Parse(Format(x)) is x.
[[nodiscard]] base::Result<RecordedQosPorts> ParseQosYaml(std::string_view yaml);
std::string FormatQosYaml(const RecordedQosPorts& ports);
crds::Json QosJson(const RecordedQosPorts& ports);

// Asks `io` all that there is to say of these ports.
RecordedQosPorts RecordQos(PortIo& io, std::span<const QosPort> ports);

// The ports of a recorded machine, from qos.yaml at its root. Writes change what is read from then on, in memory, or,
// where a folder is named, in its qos.yaml, which is read anew with every call: whoever else writes that file is the
// second writer of the ports. There each write also leaves a line in the file `writes`: "mlx5_0:1 pfc mtu". A port
// that the file does not name can be written, and nothing of it is known before. Thread rule: one thread.
class RecordedPortIo final : public PortIo {
 public:
  // `files` must outlive it. `folder`: empty, or it is made when it is first written to.
  explicit RecordedPortIo(const base::FileTree& files, std::string folder = {});
  QosReading Read(const QosPort& port) override;
  [[nodiscard]] base::Status Write(const QosPort& port, std::span<const lossless::Setting> settings,
                                   const lossless::PortSettings& want) override;
  [[nodiscard]] base::Status WriteBack(const QosPort& port, std::span<const lossless::Setting> settings,
                                       const lossless::PortSettings& before) override;
  [[nodiscard]] base::Status WriteRoce1(const QosPort& port) override;  // no file says that: success
  [[nodiscard]] base::Result<int> UserQueuePairs(const QosPort& port) override;
  std::vector<std::string> QueuePairHolders(const QosPort& port) override;
  [[nodiscard]] base::Result<LinkEvidence> Link(const QosPort& port) override;
  std::string LikelyWriter(const QosPort& port, lossless::Setting setting) override;

 private:
  [[nodiscard]] base::Status Load();
  [[nodiscard]] base::Status Save(const std::string& line) const;
  // Null where the file does not name it.
  const RecordedQosPort* Find(const QosPort& port) const;

  const base::FileTree& files_;
  const std::string folder_;
  bool loaded_ = false;
  RecordedQosPorts ports_;
};

}  // namespace heddle::nodeagent
