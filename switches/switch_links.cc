#include "switches/switch_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "lossless/compare.h"
#include "lossless/lint.h"
#include "lossless/short_room.h"
#include "switches/chassis.h"
#include "switches/neighbours.h"
#include "switches/openconfig_ports.h"
#include "switches/port_index.h"

namespace heddle::switches {
namespace {

using lossless::CableFinding;
using lossless::CableOutcome;
using lossless::LosslessVerdict;
using lossless::PortSettings;
using lossless::Setting;

constexpr std::string_view kNotKnown = "not known";

// As far as two numbers for one MTU lie apart at most: Ethernet's header and checksum, and two VLAN tags (IEEE 802.1Q).
constexpr int kReadingsApart = lossless::kFrameAround + 2 * 4;

// Both ends of one link, held against each other.
class Comparing {
 public:
  Comparing(std::string lower, const formats::SonicPort& here, std::string upper,
            const formats::SonicPort& there)
      : names_{std::move(lower), std::move(upper)}, ports_{&here, &there} {}

  CableOutcome Run() && {
    const bool known = Known(0) && Known(1);
    if (known) {
      Settings();
      for (const int end : {0, 1}) Path(end);
      Watchdogs();
      for (const int end : {0, 1}) Alone(end);
    }
    Line();
    Frames();
    outcome_.verdict = outcome_.findings.empty() ? LosslessVerdict::kLossless : LosslessVerdict::kUnproved;
    for (const CableFinding& one : outcome_.findings) outcome_.verdict = Worst(outcome_.verdict, one.weight);
    std::stable_sort(outcome_.findings.begin(), outcome_.findings.end(),
                     [](const auto& a, const auto& b) { return a.weight < b.weight; });
    return std::move(outcome_);
  }

 private:
  const PortSettings& Of(int end) const { return ports_[std::size_t(end)]->settings; }

  bool Known(int end) {
    const formats::SonicPort& port = *ports_[std::size_t(end)];
    if (!port.bare.empty()) {
      Find(LosslessVerdict::kUnproved, "not-known", "settings", "", "",
           fmt::format("{} {}, and nothing is known of its settings", names_[std::size_t(end)], port.bare),
           port.bare == kNoPfcPath
               ? "nothing over gNMI can prove this cable: hold the ports' QoS against each other by hand"
           : port.bare.starts_with(formats::kCannotBeRead)
               ? "put that right, and the rest of its settings is read"
               : "give the port its maps: `kubectl heddle switch render` for a host's port shows which");
      return false;
    }
    // Which pause stops which queue is worth knowing only where there is any.
    const PortSettings& mine = Of(end);
    const bool no_pause = !mine.pfc || mine.pfc->empty();
    for (const auto& [setting, said] :
         {std::pair(Setting::kPfc, mine.pfc.has_value()),
          std::pair(Setting::kDscpToPriority, mine.dscp_to_priority.has_value()),
          std::pair(Setting::kPriorityToGroup, no_pause || mine.priority_to_group.has_value()),
          std::pair(Setting::kPriorityToQueue, no_pause || mine.priority_to_queue.has_value()),
          std::pair(Setting::kPauseToQueue, no_pause || mine.pause_to_queue.has_value()),
          std::pair(Setting::kWatched, no_pause || mine.watched.has_value()),
          std::pair(Setting::kMtu, mine.mtu.has_value())}) {
      if (said) continue;
      NotSaid(setting, fmt::format("nobody says {} of {}", SettingName(setting), names_[std::size_t(end)]),
              setting == Setting::kWatched ? lossless::kSayWatched
                                           : "the switch's configuration names no such table for this port");
    }
    return true;
  }

  int TcOf(int end, int dscp) const { return (*Of(end).dscp_to_priority)[std::size_t(dscp)]; }

