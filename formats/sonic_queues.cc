#include "formats/sonic_queues.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::formats::sonic {
namespace {

using base::Code;
using lossless::kPriorities;

constexpr int kMaxXoff = 1 << 30;
constexpr std::string_view kNoProfile = "NULL";  // as SONiC writes that there is none

// sonic-scheduler.yang: WRR where no type stands, weight 1 where none does.
base::Result<Sending> SendingOf(const std::string& name, const Json& scheduler) {
  const std::string type = TextOf(Member(scheduler, "type")), weight = TextOf(Member(scheduler, "weight"));
  Sending sending;
  sending.strict = type == "STRICT";
  if (!sending.strict && type != "DWRR" && type != "WRR" && !type.empty()) {
    return base::Fail(Code::kInvalid, fmt::format("SCHEDULER|{}: type \"{}\" is none of DWRR, WRR and STRICT",
                                                  Printable(name, 40), Printable(type, 20)));
  }
  if (weight.empty() || sending.strict) return sending;
  const auto number = Within(std::string_view(weight), 1, 100);
  if (!number) {
    return base::Fail(Code::kInvalid, fmt::format("SCHEDULER|{}: weight \"{}\" is not 1 to 100",
                                                  Printable(name, 40), Printable(weight, 20)));
  }
  sending.weight = *number;
  return sending;
}

// Calls each(port, number) for every cell of a table with ranges.
template <class Each>
void ForEachCell(const std::string& key, Each each) {
  const auto range = ParseRangeKey(key);
  if (!range) return;  // of QUEUE's that is told where markings are read
  for (const std::string& port : range->ports) {
    for (int number = range->first; number <= std::min(range->last, kPriorities - 1); ++number)
      each(port, number);
  }
}

// Of two rows for one queue or group, as Ethernet0|3 and Ethernet0|3-4, which do not agree, the switch takes whichever
// comes last, and nobody knows which does: of that cell nothing is said, as T{} has it.
template <class T>
void PutCell(std::map<int, T>& cells, int number, const T& value) {
  const auto [at, fresh] = cells.try_emplace(number, value);
  if (!fresh && !(at->second == value)) at->second = T{};
}

void ReadSending(const Json& root, Queues& queues) {
  const Json& table = Member(root, "QUEUE");
  if (!table.is_object()) return;
  for (const auto& [key, queue] : table.items()) {
    const std::string name = NameIn("SCHEDULER", TextOf(Member(queue, "scheduler")));
    const Json& scheduler = Entry(root, "SCHEDULER", name);
    if (name.empty() || !scheduler.is_object()) continue;
    const base::Result<Sending> sending = SendingOf(name, scheduler);
    if (!sending) {
      Blame(key, sending.error().message, queues.faults);
      continue;
    }
    ForEachCell(key, [&](const std::string& port, int number) {
      if (queues.sending.size() <= kMaxPorts) PutCell(queues.sending[port], number, std::optional(*sending));
    });
  }
}

// A buffer profile that a row of BUFFER_PG or BUFFER_QUEUE names.
struct BufferProfile {
  std::string name, pool;
  const Json* fields = nullptr;  // null: the row names none
};

base::Result<BufferProfile> ProfileOf(const Json& root, std::string_view table, const std::string& key,
                                      const Json& row) {
  BufferProfile found;
  found.name = NameIn("BUFFER_PROFILE", TextOf(Member(row, "profile")));
  if (found.name.empty() || found.name == kNoProfile) return found;
  const Json& fields = Entry(root, "BUFFER_PROFILE", found.name);
  if (!fields.is_object()) {
    return base::Fail(Code::kInvalid, fmt::format("{}|{}: profile names {}, which is not in BUFFER_PROFILE",
                                                  table, Printable(key, 60), Printable(found.name, 40)));
  }
  found.pool = NameIn("BUFFER_POOL", TextOf(Member(fields, "pool")));
  // Of a part of a configuration, which has no pools, nothing is said by that.
  const Json& pools = Member(root, "BUFFER_POOL");
  if (pools.is_object() && !found.pool.empty() && !Member(pools, found.pool).is_object()) {
    return base::Fail(Code::kInvalid,
                      fmt::format("BUFFER_PROFILE|{}: pool names {}, which is not in BUFFER_POOL",
                                  Printable(found.name, 40), Printable(found.pool, 40)));
  }
  found.fields = &fields;
  return found;
}

// A profile without xoff is a lossy one: nothing is held after a pause. But where the switch sizes headroom itself
// (buffer_model dynamic) none stands there, or one that counts for nothing (sonic-swss, cfgmgr/buffermgrdyn.cpp:
// headroom_type), and a group for which it does so names NULL. A row with any other field it refuses, and so one that
// has none, which Redis holds as one that is called NULL. In the static model nobody makes a profile of either.
base::Result<Room> RoomOf(const Json& root, const std::string& key, const Json& group, bool dynamic) {
  Room room;
  ASSIGN_OR_RETURN(const BufferProfile profile, ProfileOf(root, "BUFFER_PG", key, group));
  if (profile.fields == nullptr) {
    room.sized = dynamic && profile.name == kNoProfile && group.size() == 1;
    return room;
  }
  if (TextOf(Member(*profile.fields, "headroom_type")) == "dynamic") {
    room.sized = dynamic;
    return room;
  }
  const Json& xoff = Member(*profile.fields, "xoff");
  if (xoff.is_null()) {
    if (!dynamic) room.xoff = 0;
    return room;
  }
  const std::string text = TextOf(xoff);
  room.xoff = Within(std::string_view(text), 0, kMaxXoff);
  if (!room.xoff) {
    return base::Fail(Code::kInvalid,
                      fmt::format("BUFFER_PROFILE|{}: xoff \"{}\" is not 0 to {}",
                                  Printable(profile.name, 40), Printable(text, 20), kMaxXoff));
  }
  return room;
}

void ReadHeadroom(const Json& root, Queues& queues) {
  const bool dynamic =
      TextOf(Member(Entry(root, "DEVICE_METADATA", "localhost"), "buffer_model")) == "dynamic";
  const Json& table = Member(root, "BUFFER_PG");
  if (!table.is_object()) return;
  for (const auto& [key, group] : table.items()) {
    const base::Result<Room> room = RoomOf(root, key, group, dynamic);
    if (!room) {
      Blame(key, room.error().message, queues.faults);
      continue;
    }
    ForEachCell(key, [&](const std::string& port, int number) {
      if (queues.rooms.size() <= kMaxPorts) PutCell(queues.rooms[port], number, *room);
    });
  }
}

// Which profiles of queues are lossy no field says, and thresholds are each chip's own: it is their names and their
// pools' that do, as sonic-buildimage buffers_defaults_*.j2 has them (q_lossy_profile, egress_lossless_pool). Of one
// whose names have neither word nothing is said.
void ReadEgress(const Json& root, Queues& queues) {
  const auto has = [](const BufferProfile& profile, std::string_view word) {
    return profile.name.find(word) != std::string::npos || profile.pool.find(word) != std::string::npos;
  };
  const Json& table = Member(root, "BUFFER_QUEUE");
  if (!table.is_object()) return;
  for (const auto& [key, queue] : table.items()) {
    const base::Result<BufferProfile> profile = ProfileOf(root, "BUFFER_QUEUE", key, queue);
    if (!profile) {
      Blame(key, profile.error().message, queues.faults);
      continue;
    }
    std::optional<bool> lossy;  // without a profile, as without the row: what the chip has by default
    if (profile->fields != nullptr && has(*profile, "lossy")) {
      lossy = true;
    } else if (profile->fields != nullptr && has(*profile, "lossless")) {
      lossy = false;
    }
    ForEachCell(key, [&](const std::string& port, int number) {
      if (queues.lossy.size() <= kMaxPorts) PutCell(queues.lossy[port], number, lossy);
    });
  }
}

// CABLE_LENGTH|AZURE: {"Ethernet0": "40m"}.
void ReadCables(const Json& root, Queues& queues) {
  const Json& table = Member(root, "CABLE_LENGTH");
  if (!table.is_object()) return;
  for (const auto& [name, ports] : table.items()) {
    if (!ports.is_object()) continue;
    for (const auto& [port, length] : ports.items()) {
      std::string text = TextOf(length);
      if (text.ends_with('m')) text.pop_back();
      const auto metres = Within(std::string_view(text), 0, 100'000);
      if (!metres) continue;  // "None" is allowed (sonic-cable-length.yang); nothing here depends on a length
      if (queues.cable_metres.size() <= kMaxPorts) queues.cable_metres[port] = *metres;
    }
  }
  return;
}

// Weights as shares of 100, the largest remainders rounded up, so that weights that sum to 100 stay as they are.
void Share(std::vector<std::pair<int, int>> weights, lossless::Numbers& percent) {
  int sum = 0, left = 100;
  for (const auto& [queue, weight] : weights) sum += weight;
  for (const auto& [queue, weight] : weights) {
    percent[std::size_t(queue)] = weight * 100 / sum;
    left -= weight * 100 / sum;
  }
  std::stable_sort(weights.begin(), weights.end(), [sum](const auto& a, const auto& b) {
    return a.second * 100 % sum > b.second * 100 % sum;
  });
  for (int i = 0; i < left; ++i) ++percent[std::size_t(weights[std::size_t(i)].first)];
}

void PutSending(const std::map<int, std::optional<Sending>>& sending, lossless::PortSettings& settings) {
  const lossless::PriorityTable used = settings.priority_to_queue.value_or(lossless::Identity());
  settings.class_algorithm.emplace().fill(lossless::Algorithm::kAny);
  settings.class_percent.emplace().fill(lossless::kNotSaid);
  std::vector<std::pair<int, int>> weights;
  bool all = true;
  for (int queue = 0; queue < kPriorities; ++queue) {
    if (std::find(used.begin(), used.end(), queue) == used.end()) continue;
    const auto found = sending.find(queue);
    const bool said = found != sending.end() && found->second;
    all = all && said;
    if (!said) continue;
    (*settings.class_algorithm)[std::size_t(queue)] =
        found->second->strict ? lossless::Algorithm::kStrict : lossless::Algorithm::kEts;
    if (!found->second->strict) weights.emplace_back(queue, found->second->weight);
  }
  if (all && !weights.empty()) Share(std::move(weights), *settings.class_percent);
}

// A switch that sizes headroom itself has none for a port whose cable it does not know, and calls those of unused ports
// 0 m (sonic-swss, cfgmgr/buffermgrdyn.cpp, buffermgr.cpp).
void PutRooms(const std::map<int, Room>& rooms, const lossless::PriorityTable& pause_of_group,
              lossless::PortSettings& settings) {
  const bool has_cable = settings.cable_metres.value_or(0) > 0;
  for (const auto& [group, room] : rooms) {
    if (room.xoff && !settings.buffer_bytes) settings.buffer_bytes.emplace().fill(lossless::kNotSaid);
    const int pause = pause_of_group[std::size_t(group)];
    if (pause == lossless::kNotSaid) continue;
    if (room.xoff) (*settings.buffer_bytes)[std::size_t(pause)] = *room.xoff;
    if (!room.sized || !has_cable) continue;
    if (!settings.sized_by_switch) settings.sized_by_switch.emplace();
    settings.sized_by_switch->Insert(pause);
  }
}

}  // namespace

void Blame(std::string_view key, const std::string& why, std::map<std::string, std::string>& faults) {
  for (const std::string& port : PortsOfKey(key)) {
    if (faults.size() <= kMaxPorts) faults.emplace(port, why);
  }
}

Queues ReadQueues(const Json& root) {
  Queues queues;
  ReadSending(root, queues);
  ReadHeadroom(root, queues);
  ReadEgress(root, queues);
  ReadCables(root, queues);
  return queues;
}

void PutQueues(const Queues& queues, const std::string& port, const lossless::PriorityTable& pause_of_group,
               lossless::PortSettings& settings) {
  if (const auto found = queues.sending.find(port); found != queues.sending.end())
    PutSending(found->second, settings);
  if (const auto found = queues.cable_metres.find(port); found != queues.cable_metres.end())
    settings.cable_metres = found->second;
  if (const auto found = queues.rooms.find(port); found != queues.rooms.end())
    PutRooms(found->second, pause_of_group, settings);
  if (const auto found = queues.lossy.find(port); found != queues.lossy.end()) {
    settings.lossy_queues.emplace();
    settings.lossless_queues.emplace();
    const lossless::PriorityTable stopped = settings.pause_to_queue.value_or(lossless::Identity());
    for (int priority = 0; priority < kPriorities; ++priority) {
      const auto queue = found->second.find(stopped[std::size_t(priority)]);
      if (queue == found->second.end() || !queue->second) continue;
      (*queue->second ? settings.lossy_queues : settings.lossless_queues)->Insert(priority);
    }
  }
}

base::Result<std::optional<lossless::EcnMarking>> MarkingOf(const Json& root, const std::string& queue,
                                                            const std::string& profile) {
  const Json& found = Entry(root, "WRED_PROFILE", profile);
  if (!found.is_object()) {
    return base::Fail(Code::kInvalid,
                      fmt::format("QUEUE|{}: wred_profile names {}, which is not in WRED_PROFILE",
                                  Printable(queue, 60), Printable(profile, 40)));
  }
  const std::string ecn = TextOf(Member(found, "ecn"));
  if (ecn != "ecn_all" && ecn.find("green") == std::string::npos) return std::nullopt;
  lossless::EcnMarking marking;
  // Since 2026 marks may begin elsewhere than drops, each field by itself (sonic-wred-profile.yang).
  constexpr int kMost = std::numeric_limits<int>::max();
  for (const auto& [own, common, into, most] :
       {std::tuple{"ecn_green_min_threshold", "green_min_threshold", &marking.min_bytes, kMost},
        std::tuple{"ecn_green_max_threshold", "green_max_threshold", &marking.max_bytes, kMost},
        std::tuple{"ecn_green_mark_probability", "green_drop_probability", &marking.probability_percent,
                   100}}) {
    const char* field = Member(found, own).is_null() ? common : own;
    const std::string text = TextOf(Member(found, field));
    const auto number = Within(std::string_view(text), 0, most);
    if (!number) {
      return base::Fail(Code::kInvalid,
                        fmt::format("WRED_PROFILE|{}: {} \"{}\" is not 0 to {}", Printable(profile, 40),
                                    field, Printable(text, 20), most));
    }
    *into = *number;
  }
  return marking;
}

}  // namespace heddle::formats::sonic
