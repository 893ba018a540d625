#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "crds/policy_edition.h"
#include "lossless/port_settings.h"
#include "nodeagent/qos/port_io.h"

namespace heddle::nodeagent {

// A write that is not settled: what to go on with, or to go back to.
struct UnsettledWrite {
  QosPort port;
  // Of the settings below; `before` also of what a write of them may take along (decide.h).
  lossless::PortSettings want, before;
  std::vector<lossless::Setting> settings;     // in their order
  bool roce1 = false;                          // tos is among them, and connections were RoCE v1 before
  LinkEvidence link;                           // before the write
  std::map<std::string, std::uint64_t> noise;  // how much each counter grew while it was waited for
  std::int64_t noise_seconds = 0;  // for so long; 0 = not known, and then as long as it is watched
  int starts = 1;                  // agents that worked on it
  int undone = 0;                  // times that the interface vanished meanwhile
  bool interrupts = true;          // the port was taken away from pods
  bool back = false;               // it is being taken back
  std::string why;                 // that; empty = nobody wants it any more
  bool conflict = false;           // why: somebody else wrote over it
  std::string about;               // AboutOf the record that it was begun for
  friend bool operator==(const UnsettledWrite&, const UnsettledWrite&) = default;
};

// What was decided for one port and must outlive the agent.
struct PortRecord {
  std::string port;                     // "mlx5_0:1"
  crds::PolicyEdition edition;          // that the rest is about
  std::string subject;                  // the NIC and the settings that the rest is about, as a hash
  bool applied = false;                 // it was as wanted once; what differs since is drift
  bool pause_off = false;               // likewise without global pause, which agents once did not read
  std::string failed;                   // why nothing more is tried; empty = it is
  std::string conflict;                 // the same, because somebody else keeps writing
  std::vector<base::WallTime> repairs;  // whole seconds, the last few
  std::map<lossless::Setting, std::string>
      unsupported;   // settings that its driver cannot set, and how it said so
  std::string boot;  // of the machine; what was written does not outlive it
  int crashes = 0;   // restarts of the machine in the middle of a write
  std::optional<UnsettledWrite> unsettled;
  friend bool operator==(const PortRecord&, const PortRecord&) = default;
};

// Policy, generation, subject and UID in one.
std::string AboutOf(const PortRecord& record);

// Keeps the records of a node's ports. What Put and Remove return with success has reached the disk.
// Thread rule: one thread.
class Journal {
 public:
  Journal() = default;
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  virtual ~Journal() = default;

  struct Loaded {
    std::vector<PortRecord> records;  // by port
    // Files that make no sense, as sentences. They are kept as "….json.bad", beside the port's next record, and told of
    // at every start until somebody removes them.
    std::vector<std::string> problems;
  };
  virtual Loaded Load() = 0;
  [[nodiscard]] virtual base::Status Put(const PortRecord& record) = 0;
  [[nodiscard]] virtual base::Status Remove(const std::string& port) = 0;  // one that is not there is success
};

// One file for each port in `folder`, which it makes: written beside, synced, renamed, and the folder synced.
std::unique_ptr<Journal> OpenJournal(std::string folder);

// The text of such a file, and back. What does not come back as it was is refused: it would be no use later.
[[nodiscard]] base::Result<std::string> RecordText(const PortRecord& record);
[[nodiscard]] base::Result<PortRecord> ParseRecord(const std::string& text);

}  // namespace heddle::nodeagent