  // Of the maps what is lossless at either end: what the others do loses no RDMA. Path() tells what an end leaves out.
  void Settings() {
    PortSettings want;
    want.pfc = Of(0).pfc;
    want.mtu = Of(0).mtu;
    if (Of(0).dscp_to_priority && Of(1).dscp_to_priority) {
      want.dscp_to_priority = lossless::AllDscps(lossless::kNotSaid);
      for (int dscp = 0; dscp < lossless::kDscps; ++dscp) {
        if (IsLossless(Of(0), dscp) != std::optional(true) && IsLossless(Of(1), dscp) != std::optional(true))
          continue;
        lossless_.push_back(dscp);
        const int tc = TcOf(0, dscp);
        if (tc == lossless::kNotSaid || TcOf(1, dscp) == lossless::kNotSaid) continue;
        (*want.dscp_to_priority)[std::size_t(dscp)] = std::int8_t(tc);
        // A pause names the group of the end that sends it.
        const auto &here = Of(0).priority_to_group, &there = Of(1).priority_to_group;
        if (!here || !there || tc != TcOf(1, dscp)) continue;
        if ((*there)[std::size_t(tc)] == lossless::kNotSaid) continue;
        if (!want.priority_to_group) want.priority_to_group.emplace().fill(lossless::kNotSaid);
        (*want.priority_to_group)[std::size_t(tc)] = (*here)[std::size_t(tc)];
      }
    }
    for (const lossless::Drift& drift : Compare(want, Of(1)).drifts) {
      const std::string name(SettingName(drift.setting));
      Find(LosslessVerdict::kContradiction, "switch-link-" + name, name, drift.want, drift.have,
           fmt::format("{} has {} {}, and {} has {}", names_[0], name, drift.want, names_[1], drift.have),
           "set both ends alike, from one LosslessPolicy");
    }
    if (!lossless_.empty() || !Of(0).dscp_to_priority || !Of(1).dscp_to_priority) return;
    Find(LosslessVerdict::kUnproved, "switch-link-lossy", "pfc", SettingText(Of(0), Setting::kPfc),
         SettingText(Of(1), Setting::kPfc), "neither end has a lossless DSCP",
         "if RDMA crosses this link, set it as the hosts' ports are set");
  }

  // What a packet that is lossless at either end meets at this one. A map that has nothing for it is as good as none.
  void Path(int end) {
    const PortSettings& mine = Of(end);
    const std::string& name = names_[std::size_t(end)];
    lossless::PrioritySet seen;  // TCs: each is told once
    bool unmapped = false;
    for (const int dscp : lossless_) {
      const int tc = TcOf(end, dscp);
      if (tc == lossless::kNotSaid) {
        if (!unmapped)
          NotSaid(Setting::kDscpToPriority,
                  fmt::format("{} maps DSCP {}, which is lossless at the other end, to nothing", name, dscp),
                  "map it as the other end does");
        unmapped = true;
        continue;
      }
      if (seen.Contains(tc)) continue;
      seen.Insert(tc);
      if (mine.priority_to_queue && (*mine.priority_to_queue)[std::size_t(tc)] == lossless::kNotSaid)
        NotSaid(Setting::kPriorityToQueue,
                fmt::format("{} has no queue for TC {}, of lossless packets", name, tc),
                "give it one in TC_TO_QUEUE_MAP");
      const int group = PriorityOf(mine, dscp);
      if (group == lossless::kNotSaid) {
        NotSaid(
            Setting::kPriorityToGroup,
            fmt::format("{} has no priority group for TC {}, of lossless packets, or no pause for that group",
                        name, tc),
            "give it one in TC_TO_PRIORITY_GROUP_MAP, and the group a priority in "
            "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP");
        continue;
      }
      if (IsLossless(mine, dscp) != std::optional(true)) continue;  // told by what differs
      if (mine.pause_to_queue && (*mine.pause_to_queue)[std::size_t(group)] == lossless::kNotSaid)
        NotSaid(Setting::kPauseToQueue,
                fmt::format("at {} a pause for priority {} stops no queue", name, group),
                "name its queue in MAP_PFC_PRIORITY_TO_QUEUE");
      if (mine.lossy_queues && mine.lossy_queues->Contains(group))
        Find(LosslessVerdict::kContradiction, "queue-lossy", std::string(SettingName(Setting::kLossyQueues)),
             end == 0 ? Text(*mine.lossy_queues) : "-", end == 0 ? "-" : Text(*mine.lossy_queues),
             fmt::format("the queue by which priority {} leaves {} has a lossy buffer", group, name),
             "give that queue a lossless profile: `kubectl heddle switch render`");
      for (lossless::Unsaid& one : lossless::FindUnsaidBuffers(mine, group, name))
        NotSaid(one.setting, std::move(one.sentence), std::move(one.next));
      if (mine.buffer_bytes && (*mine.buffer_bytes)[std::size_t(group)] == 0)
        Find(LosslessVerdict::kContradiction, "buffer-empty", std::string(SettingName(Setting::kBufferBytes)),
             end == 0 ? "0" : "-", end == 0 ? "-" : "0",
             fmt::format("{} has no room for what still arrives after a pause for priority {}", name, group),
             "give that priority group a profile with xoff: `kubectl heddle switch render`");
      Room(end, group);
    }
  }

