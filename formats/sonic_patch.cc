#include "formats/sonic_patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "formats/printable.h"
#include "formats/scanner.h"
#include "formats/sonic_edit.h"
#include "formats/sonic_memory.h"
#include "formats/sonic_queues.h"
#include "formats/sonic_tables.h"

namespace heddle::formats {
namespace {

using base::Code;
using lossless::Algorithm;
using lossless::kNotSaid;
using lossless::kPriorities;
using lossless::PortSettings;
using lossless::Setting;
using sonic::Editor;
using sonic::Entry;
using sonic::Json;
using sonic::Member;
using sonic::Reason;
using sonic::TextOf;

constexpr std::string_view kStartDefault = "sonic-utilities pfcwd/main.py, `pfcwd start_default`";
// Of which it takes 200 ms for each 32 ports with PFC: so long its looks at all of them may take.
constexpr int kWatchdogStepMs = 200, kPortsPerStep = 32;
// sonic-pfcwd.yang.
constexpr int kLeastWatchdogMs = 100, kMostPollMs = 1000, kMostDetectionMs = 5000;

std::string Joined(const lossless::PrioritySet& set) {
  std::string text;
  for (const int priority : set.Members()) text += (text.empty() ? "" : ",") + std::to_string(priority);
  return text;
}

template <class Map>
Json MapOf(const Map& map) {
  Json json = Json::object();
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (map[i] != kNotSaid) json[std::to_string(i)] = std::to_string(int(map[i]));
  }
  return json;
}

// "HEDDLE_ROCE" of "roce": 32 characters are allowed, and a number may have to follow.
std::string BaseName(std::string_view policy) {
  std::string name = "HEDDLE_";
  for (const char c : policy.substr(0, 20)) {
    const auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) != 0 ? char(std::toupper(byte)) : '_';
  }
  return name;
}

class Patcher {
 public:
  Patcher(const Json& live, std::string_view policy, const std::vector<SonicWish>& wishes)
      : live_(live),
        channels_(sonic::PortChannels(live)),
        editor_(live),
        base_(BaseName(policy)),
        wishes_(wishes) {
    for (const SonicWish& wish : wishes) ours_.insert(wish.port);
  }

  base::Result<SonicPatch> Run() {
    if (TextOf(Member(Entry(live_, "DEVICE_METADATA", "localhost"), "switch_type")) == "voq") {
      return base::Fail(
          Code::kInvalid,
          "this is a VOQ chassis, whose queues are named by host and ASIC: nothing is rendered for it");
    }
    queues_ = sonic::ReadQueues(live_);
    dynamic_ = TextOf(Member(Entry(live_, "DEVICE_METADATA", "localhost"), "buffer_model")) == "dynamic";
    FindStyle();
    TakeRowsApart();
    with_pfc_ = PortsWithPfc();
    for (const SonicWish& wish : wishes_) {
      if (!Entry(live_, "PORT", wish.port).is_object()) {
        return base::Fail(Code::kNotFound, sonic::NoSuchPort(live_, wish.port));
      }
      TRY(Port(wish));
    }
    Memory();
    SonicPatch patch;
    patch.lines = editor_.Lines();
    patch.notes = std::move(notes_);
    return patch;
  }

