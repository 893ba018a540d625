#include "lossless/cable_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "base/names.h"
#include "lossless/compare.h"
#include "lossless/lint_rules.h"
#include "lossless/short_room.h"

namespace heddle::lossless {
namespace {

constexpr std::array<std::string_view, 3> kVerdictNames{"Contradiction", "Unproved", "Lossless"};
constexpr std::array<std::string_view, 3> kFecNames{"none", "fc", "rs"};
constexpr std::string_view kNotKnown = "not known";

// Rules about one end by which packets are lost on this very cable, or the fabric behind it stops. The linter's other
// errors about one end are told, and leave the verdict alone.
constexpr std::array<std::string_view, 10> kLossyAlone{
    "trust-not-dscp", "tos-nccl-differ", "data-lossy",    "pfc-without-watchdog", "global-pause",
    "cnp-lossless",   "queue-differs",   "buffer-shared", "buffer-empty",         "queue-lossy"};
// Those of them that one lossless priority of a switch may break while data is in another, which loses nothing.
constexpr std::array<std::string_view, 2> kOfOnePriority{"buffer-empty", "queue-lossy"};

bool IsOfOnePriority(std::string_view rule) {
  return std::find(kOfOnePriority.begin(), kOfOnePriority.end(), rule) != kOfOnePriority.end();
}

// Of everything that settings say, eight bytes at a time: byte by byte, as FNV-1a, it was most of what a port cost. The
// constant is splitmix64's (Steele, Lea, Flood 2014).
class Hash {
 public:
  void Add(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0xbf58476d1ce4e5b9ULL;
    hash_ ^= hash_ >> 27;
  }
  template <class T>
  void Value(const T& value) {
    if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
      Add(std::uint64_t(value));
    } else if constexpr (std::is_same_v<T, PrioritySet>) {
      Add(value.bits());
    } else if constexpr (std::is_same_v<T, DscpMap> || std::is_same_v<T, PriorityTable>) {
      std::uint64_t word = 0;
      static_assert(sizeof(T) % sizeof(word) == 0);
      for (std::size_t at = 0; at < sizeof(T); at += sizeof(word)) {
        std::memcpy(&word, value.data() + at, sizeof(word));
        Add(word);
      }
    } else if constexpr (std::is_same_v<T, EcnMarking>) {
      Add(std::uint64_t(value.min_bytes));
      Add(std::uint64_t(value.max_bytes));
      Add(std::uint64_t(value.probability_percent));
    } else if constexpr (std::is_same_v<T, Dcqcn> || std::is_same_v<T, EcnMarkings>) {
      for (const auto& [key, one] : value) {
        Value(key);
        Value(one);
      }
    } else {
      for (const auto& one : value) Value(one);
    }
  }
  std::uint64_t hash() const { return hash_; }