  // What a link that negotiates runs at neither end says.
  void Room(int end, int priority) {
    if (ports_[0]->negotiates || ports_[1]->negotiates) return;
    const PortSettings& mine = Of(end);
    const std::optional<int>& speed = ports_[std::size_t(end)]->speed_mbps;
    const auto found = lossless::FindShortRoom(mine, priority, speed);
    if (!found) return;
    const std::string value = ValueOf(*found);
    Find(found->weight, lossless::kHeadroomShort, std::string(SettingName(Setting::kBufferBytes)),
         end == 0 ? value : "-", end == 0 ? "-" : value,
         fmt::format("{}: {}", names_[std::size_t(end)], SentenceOf(*found, mine, *speed)),
         lossless::kGiveRoom);
  }

  void NotSaid(Setting setting, std::string sentence, std::string next) {
    Find(LosslessVerdict::kUnproved, "not-known", std::string(SettingName(setting)),
         SettingText(Of(0), setting), SettingText(Of(1), setting), std::move(sentence), std::move(next));
  }

  void Watchdogs() {
    for (const int end : {0, 1}) {
      const auto& pfc = Of(end).pfc;
      if (!pfc || pfc->empty()) continue;
      const auto& watched = Of(end).watched;
      const bool off = Of(end).watchdog_ms == std::optional(lossless::kWatchdogOff) ||
                       (watched && (pfc->bits() & ~watched->bits()) != 0);
      const bool alerts = Of(end).watchdog_ms == std::optional(lossless::kWatchdogAlerts);
      if (Of(end).watchdog_ms && !off && !alerts) continue;
      Find(off || alerts ? LosslessVerdict::kContradiction : LosslessVerdict::kUnproved,
           "switch-link-watchdog", std::string(SettingName(Setting::kWatchdogMs)),
           SettingText(Of(0), Setting::kWatchdogMs), SettingText(Of(1), Setting::kWatchdogMs),
           fmt::format("{} has PFC and {}", names_[std::size_t(end)],
                       alerts ? "a watchdog that tells of storms and stops none (action alert)"
                              : "no watchdog: a storm above it stops for good"),
           alerts ? "set the action of PFC_WD to drop at both ends" : "turn PFC_WD on at both ends");
    }
  }

  // What loses packets whatever the other end has. Watchdogs are told above, for both ends at once, and room and lossy
  // queues by Path(), of the priorities that lossless packets are in.
  void Alone(int end) {
    const std::string& name = names_[std::size_t(end)];
    for (CableFinding& one : lossless::FindLossySettings(Of(end))) {
      if (one.rule == "pfc-without-watchdog" || one.rule == "buffer-empty" || one.rule == "queue-lossy")
        continue;
      Find(LosslessVerdict::kContradiction, std::move(one.rule), std::move(one.setting),
           end == 0 ? one.leaf : "-", end == 0 ? "-" : one.leaf, fmt::format("{}: {}", name, one.leaf),
           std::move(one.next));
    }
  }

  void Line() {
    const auto speed = [](const formats::SonicPort& port) {
      return port.speed_mbps ? fmt::format("{} Gb/s", *port.speed_mbps / 1000) : std::string();
    };
    const formats::SonicPort &here = *ports_[0], &there = *ports_[1];
    const bool negotiates = here.negotiates || there.negotiates;
    if (!negotiates && here.speed_mbps && there.speed_mbps && *here.speed_mbps != *there.speed_mbps)
      Find(LosslessVerdict::kContradiction, "link-speed", "speed", speed(here), speed(there),
           "the ends have different speeds", "set one speed at both ends");
    const auto a = lossless::ParseFec(here.fec), b = lossless::ParseFec(there.fec);
    if (a && b && *a != *b)
      Find(LosslessVerdict::kContradiction, "link-fec", "fec", here.fec, there.fec,
           "the ends code differently: what arrives is broken", "set the same FEC at both ends");
  }