 private:
  // Before 2022 references were "[TABLE|NAME]"; a switch that writes them so reads them so.
  void FindStyle() {
    for (const auto& [port, map] : Member(live_, "PORT_QOS_MAP").items()) {
      if (!map.is_object()) continue;
      for (const auto& [field, value] : map.items())
        bracketed_ = bracketed_ || TextOf(value).starts_with('[');
    }
  }
  // A row of several ports becomes one for each of them: sonic-port-qos-map.yang has no other.
  void TakeRowsApart() {
    for (const auto& [key, row] : Member(live_, "PORT_QOS_MAP").items()) {
      const std::vector<std::string> ports = sonic::PortsIn(key);
      const bool ours = std::any_of(ports.begin(), ports.end(),
                                    [this](const std::string& port) { return ours_.contains(port); });
      if (ports.size() < 2 || !ours || !row.is_object()) continue;
      const Reason reason{"a row of several ports becomes one for each, and says the same",
                          "sonic-port-qos-map.yang"};
      editor_.Remove("PORT_QOS_MAP", key, reason);
      for (const std::string& port : ports) {
        Json own = row;
        if (const Json& there = QosOf(port); there.is_object()) own.update(there);
        editor_.PutEntry("PORT_QOS_MAP", port, std::move(own), reason);
      }
    }
  }
  const Json& QosOf(const std::string& port) const { return Entry(editor_.work(), "PORT_QOS_MAP", port); }
  std::string Reference(std::string_view table, const std::string& name) const {
    return bracketed_ ? fmt::format("[{}|{}]", table, name) : name;
  }
  void Note(std::string note) {
    if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(std::move(note));
  }
  static Reason Because(const SonicWish& wish, Setting setting, std::string why) {
    return {std::move(why), std::string(wish.rendering.SourceOf(setting))};
  }

  base::Status Port(const SonicWish& wish) {
    const PortSettings& settings = wish.rendering.settings;
    for (const lossless::Gap& gap : wish.rendering.gaps)
      Note(fmt::format("{} is left as it is: {}", lossless::SettingName(gap.setting), gap.reason));
    if (settings.mtu) Mtu(wish);
    if (settings.trust != lossless::Trust::kDscp) return {};
    Maps(wish);
    Pfc(wish);
    Shares(wish);
    TRY(Marks(wish));
    Watchdog(wish);
    if (settings.cable_metres) Cable(wish);
    Groups(wish);
    EgressBuffers(wish);
    return {};
  }

  void Mtu(const SonicWish& wish) {
    const std::string mtu = std::to_string(*wish.rendering.settings.mtu);
    const auto channel = channels_.find(wish.port);
    if (channel == channels_.end())
      return editor_.Set("PORT", wish.port, "mtu", mtu, Because(wish, Setting::kMtu, "hosts' packets fit"));
    if (TextOf(Member(Entry(live_, "PORTCHANNEL", channel->second), "mtu")) == mtu) return;
    Note(fmt::format("{} is in a port channel, whose MTU is set there: set it to {}", wish.port, mtu));
  }

  // Points a field of the port to a map with this content.
  void Map(const SonicWish& wish, std::string_view field, std::string_view table, const Json& content,
           const Reason& reason) {
    const std::string current = sonic::NameIn(table, TextOf(Member(QosOf(wish.port), field)));
    const auto others_use = [&](const std::string& name) {
      for (const auto& [port, map] : Member(editor_.work(), "PORT_QOS_MAP").items()) {
        if (!ours_.contains(port) && sonic::NameIn(table, TextOf(Member(map, field))) == name) return true;
      }
      return false;
    };
    const std::string name = editor_.Named(table, base_, current, content, reason, others_use);
    if (name != current) editor_.Set("PORT_QOS_MAP", wish.port, field, Reference(table, name), reason);
  }

  void Maps(const SonicWish& wish) {
    const PortSettings& settings = wish.rendering.settings;
    if (settings.dscp_to_priority)
      Map(wish, "dscp_to_tc_map", "DSCP_TO_TC_MAP", MapOf(*settings.dscp_to_priority),
          Because(wish, Setting::kDscpToPriority,
                  "the DSCP of data gets the lossless class, and no other does"));
    if (settings.priority_to_group)
      Map(wish, "tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP", MapOf(*settings.priority_to_group),
          Because(wish, Setting::kPriorityToGroup, "what is paused has a buffer of its own"));
    if (settings.priority_to_queue)
      Map(wish, "tc_to_queue_map", "TC_TO_QUEUE_MAP", MapOf(*settings.priority_to_queue),
          Because(wish, Setting::kPriorityToQueue, "each class of the policy has its queue"));
    if (settings.pause_to_queue)
      Map(wish, "pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE", MapOf(*settings.pause_to_queue),
          Because(wish, Setting::kPauseToQueue, "a pause stops the queue that data waits in"));
    const Json& entry = QosOf(wish.port);
    if (!TextOf(Member(entry, "pfc_to_pg_map")).empty() && settings.pfc &&
        !PausesOwnGroups(entry, *settings.pfc))
      Note(fmt::format("{} has pfc_to_pg_map {}: see that it has {}", wish.port,
                       Printable(TextOf(Member(entry, "pfc_to_pg_map")), 40), Joined(*settings.pfc)));
  }