 private:
  std::uint64_t hash_ = 0x9e3779b97f4a7c15ULL;
};

std::uint64_t HashOf(const PortSettings& settings) {
  Hash hash;
  ForEachSetting([&](Setting setting, auto member) {
    if (!(settings.*member)) return;
    hash.Add(std::uint64_t(setting));
    hash.Value(*(settings.*member));
  });
  return hash.hash();
}

std::string Known(std::string value) {
  return value.empty() ? std::string(kNotKnown) : std::move(value);
}

// What the linter finds about one end. It has no value of the other.
std::vector<CableFinding> FindingsOf(const Subject& subject) {
  std::vector<Finding> findings;
  rules::Report report(findings, subject);
  for (const rules::SubjectRule rule : rules::OfOne()) rule(subject, report);
  std::vector<CableFinding> found;
  for (Finding& finding : findings) {
    const bool host = subject.end == End::kHost;
    const bool lossy = std::find(kLossyAlone.begin(), kLossyAlone.end(), finding.rule) != kLossyAlone.end();
    CableFinding one;
    one.weight = lossy ? LosslessVerdict::kContradiction : LosslessVerdict::kLossless;
    one.setting = finding.rule;
    (host ? one.host : one.leaf) = finding.fact + "; " + finding.contrary;
    (host ? one.leaf : one.host) = "-";
    one.sentence =
        fmt::format("{}: {}; {}", host ? "the host" : "the switch", finding.fact, finding.contrary);
    one.rule = std::move(finding.rule);
    one.next = std::move(finding.remedy);
    found.push_back(std::move(one));
  }
  if (subject.end == End::kHost || !subject.settings.pfc) return found;
  // Where every lossless priority breaks it data does, whichever of them it is in; else nobody knows by this end.
  for (const std::string_view rule : kOfOnePriority) {
    const auto of_rule = [rule](const CableFinding& one) { return one.rule == rule; };
    if (std::count_if(found.begin(), found.end(), of_rule) >= subject.settings.pfc->size()) continue;
    for (CableFinding& one : found) {
      if (of_rule(one)) one.weight = LosslessVerdict::kLossless;
    }
  }
  return found;
}

// The findings of one cable, as they are found.
class Comparing {
 public:
  Comparing(const SettingsPool& pool, const Cable& cable) : pool_(pool), cable_(cable) {}

  CableOutcome Run() && {
    const bool both = cable_.host.settings.known() && cable_.leaf.settings.known();
    if (cable_.host.settings.known()) host_.settings = pool_[*cable_.host.settings];
    if (cable_.leaf.settings.known()) leaf_.settings = pool_[*cable_.leaf.settings];
    host_.end = End::kHost;
    leaf_.end = End::kSwitch;
    if (both) TwoEnds();
    if (cable_.host.settings.known()) OneEnd(host_, both);
    if (cable_.leaf.settings.known()) OneEnd(leaf_, both);
    Missing(cable_.host, "host");
    Missing(cable_.leaf, "switch");
    if (both) Needs();
    if (cable_.leaf.settings.known()) Room();
    Link();
    for (const CableFinding& finding : outcome_.findings) verdict_ = Worst(verdict_, finding.weight);
    outcome_.verdict = verdict_;
    std::stable_sort(outcome_.findings.begin(), outcome_.findings.end(),
                     [](const CableFinding& a, const CableFinding& b) { return a.weight < b.weight; });
    return std::move(outcome_);
  }

 private:
  void OneEnd(const Subject& subject, bool both) {
    // Of a switch whose host says what data is marked with Waiting() tells it, of the one priority that data is in.
    const bool waits = both && subject.end == End::kSwitch && DataDscp(host_.settings);
    for (CableFinding& finding : FindingsOf(subject)) {
      if (waits && IsOfOnePriority(finding.rule)) continue;
      outcome_.findings.push_back(std::move(finding));
    }
  }

  void TwoEnds() {
    std::vector<Finding> findings;
    rules::Report report(findings, host_, &leaf_);
    for (const rules::PairRule rule : rules::OfTwoEnds()) rule(host_, leaf_, report);
    for (Finding& finding : findings) {
      const bool error = finding.severity == Severity::kError;
      outcome_.findings.push_back({error ? LosslessVerdict::kContradiction : LosslessVerdict::kLossless,
                                   std::move(finding.rule), std::move(finding.setting),
                                   std::move(finding.here), std::move(finding.there),
                                   finding.fact + "; " + finding.contrary, std::move(finding.remedy)});
    }
  }

  void Missing(const CableEnd& end, std::string_view which) {
    if (end.settings.known()) return;
    const bool stale = end.settings.missing() == topology::Missing::kStale;
    const bool host = which == "host";
    if (!end.why_unknown.empty()) {
      return NotKnown("settings", "", "", fmt::format("the {}'s port {}", which, end.why_unknown),
                      "put that right, and the rest of its settings is read");
    }
    NotKnown("settings", host ? std::string(topology::MissingName(end.settings.missing())) : "",
             host ? "" : std::string(topology::MissingName(end.settings.missing())),
             fmt::format("nobody says {} how the {} is set", stale ? "any longer" : "yet", which),
             host ? "is the node's agent running, and does it read the port? `kubectl describe nt` says"
                  : "give the switch's configuration, or see that it answers");
  }