  bool IsOpenConfig(int end) const { return ports_[std::size_t(end)]->bare == kNoPfcPath; }

  // The MTUs of links with an end of OpenConfig, which Settings() never sees. Its models leave open what of a frame is
  // in the number, and nobody says whose software an end runs, so that two ends of OpenConfig may count differently,
  // too: told is only what no reading makes one MTU. SONiC's is of packets.
  void Frames() {
    if (!IsOpenConfig(0) && !IsOpenConfig(1)) return;
    if (!Of(0).mtu || !Of(1).mtu) return;
    const std::array<int, 2> mtus{*Of(0).mtu, *Of(1).mtu};
    for (const int sender : {0, 1}) {
      const int other = 1 - sender;
      if (IsOpenConfig(sender) || mtus[std::size_t(sender)] <= mtus[std::size_t(other)]) continue;
      const auto frame = [&mtus](int end) {
        return fmt::format("{} bytes", mtus[std::size_t(end)] + lossless::kFrameAround);
      };
      return Find(LosslessVerdict::kContradiction, "link-frame", "frame", frame(0), frame(1),
                  fmt::format("the MTU of {} at {} makes frames that {} drops", mtus[std::size_t(sender)],
                              names_[std::size_t(sender)], names_[std::size_t(other)]),
                  "raise the MTU of the end that drops them, or lower the other's");
    }
    if (std::abs(mtus[0] - mtus[1]) <= kReadingsApart) return;
    const std::string name(SettingName(Setting::kMtu));
    Find(LosslessVerdict::kContradiction, "switch-link-" + name, name, SettingText(Of(0), Setting::kMtu),
         SettingText(Of(1), Setting::kMtu),
         fmt::format("{} has {} {}, and {} has {}: more apart than Ethernet's header and VLAN tags explain",
                     names_[0], name, mtus[0], names_[1], mtus[1]),
         "set both ends alike; one may count Ethernet's header in, and the other not");
  }

  void Find(LosslessVerdict weight, std::string rule, std::string setting, const std::string& here,
            const std::string& there, std::string sentence, std::string next) {
    const auto known = [](const std::string& one) { return one.empty() ? std::string(kNotKnown) : one; };
    outcome_.findings.push_back({weight, std::move(rule), std::move(setting), known(here), known(there),
                                 std::move(sentence), std::move(next)});
  }

  const std::array<std::string, 2> names_;
  const std::array<const formats::SonicPort*, 2> ports_;
  std::vector<int> lossless_;  // DSCPs, at either end
  CableOutcome outcome_;
};

// In place of the names of the ends, which no text of a switch can hold: it is printable.
constexpr char kLowerName = '\x01', kUpperName = '\x02';

// What is true of all links whose ends are set alike, looked at once: most of a fabric's are.
class Outcomes {
 public:
  CableOutcome Of(const formats::SonicPort& lower, const formats::SonicPort& upper) {
    if (!lower.bare.empty() || !upper.bare.empty()) return Compared(lower, upper);
    const auto [at, fresh] = known_.try_emplace({KeyOf(lower, lower_last_), KeyOf(upper, upper_last_)});
    if (fresh) at->second = Compared(lower, upper);
    return at->second;
  }
  std::size_t size() const { return known_.size(); }

  // Puts the names of the ends where it says kLowerName and kUpperName.
  static void Name(const std::string& lower, const std::string& upper, CableOutcome& outcome) {
    for (CableFinding& finding : outcome.findings) {
      std::string named;
      named.reserve(finding.sentence.size() + lower.size() + upper.size());
      for (const char c : finding.sentence) {
        if (c == kLowerName) {
          named += lower;
        } else if (c == kUpperName) {
          named += upper;
        } else {
          named += c;
        }
      }
      finding.sentence = std::move(named);
    }
  }

 private:
  using Key = std::tuple<int, int, bool, std::string>;  // settings, speed, whether negotiated, FEC