  // Whether each of these priorities is the pause of the group of its own number, as what is rendered has it.
  bool PausesOwnGroups(const Json& entry, const lossless::PrioritySet& pfc) const {
    constexpr std::string_view kTable = "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP";
    const Json& map = Entry(live_, kTable, sonic::NameIn(kTable, TextOf(Member(entry, "pfc_to_pg_map"))));
    const std::vector<int> priorities = pfc.Members();
    return std::all_of(priorities.begin(), priorities.end(), [&](int priority) {
      const std::string number = std::to_string(priority);
      return TextOf(Member(map, number)) == number;
    });
  }

  void Pfc(const SonicWish& wish) {
    const PortSettings& settings = wish.rendering.settings;
    const auto list = [&](std::string_view field, const lossless::PrioritySet& set, const Reason& reason) {
      const std::string now = TextOf(Member(QosOf(wish.port), field));
      if (SetOf(now) == std::optional(set) && (!now.empty() || Present(wish.port, field) || set.empty()))
        return;
      editor_.Set("PORT_QOS_MAP", wish.port, field, Joined(set), reason);
    };
    if (settings.pfc)
      list("pfc_enable", *settings.pfc,
           Because(wish, Setting::kPfc, "this priority is paused instead of dropped"));
    if (!settings.watched) return;
    // Absent, the watchdog of a switch since 202205 looks at nothing (sonic-swss, orchagent/qosorch.cpp).
    list("pfcwd_sw_enable", *settings.watched, Because(wish, Setting::kWatched, "what has PFC is watched"));
  }
  bool Present(const std::string& port, std::string_view field) const {
    return !Member(QosOf(port), field).is_null();
  }
  // "3,4" in any order; nothing where it is no such list.
  static std::optional<lossless::PrioritySet> SetOf(std::string_view text) {
    lossless::PrioritySet set;
    while (!text.empty()) {
      const std::size_t comma = text.find(',');
      const auto priority = Within(text.substr(0, comma), 0, kPriorities - 1);
      if (!priority) return std::nullopt;
      set.Insert(*priority);
      if (comma == std::string_view::npos) break;
      text.remove_prefix(comma + 1);
    }
    return set;
  }

  // Shares are of one port as a whole: where one queue differs, all queues in use get schedulers of ours.
  void Shares(const SonicWish& wish) {
    const PortSettings& settings = wish.rendering.settings;
    if (!settings.class_algorithm || !settings.class_percent) return;
    PortSettings now;
    now.priority_to_queue = settings.priority_to_queue;
    sonic::PutQueues(queues_, wish.port, lossless::Identity(), now);
    if (now.class_algorithm == settings.class_algorithm && now.class_percent == settings.class_percent)
      return;
    Editor::Cells cells;
    const Reason reason = Because(wish, Setting::kClassPercent, "how this queue is sent beside the others");
    for (int queue = 0; queue < kPriorities; ++queue) {
      const Algorithm algorithm = (*settings.class_algorithm)[std::size_t(queue)];
      const int percent = (*settings.class_percent)[std::size_t(queue)];
      if (algorithm != Algorithm::kStrict && algorithm != Algorithm::kEts) continue;
      if (algorithm == Algorithm::kEts && percent < 1) {
        Note(fmt::format(
            "queue {} is to have {} %, and SONiC has no weight below 1: its scheduler is left as it is",
            queue, percent));
        continue;
      }
      const bool strict = algorithm == Algorithm::kStrict;
      const Json content =
          strict ? Json{{"type", "STRICT"}} : Json{{"type", "DWRR"}, {"weight", std::to_string(percent)}};
      // SONiC makes a scheduler once and does not change it (sonic-scheduler.yang, create-only).
      const std::string name = editor_.Named(
          "SCHEDULER", strict ? std::string("heddle.strict") : fmt::format("heddle.dwrr.{}", percent), "",
          content, reason, [](const std::string&) { return true; });
      cells[queue]["scheduler"] = Reference("SCHEDULER", name);
    }
    editor_.EditCells("QUEUE", wish.port, cells, reason);
  }