  void NotKnown(std::string setting, std::string host, std::string leaf, std::string sentence,
                std::string next) {
    outcome_.findings.push_back({LosslessVerdict::kUnproved, "not-known", std::move(setting),
                                 Known(std::move(host)), Known(std::move(leaf)), std::move(sentence),
                                 std::move(next)});
  }

  // One thing that has to be known of one end.
  template <class Member>
  void Need(bool host, Setting setting, Member member) {
    const Subject& subject = host ? host_ : leaf_;
    if (subject.settings.*member) return;
    const std::string name(SettingName(setting));
    NotKnown(name, SettingText(host_.settings, setting), SettingText(leaf_.settings, setting),
             fmt::format("nobody says {} of the {}", name, host ? "host" : "switch"),
             host ? "`kubectl describe nt`, lossless gaps, says why the agent cannot read it"
                  : "the switch's configuration names no such table for this port");
  }

  // What no cable is lossless without.
  void Needs() {
    for (const bool host : {true, false}) {
      Need(host, Setting::kTrust, &PortSettings::trust);
      Need(host, Setting::kDscpToPriority, &PortSettings::dscp_to_priority);
      Need(host, Setting::kPfc, &PortSettings::pfc);
      Need(host, Setting::kMtu, &PortSettings::mtu);
      if (!host || !cable_.host.has_no_watchdog) Need(host, Setting::kWatchdogMs, &PortSettings::watchdog_ms);
      Need(host, Setting::kEcn, &PortSettings::ecn);
    }
    Need(true, Setting::kCnpDscp, &PortSettings::cnp_dscp);
    Need(true, Setting::kTos, &PortSettings::tos);
    Need(false, Setting::kPriorityToGroup, &PortSettings::priority_to_group);
    Need(false, Setting::kPriorityToQueue, &PortSettings::priority_to_queue);
    Need(false, Setting::kPauseToQueue, &PortSettings::pause_to_queue);
    if (!leaf_.settings.watched)
      NotKnown(std::string(SettingName(Setting::kWatched)), "-", "",
               "nobody says which priorities the switch's watchdog looks at", kSayWatched);
    Need(false, Setting::kMarking, &PortSettings::marking);
    Entries();
    if (const auto& cnp = host_.settings.cnp_dscp;
        cnp && leaf_.settings.dscp_to_priority &&
        (*leaf_.settings.dscp_to_priority)[std::size_t(*cnp)] == kNotSaid)
      NotKnown("dscpToPriority", "", "", fmt::format("the switch maps DSCP {}, of CNPs, to nothing", *cnp),
               "map the DSCP of CNPs to a priority without PFC");
    if (host_.settings.traffic_class) return;
    outcome_.findings.push_back(
        {LosslessVerdict::kLossless, "nccl-not-known", "trafficClass", std::string(kNotKnown), "-",
         "nobody says how NCCL marks its packets (NCCL_IB_TC): this holds for connections by rdma_cm",
         "pods with heddle.dev/fabric get NCCL_IB_TC of their policy; others set it themselves"});
  }

  // A map that has nothing for the very DSCP of data is as good as none.
  void Entries() {
    const auto dscp = DataDscp(host_.settings);
    if (!dscp) return;
    Waiting(*dscp);
    for (const bool host : {true, false}) {
      const PortSettings& settings = host ? host_.settings : leaf_.settings;
      if (!settings.dscp_to_priority || !settings.pfc || PriorityOf(settings, *dscp) != kNotSaid) continue;
      const int tc = (*settings.dscp_to_priority)[std::size_t(*dscp)];
      if (!host && tc != kNotSaid) {
        NotKnown("priorityToGroup", "", "",
                 fmt::format(
                     "the switch has no priority group for TC {}, of data, or no pause for that group", tc),
                 "give it one in TC_TO_PRIORITY_GROUP_MAP, and the group a priority in "
                 "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP");
        continue;
      }
      NotKnown("dscpToPriority", "", "",
               fmt::format("the {} maps DSCP {}, of data, to nothing", host ? "host" : "switch", *dscp),
               "map the DSCP of data to the lossless priority");
    }
  }

