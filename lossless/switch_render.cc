#include "lossless/switch_render.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace heddle::lossless {
namespace {

constexpr std::string_view kTemplate =
    "sonic-buildimage qos_config.j2: lossless classes have a priority group of their number, all others "
    "share one";
constexpr int kEthernetHeader = 14 + 4 + 4;  // addresses and type, VLAN tag, checksum: IEEE 802.3 and 802.1Q

// Takes settings with their sources, and gaps with their reasons.
class Rendered {
 public:
  Rendered(const ResolvedPolicy& policy, const SwitchProfile& profile) : policy_(policy), profile_(profile) {}

  void Source(Setting setting, std::string source) {
    rendering_.sources.push_back({setting, std::move(source)});
  }
  void Gap(Setting setting, std::string reason) { rendering_.gaps.push_back({setting, std::move(reason)}); }
  // "the policy", or what the host's profile says, for a field of the policy.
  std::string OfPolicy(std::string_view field) const {
    for (const Provenance& provenance : policy_.provenance) {
      if (provenance.field == field) return provenance.source;
    }
    return "the policy";
  }
  std::string OfProfile(std::string_view value) const {
    for (const ProfileValue& source : profile_.sources) {
      if (source.field == value) return profile_.name + ": " + std::string(source.source);
    }
    return profile_.name;
  }
  const Policy& policy() const { return policy_.policy; }
  const SwitchProfile& profile() const { return profile_; }
  PortSettings& settings() { return rendering_.settings; }
  SwitchRendering Take() && {
    const auto by_setting = [](const auto& a, const auto& b) { return a.setting < b.setting; };
    std::stable_sort(rendering_.sources.begin(), rendering_.sources.end(), by_setting);
    std::stable_sort(rendering_.gaps.begin(), rendering_.gaps.end(), by_setting);
    return std::move(rendering_);
  }
  SwitchRendering& rendering() { return rendering_; }

