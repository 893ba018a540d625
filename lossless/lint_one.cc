// Rules about one policy or one port.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lossless/lint_rules.h"
#include "lossless/marking.h"

namespace heddle::lossless::rules {
namespace {

// The lossless priorities; empty where PFC is off or nobody read it.
std::vector<int> Lossless(const Subject& subject) {
  return subject.settings.pfc ? subject.settings.pfc->Members() : std::vector<int>{};
}

std::string Priorities(const PrioritySet& set) {
  return (set.size() == 1 ? "priority " : "priorities ") + Text(set);
}

void TrustsDscp(const Subject& subject, Report& report) {
  if (subject.settings.trust != Trust::kPcp || Lossless(subject).empty()) return;
  report.Find("trust-not-dscp", "priorities are taken from the VLAN tag (trust PCP)",
              "PFC protects " + Priorities(*subject.settings.pfc) + ", which no untagged packet ever gets");
}

void MarksRdma(const Subject& subject, Report& report) {
  if (subject.rdma_dscp != 0) return;
  report.Find("rdma-unmarked", "the RDMA class is DSCP 0", "DSCP 0 is what every unmarked packet has");
}

void SendsItsOwnDscp(const Subject& subject, Report& report) {
  const auto& tos = subject.settings.tos;
  if (!subject.rdma_dscp || !tos || *tos >> 2 == *subject.rdma_dscp) return;
  report.Find(
      "tos-elsewhere", fmt::format("rdma_cm sends ToS {}, which is DSCP {}", *tos, *tos >> 2),
      fmt::format("the RDMA class is DSCP {}", *subject.rdma_dscp),
      fmt::format("set tos to {}: DSCP {} with ECT(0)", TosOf(*subject.rdma_dscp), *subject.rdma_dscp));
}

void AgreesWithNccl(const Subject& subject, Report& report) {
  const auto& tos = subject.settings.tos;
  const auto& nccl = subject.settings.traffic_class;
  if (!tos || !nccl || *tos == *nccl) return;
  report.Find("tos-nccl-differ", fmt::format("rdma_cm sends ToS {} (DSCP {})", *tos, *tos >> 2),
              fmt::format("NCCL_IB_TC is {} (DSCP {})", *nccl, *nccl >> 2));
}

void ClaimsNoCongestion(const Subject& subject, Report& report) {
  const auto look = [&](std::string_view who, const std::optional<int>& byte) {
    if (!byte || (*byte & 3) != 3) return;
    report.Find("tos-congested", fmt::format("{} is {}, which ends in the ECN bits 11", who, *byte),
                "11 is set by switches that are congested",
                fmt::format("use {}: the same DSCP with ECT(0)", *byte - 1));
  };
  look("the ToS byte of rdma_cm", subject.settings.tos);
  if (subject.settings.traffic_class != subject.settings.tos)
    look("NCCL_IB_TC", subject.settings.traffic_class);
}

void ProtectsData(const Subject& subject, Report& report) {
  const auto dscp = DataDscp(subject.settings);
  if (!dscp || IsLossless(subject.settings, *dscp) != std::optional(false)) return;
  // Whoever writes a policy without PFC wants RoCE that takes losses.
  if (subject.end == End::kPolicy && subject.settings.pfc->empty()) return;
  const int priority = PriorityOf(subject.settings, *dscp);
  std::string fact = fmt::format("data is sent with DSCP {}", *dscp);
  if (priority != kNotSaid) fact += fmt::format(", which is priority {}", priority);
  report.Find("data-lossy", std::move(fact),
              subject.settings.pfc->empty() ? "PFC is off"
                                            : "PFC is on for " + Priorities(*subject.settings.pfc) + " only");
}

void HasOneLosslessClass(const Subject& subject, Report& report) {
  if (Lossless(subject).size() < 2) return;
  report.Find("pfc-several-classes", "PFC is on for " + Priorities(*subject.settings.pfc),
              "RDMA needs one of them");
}

void IsWatched(const Subject& subject, Report& report) {
  const std::vector<int> lossless = Lossless(subject);
  if (lossless.empty()) return;
  const std::string fact = "PFC is on for " + Priorities(*subject.settings.pfc);
  if (subject.settings.watchdog_ms == kWatchdogAlerts) {
    report.Find("pfc-without-watchdog", fact,
                "the watchdog's action is alert, which tells of a storm and stops none",
                "set its action to drop (`pfcwd start --action drop`; `kubectl heddle switch render`)");
  } else if (subject.settings.watched) {
    PrioritySet unwatched;
    for (const int priority : lossless) {
      if (!subject.settings.watched->Contains(priority)) unwatched.Insert(priority);
    }
    if (!unwatched.empty())
      report.Find("pfc-without-watchdog", fact, "no watchdog looks at " + Priorities(unwatched));
  } else if (subject.settings.watchdog_ms == kWatchdogOff) {
    report.Find("pfc-without-watchdog", fact, "the watchdog is off");
  }
}

// Of a port where both were read: `mlnx_qos` and `dcb` say nothing of global pause.
void PausesByClassOnly(const Subject& subject, Report& report) {
  const auto& pause = subject.settings.global_pause;
  if (!pause || *pause == GlobalPause::kNone || Lossless(subject).empty()) return;
  report.Find("global-pause", fmt::format("global pause is {}", GlobalPauseName(*pause)),
              "PFC is on for " + Priorities(*subject.settings.pfc));
}

void WatchesInTime(const Subject& subject, Report& report) {
  const auto& time = subject.settings.watchdog_ms;
  if (subject.end == End::kSwitch || !time || *time == kWatchdogOff || *time == kWatchdogAuto) return;
  if (*time >= kMinWatchdogMs && *time <= kMaxWatchdogMs) return;
  report.Find("watchdog-range", fmt::format("the watchdog is set to {} ms", *time),
              fmt::format("it takes {} to {} ms", kMinWatchdogMs, kMaxWatchdogMs));
}

void LetsCnpsPass(const Subject& subject, Report& report) {
  const PortSettings& settings = subject.settings;
  if (!settings.pfc) return;
  if (settings.cnp_dscp && IsLossless(settings, *settings.cnp_dscp) == std::optional(true)) {
    report.Find("cnp-lossless", fmt::format("CNPs are sent with DSCP {}", *settings.cnp_dscp),
                fmt::format("DSCP {} is priority {}, which has PFC", *settings.cnp_dscp,
                            PriorityOf(settings, *settings.cnp_dscp)));
  } else if (settings.cnp_priority && settings.pfc->Contains(*settings.cnp_priority)) {
    report.Find("cnp-lossless", fmt::format("CNPs are sent with 802.1p priority {}", *settings.cnp_priority),
                fmt::format("priority {} has PFC", *settings.cnp_priority));
  }
}

void KeepsOthersOut(const Subject& subject, Report& report) {
  if (!subject.settings.pfc) return;
  for (const OtherClass& other : subject.classes) {
    std::string fact = fmt::format("{} ({}) is sent ", ClassUseName(other.use), other.name);
    const auto lossless = std::find_if(other.dscps.begin(), other.dscps.end(), [&](int dscp) {
      return IsLossless(subject.settings, dscp) == std::optional(true);
    });
    if (lossless != other.dscps.end()) {
      report.Find("class-lossless", fact + fmt::format("with DSCP {}", *lossless),
                  fmt::format("DSCP {} is priority {}, which has PFC", *lossless,
                              PriorityOf(subject.settings, *lossless)));
    } else if (subject.settings.pfc->Contains(other.priority)) {
      report.Find("class-lossless", fact + fmt::format("in priority {}", other.priority),
                  fmt::format("priority {} has PFC", other.priority));
    }
  }
}

void KeepsCnpsApart(const Subject& subject, Report& report) {
  const auto& cnps = subject.settings.cnp_priority;
  if (!cnps || (subject.settings.pfc && subject.settings.pfc->Contains(*cnps))) return;
  for (const OtherClass& other : subject.classes) {
    if (other.use != ClassUse::kStorage || other.priority != *cnps) continue;
    report.Find(
        "class-with-cnps",
        fmt::format("{} ({}) is sent in priority {}", ClassUseName(other.use), other.name, other.priority),
        fmt::format("CNPs are sent in priority {}", *cnps));
  }
}

// One DSCP has one priority: what CNPs, RDMA or a later class says of it is what holds.
void MapsAsDeclared(const Subject& subject, Report& report) {
  for (const OtherClass& other : subject.classes) {
    for (const int dscp : other.dscps) {
      const int priority = PriorityOf(subject.settings, dscp);
      if (priority == kNotSaid || priority == other.priority) continue;
      // That is worse, and said by its own rule.
      if (IsLossless(subject.settings, dscp) == std::optional(true)) continue;
      report.Find("class-elsewhere",
                  fmt::format("{} ({}) wants priority {} for DSCP {}", ClassUseName(other.use), other.name,
                              other.priority, dscp),
                  fmt::format("DSCP {} is priority {}", dscp, priority));
      break;  // once for each class: a range says the same of all its DSCPs
    }
  }
}

void KeepsStrangersOut(const Subject& subject, Report& report) {
  const PortSettings& settings = subject.settings;
  const auto data = DataDscp(settings);
  if (!data || !settings.dscp_to_priority || IsLossless(settings, *data) != std::optional(true)) return;
  DscpMap strangers = AllDscps(kNotSaid);
  for (int dscp = 0; dscp < kDscps; ++dscp) {
    if (dscp != *data && IsLossless(settings, dscp) == std::optional(true)) {
      strangers[std::size_t(dscp)] = 0;
    }
  }
  const std::string ranges = DscpRanges(strangers, 0);
  if (ranges.empty()) return;
  report.Find("lossless-shared", fmt::format("data is sent with DSCP {}", *data),
              fmt::format("DSCP {} are in a lossless class too", ranges));
}

void HasItsOwnClass(const Subject& subject, Report& report) {
  const auto& classes = subject.settings.priority_to_class;
  if (!classes) return;
  for (const int lossless : Lossless(subject)) {
    PrioritySet others;
    const int mine = (*classes)[std::size_t(lossless)];
    for (int priority = 0; priority < kPriorities; ++priority) {
      const bool same = (*classes)[std::size_t(priority)] == mine && mine != kNotSaid;
      if (priority != lossless && same) others.Insert(priority);
    }
    if (others.empty()) continue;
    report.Find("class-shared", fmt::format("priority {} has PFC and traffic class {}", lossless, mine),
                Priorities(others) + " have the same class");
  }
}

void PausesItsOwnQueue(const Subject& subject, Report& report) {
  const PortSettings& settings = subject.settings;
  if (!settings.priority_to_queue || !settings.pause_to_queue) return;
  const PriorityTable groups = settings.priority_to_group.value_or(Identity());
  for (int priority = 0; priority < kPriorities; ++priority) {
    const int group = groups[std::size_t(priority)];
    if (!settings.pfc || !settings.pfc->Contains(group)) continue;
    const int queue = (*settings.priority_to_queue)[std::size_t(priority)];
    const int stopped = (*settings.pause_to_queue)[std::size_t(group)];
    if (queue == stopped || queue == kNotSaid || stopped == kNotSaid) continue;
    report.Find("queue-differs", fmt::format("packets of TC {} wait in queue {}", priority, queue),
                fmt::format("a pause for priority {} stops queue {}", group, stopped));
  }
}

// A switch's buffers are those of its priority groups, and what counts of them is what holds packets after the pause.
void HasAGroupWithRoom(const Subject& subject, Report& report) {
  const auto& room = subject.settings.buffer_bytes;
  if (subject.end != End::kSwitch || !room) return;
  for (const int lossless : Lossless(subject)) {
    if ((*room)[std::size_t(lossless)] != 0) continue;
    report.Find("buffer-empty", fmt::format("priority {} has PFC", lossless),
                "its priority group has no room for what still arrives after the pause",
                "give that priority group a profile with xoff");
  }
}

void HasItsOwnBuffer(const Subject& subject, Report& report) {
  const PortSettings& settings = subject.settings;
  if (!settings.priority_to_buffer) return HasAGroupWithRoom(subject, report);
  for (const int lossless : Lossless(subject)) {
    const int mine = (*settings.priority_to_buffer)[std::size_t(lossless)];
    if (mine == kNotSaid) continue;
    PrioritySet others;
    for (int priority = 0; priority < kPriorities; ++priority) {
      if ((*settings.priority_to_buffer)[std::size_t(priority)] == mine && !settings.pfc->Contains(priority))
        others.Insert(priority);
    }
    if (!others.empty()) {
      report.Find("buffer-shared", fmt::format("priority {} has PFC and buffer {}", lossless, mine),
                  "lossy " + Priorities(others) + " share that buffer");
    }
    if (settings.buffer_bytes && (*settings.buffer_bytes)[std::size_t(mine)] == 0) {
      report.Find("buffer-empty", fmt::format("priority {} has PFC and buffer {}", lossless, mine),
                  fmt::format("buffer {} has 0 bytes", mine));
    }
  }
}

void LeavesByALosslessQueue(const Subject& subject, Report& report) {
  const auto& lossy = subject.settings.lossy_queues;
  if (!lossy) return;
  for (const int lossless : Lossless(subject)) {
    if (!lossy->Contains(lossless)) continue;
    report.Find("queue-lossy", fmt::format("priority {} has PFC", lossless),
                "the queue that it leaves by has a lossy buffer");
  }
}

void SharesAll(const Subject& subject, Report& report) {
  const PortSettings& settings = subject.settings;
  if (!settings.class_algorithm || !settings.class_percent) return;
  int sum = 0;
  bool any = false;
  std::string shares;
  for (std::size_t i = 0; i < settings.class_percent->size(); ++i) {
    if ((*settings.class_algorithm)[i] != Algorithm::kEts || (*settings.class_percent)[i] == kNotSaid)
      continue;
    any = true;
    sum += (*settings.class_percent)[i];
    shares += fmt::format("{}class {}: {} %", shares.empty() ? "" : ", ", i, (*settings.class_percent)[i]);
  }
  if (any && sum != 100)
    report.Find("ets-sum", "ETS shares are " + shares, fmt::format("they sum to {}", sum));
}

// The traffic class of a priority, by its own number where nothing else is said.
std::size_t ClassOf(const PortSettings& settings, int priority) {
  if (!settings.priority_to_class) return std::size_t(priority);
  const int named = (*settings.priority_to_class)[std::size_t(priority)];
  return std::size_t(named == kNotSaid ? priority : named);
}

void SendsInTurn(const Subject& subject, Report& report) {
  const PortSettings& settings = subject.settings;
  if (!settings.class_algorithm) return;
  for (const int lossless : Lossless(subject)) {
    const std::size_t mine = ClassOf(settings, lossless);
    const Algorithm algorithm = (*settings.class_algorithm)[mine];
    const std::string fact = fmt::format("priority {} has PFC and traffic class {}", lossless, mine);
    if (algorithm == Algorithm::kStrict) {
      report.Find("ets-strict-data", fact, fmt::format("class {} is strict", mine));
    } else if (algorithm == Algorithm::kEts && settings.class_percent &&
               (*settings.class_percent)[mine] == 0) {
      report.Find("ets-starved", fact, fmt::format("class {} has 0 % by ETS", mine));
    }
  }
  if (!settings.cnp_priority || Lossless(subject).empty()) return;
  const std::size_t mine = ClassOf(settings, *settings.cnp_priority);
  if ((*settings.class_algorithm)[mine] != Algorithm::kEts) return;
  report.Find("cnp-waits",
              fmt::format("CNPs have priority {} and traffic class {}", *settings.cnp_priority, mine),
              fmt::format("class {} waits for its share by ETS", mine));
}

// Of policies: what a port is set to in the end has no class of which nothing is said (nodeagent/qos, EtsFor).
void LeavesOthersATurn(const Subject& subject, Report& report) {
  const PortSettings& settings = subject.settings;
  if (subject.end != End::kPolicy || !settings.class_algorithm || !settings.class_percent) return;
  const Algorithms& algorithms = *settings.class_algorithm;
  const Numbers& percent = *settings.class_percent;
  const bool of_rdma = subject.rdma_dscp && PriorityOf(settings, *subject.rdma_dscp) == 0;
  const auto shares = [&](std::size_t one) { return algorithms[one] == Algorithm::kEts && percent[one] > 0; };
  const std::size_t rest = ClassOf(settings, 0);
  std::size_t other = 0;
  while (other < algorithms.size() && (other == rest || !shares(other))) ++other;
  if (other == algorithms.size() || (of_rdma && algorithms[rest] != Algorithm::kAny)) return;
  const std::string fact = fmt::format("class {} has {} % by ETS", other, percent[other]);
  if (algorithms[rest] == Algorithm::kEts) {
    if (percent[rest] == 0) report.Find("ets-rest-starved", fact, "priority 0 has 0 %");
  } else if (algorithms[rest] == Algorithm::kStrict) {
    report.Find("ets-rest-first", fact, "priority 0 is strict, and goes first");
  } else {
    report.Find("ets-rest-first", fact, "ets does not name priority 0, which has no share and goes first");
  }
}

void MarksCnpsOnce(const Subject& subject, Report& report) {
  const PortSettings& settings = subject.settings;
  if (!settings.cnp_dscp || !settings.cnp_priority) return;
  const int priority = PriorityOf(settings, *settings.cnp_dscp);
  if (priority == kNotSaid || priority == *settings.cnp_priority) return;
  report.Find("cnp-two-priorities",
              fmt::format("CNPs are sent with 802.1p priority {}", *settings.cnp_priority),
              fmt::format("their DSCP {} is priority {}", *settings.cnp_dscp, priority));
}

void SlowsSendersDown(const Subject& subject, Report& report) {
  const PortSettings& settings = subject.settings;
  const PrioritySet without = UnmarkedOf(settings);
  if (without.empty()) return;
  report.Find(
      "ecn-off", "PFC is on for " + Priorities(without),
      "ECN is on for " + (settings.ecn->empty() ? "no priority" : Priorities(*settings.ecn) + " only"));
}

void MarksInGoodTime(const Subject& subject, Report& report) {
  if (!subject.settings.marking) return;
  for (const auto& [priority, marking] : *subject.settings.marking) {
    if (!LeavesNoRoom(marking)) continue;
    if (marking.min_bytes >= marking.max_bytes) {
      report.Find("ecn-thresholds",
                  fmt::format("priority {} is marked from {} bytes on", priority, marking.min_bytes),
                  fmt::format("it is marked in full from {} bytes on", marking.max_bytes));
    } else {
      report.Find("ecn-thresholds",
                  fmt::format("priority {} is marked from {} to {} bytes", priority, marking.min_bytes,
                              marking.max_bytes),
                  "with a probability of 0 %");
    }
  }
}

void FitsRdma(const Subject& subject, Report& report) {
  const auto& mtu = subject.settings.mtu;
  if (!mtu || RdmaMtu(*mtu) == 4096) return;
  report.Find("mtu-small", fmt::format("the MTU is {}", *mtu),
              RdmaMtu(*mtu) == 0 ? "no RDMA packet fits it"
                                 : fmt::format("RDMA packets carry {} bytes there, of 4096", RdmaMtu(*mtu)));
}

void IsItsOwnMaster(const Subject& subject, Report& report) {
  if (subject.settings.dcbx != Dcbx::kFirmware) return;
  report.Find("dcbx-firmware", "DCB is controlled by the NIC's firmware",
              "settings of the host are overwritten");
}

constexpr std::array<SubjectRule, 27> kOfOne{
    TrustsDscp,     MarksRdma,           SendsItsOwnDscp, AgreesWithNccl,         ClaimsNoCongestion,
    ProtectsData,   HasOneLosslessClass, IsWatched,       PausesByClassOnly,      WatchesInTime,
    LetsCnpsPass,   KeepsOthersOut,      KeepsCnpsApart,  MapsAsDeclared,         KeepsStrangersOut,
    HasItsOwnClass, PausesItsOwnQueue,   HasItsOwnBuffer, LeavesByALosslessQueue, SharesAll,
    SendsInTurn,    LeavesOthersATurn,   MarksCnpsOnce,   SlowsSendersDown,       MarksInGoodTime,
    FitsRdma,       IsItsOwnMaster};

}  // namespace

std::span<const SubjectRule> OfOne() {
  return kOfOne;
}

int RdmaMtu(int mtu) {
  // GRH 40, UDP 8, BTH 12, XRC 4, AtomicETH 28, ICRC 4: include/rdma/ib_addr.h, iboe_get_mtu.
  constexpr int kHeaders = 96;
  for (int payload = 4096; payload >= 256; payload /= 2) {
    if (mtu - kHeaders >= payload) return payload;
  }
  return 0;
}

}  // namespace heddle::lossless::rules