  // What a queue of the port has now, after what was edited already; nothing where no entry covers it.
  std::string CellText(std::string_view table, const std::string& port, int number,
                       std::string_view field) const {
    const Json& entries = Member(editor_.work(), table);
    std::string text;
    if (!entries.is_object()) return text;
    for (const auto& [key, value] : entries.items()) {
      const auto range = sonic::ParseRangeKey(key);
      if (range && range->first <= number && number <= range->last && range->Has(port) &&
          !TextOf(Member(value, field)).empty())
        text = TextOf(Member(value, field));
    }
    return text;
  }

  base::Status Marks(const SonicWish& wish) {
    const PortSettings& settings = wish.rendering.settings;
    if (!settings.marking || !settings.pause_to_queue) return {};
    std::map<int, lossless::EcnMarking> wanted;
    for (const auto& [priority, marking] : *settings.marking)
      wanted.emplace((*settings.pause_to_queue)[std::size_t(priority)], marking);
    for (int queue = 0; queue < kPriorities; ++queue) {
      const std::string now =
          sonic::NameIn("WRED_PROFILE", CellText("QUEUE", wish.port, queue, "wred_profile"));
      std::optional<lossless::EcnMarking> marks;
      if (!now.empty()) {
        ASSIGN_OR_RETURN(marks,
                         sonic::MarkingOf(editor_.work(), fmt::format("{}|{}", wish.port, queue), now));
      }
      const auto found = wanted.find(queue);
      if (found == wanted.end()) {
        if (!marks) continue;
        editor_.EditCells("QUEUE", wish.port, {{queue, {{"wred_profile", std::nullopt}}}},
                          Because(wish, Setting::kEcn, "no class with ECN is in this queue"));
      } else if (marks != std::optional(found->second)) {
        const Reason reason = Because(wish, Setting::kMarking, "senders slow down before a pause is needed");
        const std::string name = editor_.Named("WRED_PROFILE", base_, "", Wred(found->second), reason,
                                               [&](const std::string& other) { return OthersMark(other); });
        editor_.EditCells("QUEUE", wish.port, {{queue, {{"wred_profile", Reference("WRED_PROFILE", name)}}}},
                          reason);
      } else {
        editor_.Keep("WRED_PROFILE", now);
      }
    }
    return {};
  }
  // RDMA packets are green; SONiC's own profile treats all colours alike.
  static Json Wred(const lossless::EcnMarking& marking) {
    Json profile{{"ecn", "ecn_all"}};
    for (const std::string colour : {"green", "yellow", "red"}) {
      profile["wred_" + colour + "_enable"] = "true";
      profile[colour + "_min_threshold"] = std::to_string(marking.min_bytes);
      profile[colour + "_max_threshold"] = std::to_string(marking.max_bytes);
      profile[colour + "_drop_probability"] = std::to_string(marking.probability_percent);
    }
    return profile;
  }
  bool OthersMark(const std::string& profile) const {
    const Json& queues = Member(live_, "QUEUE");
    if (!queues.is_object()) return false;
    for (const auto& [key, queue] : queues.items()) {
      if (sonic::NameIn("WRED_PROFILE", TextOf(Member(queue, "wred_profile"))) != profile) continue;
      const auto range = sonic::ParseRangeKey(key);
      if (!range || !std::all_of(range->ports.begin(), range->ports.end(),
                                 [&](const std::string& port) { return ours_.contains(port); }))
        return true;
    }
    return false;
  }