 private:
  const ResolvedPolicy& policy_;
  const SwitchProfile& profile_;
  SwitchRendering rendering_;
};

// By the VLAN tag there is nothing to render: routed RoCE has none.
bool PutClassification(Rendered& out) {
  const Policy& policy = out.policy();
  out.settings().trust = policy.trust;
  out.Source(Setting::kTrust, out.OfPolicy("trust"));
  if (policy.trust != Trust::kDscp) {
    out.Gap(Setting::kDscpToPriority,
            "the policy trusts the VLAN tag, which routed RoCE packets do not have: set trust to DSCP");
    return false;
  }
  out.settings().dscp_to_priority = DscpsOf(policy);
  out.Source(Setting::kDscpToPriority,
             fmt::format("rdma.dscp {} ({}), cnp.dscp {} ({}){}; every other DSCP has priority 0",
                         *policy.rdma_dscp, out.OfPolicy("rdma.dscp"), *policy.cnp_dscp,
                         out.OfPolicy("cnp.dscp"), policy.classes.empty() ? "" : ", classes of the policy"));
  return true;
}

// Lossy packets share one group that is none of the lossless ones.
void PutGroups(Rendered& out) {
  const PrioritySet& lossless = *out.policy().pfc;
  int shared = 0;
  while (lossless.Contains(shared)) ++shared;
  PriorityTable groups;
  for (int priority = 0; priority < kPriorities; ++priority)
    groups[std::size_t(priority)] =
        std::int8_t(lossless.Contains(priority) ? priority : shared % kPriorities);
  out.settings().priority_to_group = groups;
  out.Source(Setting::kPriorityToGroup, std::string(kTemplate));
}

// A priority that `ets` names has the queue of its number; the others share queue 0, as traffic classes of hosts.
void PutQueues(Rendered& out) {
  const Policy& policy = out.policy();
  PriorityTable queues, stopped = Identity();
  queues.fill(0);
  Algorithms algorithms;
  algorithms.fill(Algorithm::kAny);
  Numbers percent;
  percent.fill(kNotSaid);
  bool zero_named = false;
  for (const EtsShare& share : policy.ets) {
    const auto queue = std::size_t(share.priority);
    zero_named = zero_named || share.priority == 0;
    queues[queue] = std::int8_t(share.priority);
    algorithms[queue] = share.algorithm;
    if (share.algorithm == Algorithm::kEts) percent[queue] = share.percent;
  }
  for (int priority = 0; priority < kPriorities; ++priority) {
    const auto at = std::size_t(priority);
    if (policy.pfc->Contains(priority) || policy.ecn->Contains(priority)) stopped[at] = queues[at];
  }
  PortSettings& settings = out.settings();
  settings.priority_to_queue = queues;
  settings.pause_to_queue = stopped;
  settings.class_algorithm = algorithms;
  settings.class_percent = percent;
  out.Source(Setting::kPriorityToQueue,
             "ets: " + out.OfPolicy("ets") + "; what it does not name has queue 0");
  out.Source(Setting::kPauseToQueue, "the queue that the priority waits in");
  out.Source(Setting::kClassAlgorithm, "ets: " + out.OfPolicy("ets"));
  out.Source(Setting::kClassPercent, "ets: " + out.OfPolicy("ets"));
  if (!zero_named) {
    settings.class_percent.reset();
    out.rendering().sources.pop_back();
    out.Gap(Setting::kClassPercent, "ets names no priority 0, whose queue all other priorities share");
  }
}

void PutPfc(Rendered& out) {
  const PrioritySet& lossless = *out.policy().pfc;
  PortSettings& settings = out.settings();
  settings.pfc = settings.watched = lossless;
  out.Source(Setting::kPfc, "pfcPriorities: " + out.OfPolicy("pfcPriorities"));
  out.Source(Setting::kWatched, "follows pfcPriorities");
  if (lossless.empty()) {
    settings.watchdog_ms = kWatchdogOff;
    out.Source(Setting::kWatchdogMs, "nothing has PFC, so nothing is watched");
  } else if (out.profile().watchdog_ms) {
    settings.watchdog_ms = out.profile().watchdog_ms;
    out.Source(Setting::kWatchdogMs, out.OfProfile("watchdogMs"));
  } else {
    out.Gap(Setting::kWatchdogMs, out.profile().name + " does not say after how long a pause is a storm");
  }
}

// The policy's own thresholds go before the switch's, and these before those of a host's profile.
void PutMarking(Rendered& out) {
  const Policy& policy = out.policy();
  const std::string of_policy = out.OfPolicy("switchMarking");
  const bool declared = policy.marking && of_policy == "the policy";
  const auto marking = declared || !out.profile().marking ? policy.marking : out.profile().marking;
  PortSettings& settings = out.settings();
  PrioritySet queues;
  for (const int priority : policy.ecn->Members())
    queues.Insert((*settings.priority_to_queue)[std::size_t(priority)]);
  settings.ecn = PrioritySet{};
  for (int priority = 0; priority < kPriorities; ++priority) {
    if (queues.Contains((*settings.pause_to_queue)[std::size_t(priority)])) settings.ecn->Insert(priority);
  }
  out.Source(Setting::kEcn, "ecnPriorities: " + out.OfPolicy("ecnPriorities"));
  if (!marking && !queues.empty()) {
    settings.ecn.reset();
    out.Gap(Setting::kMarking, "nobody says from where queues mark: set switchMarking in the policy");
    return;
  }
  settings.marking = EcnMarkings{};
  for (const int priority : settings.ecn->Members()) settings.marking->emplace(priority, *marking);
  out.Source(Setting::kMarking, declared || !out.profile().marking ? of_policy : out.OfProfile("marking"));
}

void PutMtu(Rendered& out) {
  const int host = *out.policy().mtu;
  const auto& mtu = out.profile().mtu;
  if (!mtu || *mtu < host) {
    out.Gap(Setting::kMtu,
            mtu ? fmt::format("hosts' MTU of {} is more than the switch takes, {}: lower it", host, *mtu)
                : fmt::format("{} does not say what the switch takes", out.profile().name));
    return;
  }
  out.settings().mtu = mtu;
  out.Source(Setting::kMtu, out.OfProfile("mtu"));
}

std::string WhyNoHeadroom(const SwitchProfile& profile, const SwitchPortFacts& port,
                          const std::optional<int>& metres) {
  if (!profile.asic) return std::string(profile.no_asic);
  if (!port.speed_mbps) return "nobody says how fast the port is";
  if (!metres) return "nobody says how long the cable is";
  return fmt::format("no pause response time is published for {} Mb/s", *port.speed_mbps);
}

void PutHeadroom(Rendered& out, const SwitchPortFacts& port) {
  const bool hosts = port.facing == PortFacing::kHost;
  std::optional<int> metres = port.cable_metres;
  if (metres) {
    out.Source(Setting::kCableMetres, fmt::format("said of this {} port", PortFacingName(port.facing)));
  } else if (hosts && out.policy().cable_metres) {
    metres = out.policy().cable_metres;
    out.Source(Setting::kCableMetres, "cableMetres: " + out.OfPolicy("cableMetres"));
  } else {
    out.Gap(Setting::kCableMetres,
            hosts ? "nobody says how long hosts' cables are: set cableMetres in the policy"
                  : "nobody says how long the cables between switches are");
  }
  out.settings().cable_metres = metres;
  if (out.policy().pfc->empty()) return;  // nothing is paused, so nothing comes after a pause
  const int frame = out.settings().mtu.value_or(*out.policy().mtu) + kEthernetHeader;
  if (out.profile().asic && port.speed_mbps && metres) {
    out.rendering().headroom = HeadroomFor(
        {*port.speed_mbps, *metres, frame, *out.policy().mtu + kEthernetHeader, 100}, *out.profile().asic);
  }
  const auto& headroom = out.rendering().headroom;
  if (!headroom) return out.Gap(Setting::kBufferBytes, WhyNoHeadroom(out.profile(), port, metres));
  out.settings().buffer_bytes.emplace().fill(kNotSaid);
  for (const int priority : out.policy().pfc->Members())
    (*out.settings().buffer_bytes)[std::size_t(priority)] = int(headroom->xoff_bytes);
  out.Source(Setting::kBufferBytes,
             fmt::format("{} m at {} Gb/s with an MTU of {}, by SONiC's published formula; {}", *metres,
                         *port.speed_mbps / 1000, frame - kEthernetHeader, out.OfProfile("headroom")));
}

}  // namespace

std::string_view PortFacingName(PortFacing facing) {
  return facing == PortFacing::kHost ? "host" : "fabric";
}

std::string_view SwitchRendering::SourceOf(Setting setting) const {
  const auto found = std::find_if(sources.begin(), sources.end(),
                                  [setting](const SettingSource& one) { return one.setting == setting; });
  CHECK(found != sources.end());
  return found->source;
}

SwitchRendering RenderSwitchPort(const ResolvedPolicy& policy, const SwitchProfile& profile,
                                 const SwitchPortFacts& port) {
  const Policy& values = policy.policy;
  CHECK(values.trust && values.pfc && values.ecn && values.mtu && values.rdma_dscp && values.cnp_dscp);
  Rendered out(policy, profile);
  PutMtu(out);
  if (PutClassification(out)) {
    PutGroups(out);
    PutQueues(out);
    PutPfc(out);
    PutMarking(out);
    PutHeadroom(out, port);
  }
  return std::move(out).Take();
}

}  // namespace heddle::lossless
