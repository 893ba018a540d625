#include "formats/nvue.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/printable.h"

namespace heddle::formats {
namespace {

using lossless::Algorithm;
using lossless::kNotSaid;
using lossless::kPriorities;
using lossless::PortSettings;
using lossless::Setting;

// Ports with the same settings.
struct Group {
  std::string ports;    // "swp1,swp2"
  std::string profile;  // "heddle-roce"
  const lossless::SwitchRendering* rendering = nullptr;
};

class Lines {
 public:
  void Comment(std::string_view text) { text_ += fmt::format("# {}\n", Printable(text, 400)); }
  template <class... Args>
  void Set(fmt::format_string<Args...> format, Args&&... args) {
    text_ += "nv set " + fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  void Blank() { text_ += "\n"; }
  std::string Take() && { return std::move(text_); }

 private:
  std::string text_;
};

// Stands above each block of lines; no setting of a rendering lacks its source.
void Because(Lines& lines, const Group& group, Setting setting, std::string_view what) {
  lines.Comment(fmt::format("{} ({})", what, group.rendering->SourceOf(setting)));
}

bool Watches(const PortSettings& settings) {
  return settings.watchdog_ms && *settings.watchdog_ms != lossless::kWatchdogOff;
}

void PutMapping(Lines& lines, const Group& group) {
  const PortSettings& settings = group.rendering->settings;
  Because(lines, group, Setting::kTrust, "the DSCP decides, since routed RoCE has no VLAN tag");
  lines.Set("qos mapping {} trust l3", group.profile);
  Because(lines, group, Setting::kDscpToPriority, "which DSCP gets which switch priority");
  for (int priority = 0; priority < kPriorities; ++priority) {
    const std::string dscps = lossless::DscpRanges(*settings.dscp_to_priority, priority);
    if (!dscps.empty())
      lines.Set("qos mapping {} dscp {} switch-priority {}", group.profile, dscps, priority);
  }
  lines.Set("interface {} qos mapping profile {}", group.ports, group.profile);
}

void PutPfc(Lines& lines, const Group& group) {
  const PortSettings& settings = group.rendering->settings;
  Because(lines, group, Setting::kPfc, "what is paused instead of dropped");
  if (settings.pfc->empty()) return lines.Comment("nothing is: take any PFC profile off these ports");
  std::string priorities;
  for (const int priority : settings.pfc->Members())
    priorities += (priorities.empty() ? "" : ",") + std::to_string(priority);
  lines.Set("qos pfc {} switch-priority {}", group.profile, priorities);
  lines.Set("qos pfc {} tx enable", group.profile);
  lines.Set("qos pfc {} rx enable", group.profile);
  if (settings.cable_metres) {
    Because(lines, group, Setting::kCableMetres, "the switch sizes headroom by it");
    lines.Set("qos pfc {} cable-length {}", group.profile, std::max(*settings.cable_metres, 1));
  }
  lines.Set("interface {} qos pfc profile {}", group.ports, group.profile);
  if (settings.buffer_bytes)
    lines.Comment(
        "bufferBytes: left to cable-length; NVIDIA advises against port-buffer and thresholds by hand");
}

void PutShares(Lines& lines, const Group& group) {
  const PortSettings& settings = group.rendering->settings;
  if (!settings.class_algorithm || !settings.class_percent) return;
  Because(lines, group, Setting::kClassPercent, "how classes share the port");
  for (int queue = 0; queue < kPriorities; ++queue) {
    const auto at = std::size_t(queue);
    if ((*settings.class_algorithm)[at] == Algorithm::kStrict) {
      lines.Set("qos egress-scheduler {} traffic-class {} mode strict", group.profile, queue);
    } else if ((*settings.class_algorithm)[at] == Algorithm::kEts &&
               (*settings.class_percent)[at] != kNotSaid) {
      if ((*settings.class_percent)[at] < 1) {
        lines.Comment(
            fmt::format("traffic-class {}: no share is left for it, and NVUE's are 1 to 100", queue));
        continue;
      }
      lines.Set("qos egress-scheduler {} traffic-class {} mode dwrr", group.profile, queue);
      lines.Set("qos egress-scheduler {} traffic-class {} bw-percent {}", group.profile, queue,
                (*settings.class_percent)[at]);
    }
  }
  lines.Set("interface {} qos egress-scheduler profile {}", group.ports, group.profile);
}

void PutMarking(Lines& lines, const Group& group) {
  const PortSettings& settings = group.rendering->settings;
  if (!settings.marking || settings.marking->empty()) return;
  Because(lines, group, Setting::kMarking, "from where packets are marked");
  for (const auto& [priority, marking] : *settings.marking) {
    const int queue = (*settings.pause_to_queue)[std::size_t(priority)];
    const std::string head = fmt::format("qos congestion-control {} traffic-class {}", group.profile, queue);
    lines.Set("{} ecn enable", head);
    lines.Set("{} red disable", head);
    lines.Set("{} min-threshold {}", head, marking.min_bytes);
    lines.Set("{} max-threshold {}", head, marking.max_bytes);
    lines.Set("{} probability {}", head, marking.probability_percent);
  }
  lines.Set("interface {} qos congestion-control profile {}", group.ports, group.profile);
}

void PutGroup(Lines& lines, const Group& group) {
  const PortSettings& settings = group.rendering->settings;
  lines.Blank();
  lines.Comment(group.ports);
  if (settings.dscp_to_priority) PutMapping(lines, group);
  if (settings.pfc) PutPfc(lines, group);
  PutShares(lines, group);
  PutMarking(lines, group);
  if (settings.mtu) {
    Because(lines, group, Setting::kMtu, "hosts' packets fit");
    lines.Set("interface {} link mtu {}", group.ports, *settings.mtu);
  }
  if (Watches(settings)) {
    Because(lines, group, Setting::kWatched, "a port that is paused for ever stops no fabric");
    lines.Set("interface {} qos pfc-watchdog state enable", group.ports);
  }
  for (const lossless::Gap& gap : group.rendering->gaps) {
    if (gap.setting == Setting::kBufferBytes) continue;  // by cable-length the switch sizes it itself
    lines.Comment(fmt::format("{}: left as it is: {}", lossless::SettingName(gap.setting), gap.reason));
  }
}

// Some things are the whole switch's in NVUE.
void PutGlobal(Lines& lines, const Group& group) {
  const PortSettings& settings = group.rendering->settings;
  lines.Blank();
  if (settings.priority_to_queue) {
    Because(lines, group, Setting::kPriorityToQueue,
            "for ALL ports of the switch: NVUE has one table of switch priorities and traffic classes");
    for (int priority = 0; priority < kPriorities; ++priority) {
      lines.Set("qos egress-queue-mapping default-global switch-priority {} traffic-class {}", priority,
                int((*settings.priority_to_queue)[std::size_t(priority)]));
    }
  }
  if (Watches(settings)) {
    // It takes 100 to 5000 ms, and 1 to 1000 polls.
    constexpr int kPollMs = 100;
    lines.Comment(
        "for ALL ports: how often it looks, as Cumulus does by itself (NVIDIA Cumulus Linux 5.x, Quality of "
        "Service, PFC watchdog)");
    lines.Set("qos pfc-watchdog polling-interval {}", kPollMs);
    Because(lines, group, Setting::kWatchdogMs, "for ALL ports: a pause of so many polls is a storm");
    lines.Set("qos pfc-watchdog robustness {}", std::max(1, (*settings.watchdog_ms + kPollMs - 1) / kPollMs));
  }
  lines.Comment(
      "priorityToGroup, pauseToQueue: NVUE has no command; they follow the switch priority and its class");
}

}  // namespace

std::string NvueLines(std::string_view policy, const std::vector<NvueWish>& wishes) {
  std::string base = "heddle-";
  for (const char c : policy.substr(0, 40))
    base += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
  std::vector<Group> groups;
  for (const NvueWish& wish : wishes) {
    const auto found = std::find_if(groups.begin(), groups.end(),
                                    [&](const Group& group) { return *group.rendering == wish.rendering; });
    if (found != groups.end()) {
      found->ports += "," + Printable(wish.port, 40);
      continue;
    }
    groups.push_back({Printable(wish.port, 40),
                      groups.empty() ? base : fmt::format("{}-{}", base, groups.size() + 1),
                      &wish.rendering});
  }
  Lines lines;
  lines.Comment(fmt::format("LosslessPolicy {}: for `nv config diff` and `nv config apply` by hand", policy));
  lines.Comment(
      "`nv set qos roce` sets the table that NVIDIA publishes by itself; do not mix it with these lines");
  for (const Group& group : groups) PutGroup(lines, group);
  if (!groups.empty()) PutGlobal(lines, groups.front());
  return std::move(lines).Take();
}

}  // namespace heddle::formats