  // Where data waits on the switch, which queue a pause for it stops, and whether its group and its queue hold it.
  void Waiting(int dscp) {
    const PortSettings& leaf = leaf_.settings;
    const int tc = leaf.dscp_to_priority ? (*leaf.dscp_to_priority)[std::size_t(dscp)] : kNotSaid;
    if (tc == kNotSaid) return;
    if (leaf.priority_to_queue && (*leaf.priority_to_queue)[std::size_t(tc)] == kNotSaid)
      NotKnown("priorityToQueue", "", "", fmt::format("the switch has no queue for TC {}, of data", tc),
               "give it one in TC_TO_QUEUE_MAP");
    const int group = PriorityOf(leaf, dscp);
    if (group == kNotSaid) return;
    if (leaf.pause_to_queue && (*leaf.pause_to_queue)[std::size_t(group)] == kNotSaid)
      NotKnown("pauseToQueue", "", "",
               fmt::format("on the switch a pause for priority {}, of data, stops no queue", group),
               "name its queue in MAP_PFC_PRIORITY_TO_QUEUE");
    // What has no PFC sends no pause, and is told by its own rule.
    if (IsLossless(leaf, dscp) != std::optional(true)) return;
    if (leaf.lossy_queues && leaf.lossy_queues->Contains(group))
      Differs(
          "queue-lossy", std::string(SettingName(Setting::kLossyQueues)), "-", Text(*leaf.lossy_queues),
          fmt::format("the queue by which priority {}, of data, leaves the switch has a lossy buffer", group),
          "give that queue a lossless profile: `kubectl heddle switch render`");
    for (Unsaid& one : FindUnsaidBuffers(leaf, group, "the switch"))
      NotKnown(std::string(SettingName(one.setting)), "-", "", std::move(one.sentence), std::move(one.next));
    if (leaf.buffer_bytes && (*leaf.buffer_bytes)[std::size_t(group)] == 0)
      Differs(
          "buffer-empty", "bufferBytes", "-", "0",
          fmt::format("the switch has no room for what still arrives after a pause for priority {}", group),
          "give that priority group a profile with xoff: `kubectl heddle switch render`");
  }

  // Headroom of the priority that data is in; where the host does not say which, of every one that is paused.
  void Room() {
    const PortSettings& leaf = leaf_.settings;
    const auto dscp = DataDscp(host_.settings);
    std::vector<int> paused;
    if (!dscp && leaf.pfc) {
      paused = leaf.pfc->Members();
    } else if (dscp && IsLossless(leaf, *dscp) == std::optional(true)) {
      paused.push_back(PriorityOf(leaf, *dscp));
    }
    const std::optional<int> speed = SwitchRuns();
    if (paused.empty() || !speed) return;
    ShortRoom most;  // what is found has more than 0 bytes
    for (const int priority : paused) {
      const auto found = FindShortRoom(leaf, priority, speed);
      if (!found) return;
      if (found->has_bytes > most.has_bytes) most = *found;
    }
    outcome_.findings.push_back({most.weight, kHeadroomShort, std::string(SettingName(Setting::kBufferBytes)),
                                 "-", ValueOf(most), "on the switch " + SentenceOf(most, leaf, *speed),
                                 kGiveRoom});
  }

  // What its port is set to, or what the link has agreed on.
  std::optional<int> SwitchRuns() const {
    if (!cable_.leaf.negotiates) return cable_.leaf.speed_mbps;
    return cable_.host.link_up == std::optional(true) ? cable_.host.speed_mbps : std::nullopt;
  }