  static CableOutcome Compared(const formats::SonicPort& lower, const formats::SonicPort& upper) {
    return Comparing(std::string(1, kLowerName), lower, std::string(1, kUpperName), upper).Run();
  }

  // Ports of one switch are mostly alike, and to see that costs less than to look them up.
  Key KeyOf(const formats::SonicPort& port, int& last) {
    if (last < 0 || pool_[last] != port.settings) last = pool_.Intern(port.settings);
    return {last, port.speed_mbps.value_or(-1), port.negotiates, port.fec};
  }

  lossless::SettingsPool pool_;
  int lower_last_ = -1, upper_last_ = -1;
  std::map<std::pair<Key, Key>, CableOutcome> known_;
};

constexpr int kNobody = -1, kSaysNothing = -2;

struct End {
  int at = kNobody;  // which of the switches
  int port = PortIndex::kNone;
  friend bool operator==(const End&, const End&) = default;
};

struct Ends {
  End lower, upper;
  bool fresh = false;  // who says so has said it lately
  bool SameCable(const Ends& other) const { return lower == other.lower && upper == other.upper; }
};

// A switch that is asked.
struct Asked {
  explicit Asked(const formats::SonicConfig& config)
      : ports(config), sees(ports->size(), kSaysNothing), links(ports->size(), 0) {}
  std::optional<PortIndex> ports;  // always; PortIndex itself cannot be put into the place of another
  std::vector<int> sees;   // at each port: which of the switches; kNobody = somebody else; kSaysNothing
  std::vector<int> links;  // at each port: how many
};

// What was compared once stays known; past so many times what it began with all is looked at anew.
constexpr std::size_t kMostOverBegin = 2, kOutcomesSlack = 64;

// Whether every port has the number and the names that it had.
bool IsCalledSame(const formats::SonicConfig& a, const formats::SonicConfig& b) {
  const auto same = [](const formats::SonicPort& one, const formats::SonicPort& other) {
    return one.name == other.name && one.alias == other.alias;
  };
  return std::equal(a.ports.begin(), a.ports.end(), b.ports.begin(), b.ports.end(), same) &&
         std::equal(a.bare.begin(), a.bare.end(), b.bare.begin(), b.bare.end(), same);
}

}  // namespace

class KeptSwitchLinks::Linking {
 public:
  explicit Linking(std::span<const KnownSwitch> switches)
      : switches_(switches.begin(), switches.end()), asked_(switches.size()) {
    for (std::size_t at = 0; at < switches.size(); ++at) {
      by_name_.Add(switches[at].name, int(at));
      by_chassis_.AddChassis(switches[at].chassis_id, int(at));
    }
    for (std::size_t at = 0; at < switches.size(); ++at) {
      if (IsAsked(switches[at])) asked_[at].emplace(*switches[at].config);
    }
    Find();
    began_with_ = outcomes_.size();
  }

  const std::vector<SwitchLink>& found() const { return found_; }
  std::vector<SwitchLink> Take() && { return std::move(found_); }

  std::optional<std::vector<std::size_t>> Again(std::span<const KnownSwitch> switches,
                                                const std::vector<std::size_t>& changed) {
    std::vector<char> other(switches_.size(), 0);
    for (const std::size_t at : changed) {
      const KnownSwitch &now = switches[at], &before = switches_[at];
      const bool asked = IsAsked(now);
      if (asked != asked_[at].has_value()) return std::nullopt;
      if (asked && (now.neighbours != before.neighbours || now.neighbours_stale != before.neighbours_stale ||
                    ChassisOf(now) != ChassisOf(before) || !IsCalledSame(*now.config, *before.config)))
        return std::nullopt;
      switches_[at] = now;
      if (!asked) continue;
      // It points to the ports of the configuration.
      asked_[at]->ports.emplace(*now.config);
      other[at] = 1;
    }
    std::vector<std::size_t> again;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const Ends& ends = links_[i];
      if (other[std::size_t(ends.lower.at)] == 0 && other[std::size_t(ends.upper.at)] == 0) continue;
      found_[i] = LinkOf(ends);
      again.push_back(i);
    }
    if (outcomes_.size() > kMostOverBegin * began_with_ + kOutcomesSlack) return std::nullopt;
    return again;
  }

