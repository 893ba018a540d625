#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "formats/sonic_tables.h"
#include "lossless/port_settings.h"

// Of the reader of SONiC's configuration, and included by nobody else.
namespace heddle::formats::sonic {

// How one queue is sent (QUEUE, SCHEDULER).
struct Sending {
  bool strict = false;
  int weight = 1;  // of DWRR and WRR, 1 to 100
  friend bool operator==(const Sending&, const Sending&) = default;
};

// What a priority group holds after it has asked for a pause (BUFFER_PG, BUFFER_PROFILE). Neither: nobody says.
struct Room {
  std::optional<int> xoff;  // bytes; 0 where its profile has no room for any
  bool sized = false;       // the switch reckons it itself
  friend bool operator==(const Room&, const Room&) = default;
};

// By port, then by queue or priority group.
struct Queues {
  std::map<std::string, std::map<int, std::optional<Sending>>> sending;  // nothing: several rows do not agree
  std::map<std::string, std::map<int, Room>> rooms;
  // Whether a queue's profile is; nothing where its row names none, or several rows do not agree.
  std::map<std::string, std::map<int, std::optional<bool>>> lossy;
  std::map<std::string, int> cable_metres;
  std::map<std::string, std::string> faults;  // by port: a sentence with the field that cannot be read
};

// Says of each port of a key of QUEUE why it cannot be read, unless something is said of it already.
void Blame(std::string_view key, const std::string& why, std::map<std::string, std::string>& faults);

// Schedulers that are named and not there say nothing: CheckSonic names them. Buffer profiles that are not there, and
// pools of profiles, are faults, and so is an xoff that is no number.
Queues ReadQueues(const Json& root);

// class_algorithm, class_percent, buffer_bytes, sized_by_switch, lossy_queues, lossless_queues and cable_metres of a
// port whose maps are read already. `pause_of_group`: the priority of the pause that a priority group asks for;
// buffer_bytes and sized_by_switch are by it.
void PutQueues(const Queues& queues, const std::string& port, const lossless::PriorityTable& pause_of_group,
               lossless::PortSettings& settings);

// From where the WRED profile of a queue marks; nothing where it marks no green packets, which RDMA's are. Errors:
// kInvalid where there is no such profile, or a number is none.
[[nodiscard]] base::Result<std::optional<lossless::EcnMarking>> MarkingOf(const Json& root,
                                                                          const std::string& queue,
                                                                          const std::string& profile);

}  // namespace heddle::formats::sonic