  void Speeds() {
    const CableEnd &host = cable_.host, &leaf = cable_.leaf;
    const auto speed = [](const std::optional<int>& mbps) {
      return mbps ? fmt::format("{} Gb/s", *mbps / 1000) : std::string();
    };
    if (!host.speed_mbps || !leaf.speed_mbps) {
      NotKnown("speed", speed(host.speed_mbps), speed(leaf.speed_mbps),
               fmt::format("nobody says how fast the {} is", host.speed_mbps ? "switch port" : "host's port"),
               host.speed_mbps ? "the switch's PORT table has its speed" : "is the host's link up?");
    } else if (*host.speed_mbps != *leaf.speed_mbps) {
      Differs(
          "link-speed", "speed", speed(host.speed_mbps), speed(leaf.speed_mbps),
          "the ends have different speeds: the faster fills the slower one's headroom, or the link is down",
          "set one speed at both ends, and look at the cable and its transceivers");
    }
  }

  void Link() {
    const CableEnd &host = cable_.host, &leaf = cable_.leaf;
    if (!leaf.negotiates) {
      Speeds();
    } else if (host.link_up != std::optional(true)) {
      NotKnown("speed", "", "", "the switch's port negotiates its speed, and the link is not up",
               "bring the link up: then both ends have one speed");
    } else {
      Outgrown();
    }
    Coding();
    const auto& mtu = host_.settings.mtu;
    if (leaf.max_frame_bytes && mtu && host.settings.known() && *mtu + kFrameAround > *leaf.max_frame_bytes) {
      Differs("link-frame", "frame", fmt::format("{} bytes", *mtu + kFrameAround),
              fmt::format("{} bytes", *leaf.max_frame_bytes),
              fmt::format("the host's MTU of {} makes frames that the switch drops", *mtu),
              "raise the switch's MTU, or lower the host's");
    }
  }

  // Headroom is sized by the speed that the port is set to, whatever it negotiated: by SONiC (sonic-swss buffermgr.cpp,
  // whose profiles are pg_lossless_<speed>_<cable>) as by us. Where the switch sizes it itself, no xoff is said.
  void Outgrown() {
    const auto &runs = cable_.host.speed_mbps, &set = cable_.leaf.speed_mbps;
    const auto& pfc = leaf_.settings.pfc;
    const auto& room = leaf_.settings.buffer_bytes;
    if (!runs || !set || *runs <= *set || !pfc || !room) return;
    const std::vector<int> paused = pfc->Members();
    const bool sized = std::any_of(paused.begin(), paused.end(),
                                   [&room](int priority) { return (*room)[std::size_t(priority)] > 0; });
    if (!sized) return;
    const std::string faster = fmt::format("{} Gb/s", *runs / 1000),
                      slower = fmt::format("{} Gb/s", *set / 1000);
    outcome_.findings.push_back(
        {LosslessVerdict::kUnproved, "link-speed", "speed", faster, slower,
         fmt::format("the link negotiated {}, and headroom is for the {} that the switch's port is set to",
                     faster, slower),
         "set the port's speed to what the link runs at, and see `kubectl heddle switch render`"});
  }

  // A link that is up has one coding: with two, neither end would understand a frame.
  void Coding() {
    const CableEnd &host = cable_.host, &leaf = cable_.leaf;
    const auto name = [](const std::optional<Fec>& fec) { return fec ? std::string(FecName(*fec)) : ""; };
    if (host.fec && leaf.fec) {
      if (*host.fec == *leaf.fec) return;
      Differs("link-fec", "fec", name(host.fec), name(leaf.fec),
              "the ends code differently: the link does not come up, or takes in broken frames",
              "set the same FEC at both ends; `rs` from 100 Gb/s on");
    } else if (host.link_up != std::optional(true)) {
      NotKnown("fec", name(host.fec), name(leaf.fec),
               "nobody says that both ends code alike, and the link is not up",
               "bring the link up, or see `ethtool --show-fec` and the switch's PORT table");
    }
  }