 private:
  void Find() {
    for (std::size_t at = 0; at < switches_.size(); ++at) {
      if (!asked_[at]) continue;
      for (const auto& [port, seen] : *switches_[at].neighbours) Take(int(at), port, seen);
    }
    // That one end speaks of, or both: then the one who said so lately stays.
    std::sort(links_.begin(), links_.end(),
              [this](const Ends& a, const Ends& b) { return OrderOf(a) < OrderOf(b); });
    links_.erase(std::unique(links_.begin(), links_.end(),
                             [](const Ends& a, const Ends& b) { return a.SameCable(b); }),
                 links_.end());
    for (const Ends& ends : links_) {
      ++AskedAt(ends.lower).links[std::size_t(ends.lower.port)];
      ++AskedAt(ends.upper).links[std::size_t(ends.upper.port)];
    }
    found_.reserve(links_.size());
    for (const Ends& ends : links_) found_.push_back(LinkOf(ends));
  }

  bool IsAsked(const KnownSwitch& one) const {
    const bool named = !one.chassis_id.empty() || by_name_.Find(one.name) != ByName::kSeveral;
    return one.config != nullptr && one.neighbours != nullptr && named;
  }

  Asked& AskedAt(const End& end) { return *asked_[std::size_t(end.at)]; }
  const Asked& AskedAt(const End& end) const { return *asked_[std::size_t(end.at)]; }
  const formats::SonicPort& PortAt(const End& end) const { return (*AskedAt(end).ports)[end.port]; }

  // By numbers alone: names of ports lie all over the memory.
  std::array<int, 5> OrderOf(const Ends& ends) const {
    const auto rank = [this](const End& end) { return AskedAt(end).ports->RankOf(end.port); };
    return {ends.lower.at, rank(ends.lower), ends.upper.at, rank(ends.upper), ends.fresh ? 0 : 1};
  }

  // The one switch that is meant, by its chassis id where either says one; kNobody: none that is asked, or one of
  // several.
  int SwitchOf(const Neighbour& seen) const {
    int found = by_chassis_.Find(seen.chassis_id);
    if (found == ByName::kNobody) {
      found = by_name_.Find(seen.system);
      if (found < 0) return kNobody;
      const std::string& own = ChassisOf(switches_[std::size_t(found)]);
      if (!seen.chassis_id.empty() && !own.empty() && !IsSameChassis(seen.chassis_id, own)) return kNobody;
    }
    return found >= 0 && asked_[std::size_t(found)] ? found : kNobody;
  }

  // SONiC says the alias as port id and the name as description, by sonic-buildimage's lldpmgrd.
  static int PortSeen(const PortIndex& ports, const Neighbour& seen) {
    const int port = ports.NumberSeen(seen.port_id);
    return port != PortIndex::kNone ? port : ports.NumberSeen(seen.port_description);
  }

  void Take(int here, const std::string& name, const Neighbour& seen) {
    Asked& mine = *asked_[std::size_t(here)];
    End lower{here, mine.ports->NumberOf(name)};
    if (lower.port == PortIndex::kNone) return;
    const int there = SwitchOf(seen);
    if (!seen.system.empty()) {
      // A port that has two rows, by its name and by its alias, which do not agree, agrees with nobody.
      int& sees = mine.sees[std::size_t(lower.port)];
      sees = sees == kSaysNothing || sees == there ? there : kNobody;
    }
    if (there == kNobody || there == here) return;
    End upper{there, PortSeen(*asked_[std::size_t(there)]->ports, seen)};
    if (upper.port == PortIndex::kNone) return;
    if (IsAbove(lower.at, upper.at)) std::swap(lower, upper);
    links_.push_back({lower, upper, !switches_[std::size_t(here)].neighbours_stale});
  }

  bool IsAbove(int a, int b) const {
    const KnownSwitch &one = switches_[std::size_t(a)], &other = switches_[std::size_t(b)];
    return std::tuple(one.tier, std::string_view(NameOf(one))) >
           std::tuple(other.tier, std::string_view(NameOf(other)));
  }

  // Whether who stands at that end says that the cable goes elsewhere.
  bool Denies(const End& end, const End& other) const {
    const int sees = AskedAt(end).sees[std::size_t(end.port)];
    return sees != kSaysNothing && sees != other.at;
  }