  void Watchdog(const SonicWish& wish) {
    const auto& time = wish.rendering.settings.watchdog_ms;
    if (!time) return;
    const Reason reason =
        Because(wish, Setting::kWatchdogMs, "a port that is paused for ever stops no fabric");
    if (*time == lossless::kWatchdogOff) return editor_.Remove("PFC_WD", wish.port, reason);
    const int step = kWatchdogStepMs * std::max(1, (with_pfc_ + kPortsPerStep - 1) / kPortsPerStep);
    const bool more = step > kWatchdogStepMs;
    const int wanted = more ? std::min(std::max(*time, step), kMostDetectionMs) : *time;
    const std::string start = more ? fmt::format("{}: {} ms for each {} ports with PFC, and {} have it",
                                                 kStartDefault, kWatchdogStepMs, kPortsPerStep, with_pfc_)
                                   : std::string(kStartDefault);
    // No time is below POLL_INTERVAL, which all ports of the switch share.
    const std::string poll = TextOf(Member(Entry(editor_.work(), "PFC_WD", "GLOBAL"), "POLL_INTERVAL"));
    const auto interval = Within(std::string_view(poll), 1, 100'000);
    const std::string text = std::to_string(std::max(wanted, interval.value_or(0)));
    const Json& entry = Entry(live_, "PFC_WD", wish.port);
    const std::string action = TextOf(Member(entry, "action"));
    if (entry.is_object() && !action.empty() && action != "drop" && action != "forward")
      editor_.Set("PFC_WD", wish.port, "action", "drop",
                  {"an alert stops no storm", "sonic-swss orchagent/pfcwdorch.cpp"});
    if (!entry.is_object()) {
      editor_.Set("PFC_WD", wish.port, "action", "drop", {reason.why, start});
      editor_.Set("PFC_WD", wish.port, "restoration_time", text, {reason.why, start});
    }
    editor_.Set("PFC_WD", wish.port, "detection_time", text,
                wanted == *time ? reason : Reason{reason.why, start});
    if (poll.empty()) {
      editor_.Set("PFC_WD", "GLOBAL", "POLL_INTERVAL",
                  std::to_string(std::min({wanted, step, kMostPollMs, LeastWatchdogTime()})),
                  {"how often the watchdog looks", start});
    } else if (interval && *interval > wanted) {
      Note(
          fmt::format("PFC_WD|GLOBAL POLL_INTERVAL is {} ms, so the watchdog of {} detects after that and "
                      "not after {} ms: lower "
                      "it by `pfcwd interval` (100 to 1000), and render again",
                      *interval, wish.port, wanted));
    }
  }

  // Once all of this is done.
  int PortsWithPfc() const {
    int ports = 0;
    for (const auto& [key, map] : Member(editor_.work(), "PORT_QOS_MAP").items()) {
      if (!ours_.contains(key) && !TextOf(Member(map, "pfc_enable")).empty())
        ports += int(sonic::PortsIn(key).size());
    }
    for (const SonicWish& wish : wishes_) {
      const auto& pfc = wish.rendering.settings.pfc;
      const bool has = pfc ? !pfc->empty() : !TextOf(Member(QosOf(wish.port), "pfc_enable")).empty();
      if (has) ++ports;
    }
    return ports;
  }
  // Of those that stand and stay, which POLL_INTERVAL may not be above.
  int LeastWatchdogTime() const {
    int least = kMostPollMs;
    for (const auto& [port, entry] : Member(live_, "PFC_WD").items()) {
      for (const std::string_view field : {"detection_time", "restoration_time"}) {
        if (field == "detection_time" && ours_.contains(port)) continue;
        const std::string text = TextOf(Member(entry, field));
        const auto time = Within(std::string_view(text), kLeastWatchdogMs, kMostPollMs);
        if (time) least = std::min(least, *time);
      }
    }
    return least;
  }

  void Cable(const SonicWish& wish) {
    const Json& table = Member(editor_.work(), "CABLE_LENGTH");
    const std::string name = table.is_object() && !table.empty() ? table.begin().key() : "AZURE";
    const std::string now = TextOf(Member(Entry(editor_.work(), "CABLE_LENGTH", name), wish.port));
    const std::string text = fmt::format("{}m", *wish.rendering.settings.cable_metres);
    if (now == text) return;
    editor_.Set("CABLE_LENGTH", name, wish.port, text,
                Because(wish, Setting::kCableMetres, "headroom is sized by it"));
  }

  // Then a profile's size is what is its own; else xoff is part of it. A pool of 0 bytes is none.
  bool SharesHeadroom() const {
    const std::string shared = TextOf(Member(Entry(live_, "BUFFER_POOL", "ingress_lossless_pool"), "xoff"));
    return !shared.empty() && shared != "0";
  }

  // Headroom: a profile like that which the port has, with the bytes that are wanted.
  void Groups(const SonicWish& wish) {
    const PortSettings& settings = wish.rendering.settings;
    if (dynamic_) return GroupsThatAreSized(wish);
    if (!settings.buffer_bytes) return;
    const Reason reason = Because(wish, Setting::kBufferBytes, "what comes after the pause is held");
    for (int group = 0; group < kPriorities; ++group) {
      const int wanted = (*settings.buffer_bytes)[std::size_t(group)];
      if (wanted == kNotSaid) continue;
      const std::string now =
          sonic::NameIn("BUFFER_PROFILE", CellText("BUFFER_PG", wish.port, group, "profile"));
      const Json& profile = Entry(editor_.work(), "BUFFER_PROFILE", now);
      const auto xoff = Within(std::string_view(TextOf(Member(profile, "xoff"))), 0, 1 << 30);
      if (!xoff) {
        GiveProfile(wish, group, reason);
        continue;
      }
      if (*xoff >= wanted) continue;
      Json content = profile;
      content["xoff"] = std::to_string(wanted);
      const auto size = Within(std::string_view(TextOf(Member(profile, "size"))), 0, 1 << 30);
      if (!SharesHeadroom() && size && *size >= *xoff)
        content["size"] = std::to_string(*size - *xoff + wanted);
      const std::string name = editor_.Named("BUFFER_PROFILE", fmt::format("heddle_lossless_{}", wanted), "",
                                             content, reason, [](const std::string&) { return true; });
      editor_.EditCells("BUFFER_PG", wish.port, {{group, {{"profile", Reference("BUFFER_PROFILE", name)}}}},
                        reason);
    }
  }

  // A switch that sizes headroom itself does so for groups with a row.
  void GroupsThatAreSized(const SonicWish& wish) {
    const PortSettings& settings = wish.rendering.settings;
    if (settings.buffer_bytes) {
      Note(
          "the switch sizes headroom itself by speed, cable and MTU (buffer_model dynamic): bufferBytes is "
          "left to it");
    }
    if (!settings.pfc) return;
    for (const int group : settings.pfc->Members()) {
      if (!CellText("BUFFER_PG", wish.port, group, "profile").empty()) continue;
      editor_.EditCells("BUFFER_PG", wish.port, {{group, {{"profile", "NULL"}}}},
                        {"the switch sizes headroom of this group",
                         "sonic-swss cfgmgr/buffermgrdyn.cpp: for rows of BUFFER_PG whose profile is NULL"});
    }
  }

  // A profile as SONiC makes them itself (sonic-swss, cfgmgr/buffermgr.cpp), for a group that has none with xoff. It
  // makes none where its table has no row for the speed and the cable.
  void GiveProfile(const SonicWish& wish, int group, const Reason& reason) {
    const std::string name = "ingress_lossless_pool";
    const Json& pool = Entry(live_, "BUFFER_POOL", name);
    const auto& headroom = wish.rendering.headroom;
    // A static pool's threshold is a share of its chip's memory, which nobody says here.
    if (!headroom || TextOf(Member(pool, "mode")) != "dynamic") {
      return Note(fmt::format(
          "{} has no buffer profile with xoff on priority group {}, and gets none: BUFFER_POOL has no {} of "
          "mode dynamic. SONiC makes one from pfc_enable where its model's pg_profile_lookup.ini has the "
          "port's speed and CABLE_LENGTH: render again once it has, else make one by hand",
          wish.port, group, name));
    }
    // The threshold is that of NVIDIA's templates, whose chips alone are known (sonic-buildimage,
    // DEFAULT_LOSSLESS_BUFFER_PARAMETER: default_dynamic_th).
    const Json content{
        {"pool", Reference("BUFFER_POOL", name)},
        {"xon", std::to_string(headroom->xon_bytes)},
        {"xoff", std::to_string(headroom->xoff_bytes)},
        {"size", std::to_string(SharesHeadroom() ? headroom->xon_bytes : headroom->size_bytes())},
        {"dynamic_th", "0"}};
    const std::string profile =
        editor_.Named("BUFFER_PROFILE", fmt::format("heddle_lossless_{}", headroom->xoff_bytes), "", content,
                      reason, [](const std::string&) { return true; });
    editor_.EditCells("BUFFER_PG", wish.port, {{group, {{"profile", Reference("BUFFER_PROFILE", profile)}}}},
                      reason);
  }

  // Headroom of all ports, once this is done. Where no headroom is sized nothing is known of the chip.
  void Memory() {
    const auto sized = [](const SonicWish& wish) { return wish.rendering.headroom.has_value(); };
    if (std::none_of(wishes_.begin(), wishes_.end(), sized)) return;
    const std::optional<sonic::Memory> wanted = sonic::MemoryOf(editor_.work());
    if (!wanted) return;
    std::string note = sonic::NoteOf(*wanted, sonic::MemoryOf(live_));
    if (!note.empty()) Note(std::move(note));
  }

  // A lossless queue drops nothing on the way out either, where the switch has a profile for that.
  void EgressBuffers(const SonicWish& wish) {
    const PortSettings& settings = wish.rendering.settings;
    const std::string name = "egress_lossless_profile";
    if (!settings.pfc || !settings.pause_to_queue || settings.pfc->empty()) return;
    if (!Entry(live_, "BUFFER_PROFILE", name).is_object()) {
      return Note(fmt::format(
          "BUFFER_QUEUE is left as it is: BUFFER_PROFILE has no {}, which the queue of data is to have",
          name));
    }
    for (const int priority : settings.pfc->Members()) {
      const int queue = (*settings.pause_to_queue)[std::size_t(priority)];
      if (sonic::NameIn("BUFFER_PROFILE", CellText("BUFFER_QUEUE", wish.port, queue, "profile")) == name)
        continue;
      editor_.EditCells("BUFFER_QUEUE", wish.port,
                        {{queue, {{"profile", Reference("BUFFER_PROFILE", name)}}}},
                        {"the lossless queue is not dropped from",
                         "sonic-buildimage buffers_config.j2: queues of lossless classes have this profile"});
    }
  }

  const Json& live_;
  const std::map<std::string, std::string> channels_;  // by port
  Editor editor_;
  const std::string base_;
  const std::vector<SonicWish>& wishes_;
  std::set<std::string> ours_;  // ports
  sonic::Queues queues_;
  int with_pfc_ = 0;  // ports
  bool dynamic_ = false, bracketed_ = false;
  std::vector<std::string> notes_;
};

}  // namespace

base::Result<SonicPatch> PatchSonic(std::string_view live, std::string_view policy,
                                    const std::vector<SonicWish>& wishes) {
  ASSIGN_OR_RETURN(const Json root, sonic::Parse(live));
  TRY(Editor::CheckTables(root));
  return Patcher(root, policy, wishes).Run();
}

std::string PatchJson(const SonicPatch& patch) {
  Json operations = Json::array();
  for (const PatchLine& line : patch.lines) {
    Json operation{{"op", line.op}, {"path", line.path}};
    if (!line.value.empty()) operation["value"] = Json::parse(line.value, nullptr, false);
    operations.push_back(std::move(operation));
  }
  return operations.dump(1) + "\n";
}

base::Result<std::string> Patched(std::string_view live, const SonicPatch& patch) {
  ASSIGN_OR_RETURN(const Json root, sonic::Parse(live));
  try {
    return root.patch(Json::parse(PatchJson(patch))).dump(1);
  } catch (const Json::exception& failure) {
    return base::Fail(Code::kInvalid,
                      fmt::format("the patch does not fit the configuration: {}", failure.what()));
  }
}

}  // namespace heddle::formats