  void Differs(std::string rule, std::string setting, std::string host, std::string leaf,
               std::string sentence, std::string next) {
    outcome_.findings.push_back({LosslessVerdict::kContradiction, std::move(rule), std::move(setting),
                                 std::move(host), std::move(leaf), std::move(sentence), std::move(next)});
  }

  const SettingsPool& pool_;
  const Cable& cable_;
  Subject host_, leaf_;
  LosslessVerdict verdict_ = LosslessVerdict::kLossless;
  CableOutcome outcome_;
};

// What an end is to the comparison, as numbers that order.
using EndKey = std::tuple<int, int, int, int, int, bool, bool, std::string_view>;
EndKey KeyOf(const CableEnd& end) {
  const int settings = end.settings.known() ? *end.settings : -1 - int(end.settings.missing());
  return {settings,
          end.speed_mbps.value_or(-1),
          end.fec ? int(*end.fec) : -1,
          end.link_up ? int(*end.link_up) : -1,
          end.max_frame_bytes.value_or(-1),
          end.has_no_watchdog,
          end.negotiates,
          end.why_unknown};
}

}  // namespace

std::string_view LosslessVerdictName(LosslessVerdict verdict) {
  return kVerdictNames[std::size_t(verdict)];
}

std::optional<LosslessVerdict> ParseLosslessVerdict(std::string_view name) {
  return base::ValueNamed<LosslessVerdict>(kVerdictNames, name);
}

std::string_view FecName(Fec fec) {
  return kFecNames[std::size_t(fec)];
}

std::optional<Fec> ParseFec(std::string_view name) {
  if (name == "none" || name == "off") return Fec::kNone;
  if (name == "fc" || name == "baser") return Fec::kFireCode;
  if (name == "rs") return Fec::kReedSolomon;
  return std::nullopt;
}

int SettingsPool::Intern(const PortSettings& settings) {
  const std::uint64_t hash = HashOf(settings);
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    if (all_[std::size_t(at->second)] == settings) return at->second;
  }
  const int number = int(all_.size());
  all_.push_back(settings);
  by_hash_.emplace(hash, number);
  return number;
}

CableOutcome CompareCable(const SettingsPool& pool, const Cable& cable) {
  return Comparing(pool, cable).Run();
}

std::vector<CableFinding> FindLossySettings(const PortSettings& port) {
  Subject subject;
  subject.end = End::kSwitch;
  subject.settings = port;
  std::vector<CableFinding> findings = FindingsOf(subject);
  std::erase_if(findings, [](const CableFinding& one) { return one.weight == LosslessVerdict::kLossless; });
  return findings;
}

CableComparison CompareCables(const SettingsPool& pool, std::span<const Cable> cables) {
  CableComparison comparison;
  comparison.of_cable.reserve(cables.size());
  std::map<std::pair<EndKey, EndKey>, int> known;
  for (const Cable& cable : cables) {
    const auto [at, fresh] =
        known.emplace(std::pair{KeyOf(cable.host), KeyOf(cable.leaf)}, int(comparison.outcomes.size()));
    if (fresh) comparison.outcomes.push_back(CompareCable(pool, cable));
    comparison.of_cable.push_back(at->second);
  }
  return comparison;
}

std::map<int, LosslessVerdict> VerdictByRail(std::span<const Cable> cables,
                                             const CableComparison& comparison) {
  std::map<int, LosslessVerdict> verdicts;
  for (std::size_t i = 0; i < cables.size(); ++i) {
    if (cables[i].rail == kNotSaid) continue;
    const LosslessVerdict verdict = comparison.Of(i).verdict;
    const auto [at, fresh] = verdicts.emplace(cables[i].rail, verdict);
    if (!fresh) at->second = Worst(at->second, verdict);
  }
  return verdicts;
}

}  // namespace heddle::lossless