  // Whether who stands at that end says so itself, by the other's name, and said it lately.
  bool Sees(const End& end, const End& other) const {
    return AskedAt(end).sees[std::size_t(end.port)] == other.at &&
           !switches_[std::size_t(end.at)].neighbours_stale;
  }

  SwitchLink LinkOf(const Ends& ends) {
    const End &lower = ends.lower, &upper = ends.upper;
    const formats::SonicPort &below = PortAt(lower), &above = PortAt(upper);
    SwitchLink link{NameOf(switches_[std::size_t(lower.at)]),
                    NameOf(switches_[std::size_t(upper.at)]),
                    below.name,
                    above.name,
                    lower.at,
                    upper.at,
                    {}};
    const bool several = AskedAt(lower).links[std::size_t(lower.port)] > 1 ||
                         AskedAt(upper).links[std::size_t(upper.port)] > 1;
    const bool doubted = several || Denies(lower, upper) || Denies(upper, lower);
    link.both_say_so = !doubted && Sees(lower, upper) && Sees(upper, lower);
    if (!doubted) link.outcome = outcomes_.Of(below, above);
    if (!doubted && ends.fresh && link.outcome.findings.empty()) return link;
    const std::string here = fmt::format("{} {}", link.lower, link.lower_port),
                      there = fmt::format("{} {}", link.upper, link.upper_port);
    if (!doubted) {
      Outcomes::Name(here, there, link.outcome);
      if (!ends.fresh) AddStale(here, there, link.outcome);
      return link;
    }
    link.outcome = {
        LosslessVerdict::kUnproved,
        {{LosslessVerdict::kUnproved, "lldp-disagrees", "leafPort", here, there,
          fmt::format("one says that {} and {} are one cable, and another says otherwise", here, there),
          "`show lldp table` on both switches"}}};
    return link;
  }

  static void AddStale(const std::string& here, const std::string& there, CableOutcome& outcome) {
    outcome.verdict = Worst(outcome.verdict, LosslessVerdict::kUnproved);
    const auto better = std::find_if(outcome.findings.begin(), outcome.findings.end(),
                                     [](const auto& one) { return one.weight > LosslessVerdict::kUnproved; });
    CableFinding stale{LosslessVerdict::kUnproved,
                       "not-known",
                       "leafPort",
                       here,
                       there,
                       fmt::format("nobody says any longer that {} and {} are one cable", here, there),
                       "`show lldp table` on both switches; whom one of them sees can no longer be read"};
    outcome.findings.insert(better, std::move(stale));
  }

  std::vector<KnownSwitch> switches_;
  ByName by_name_, by_chassis_;
  std::vector<std::optional<Asked>>
      asked_;  // of the switches; nothing: not asked, or one of several of a name
  std::vector<Ends> links_;
  std::vector<SwitchLink> found_;  // of links_
  Outcomes outcomes_;
  std::size_t began_with_ = 0;
};

const std::string& NameOf(const KnownSwitch& known) {
  return known.name.empty() ? known.chassis_id : known.name;
}

std::vector<SwitchLink> FindSwitchLinks(std::span<const KnownSwitch> switches) {
  return KeptSwitchLinks::Find(switches);
}

KeptSwitchLinks::KeptSwitchLinks() = default;
KeptSwitchLinks::~KeptSwitchLinks() = default;
KeptSwitchLinks::KeptSwitchLinks(KeptSwitchLinks&&) noexcept = default;
KeptSwitchLinks& KeptSwitchLinks::operator=(KeptSwitchLinks&&) noexcept = default;

std::vector<SwitchLink> KeptSwitchLinks::Find(std::span<const KnownSwitch> switches) {
  return Linking(switches).Take();
}

void KeptSwitchLinks::Begin(std::span<const KnownSwitch> switches) {
  kept_ = std::make_unique<Linking>(switches);
}

std::optional<std::vector<std::size_t>> KeptSwitchLinks::Again(std::span<const KnownSwitch> switches,
                                                               const std::vector<std::size_t>& changed) {
  return kept_->Again(switches, changed);
}

const std::vector<SwitchLink>& KeptSwitchLinks::links() const {
  return kept_->found();
}

}  // namespace heddle::switches
