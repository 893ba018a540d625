#include "lossless/render.h"

#include <algorithm>

#include "lossless/profiles.h"

namespace heddle::lossless {
namespace {

void PutShares(const Policy& policy, PortSettings& settings) {
  PriorityTable classes;
  classes.fill(0);
  Algorithms algorithms;
  // Of a class that no priority uses nothing is asked.
  algorithms.fill(Algorithm::kAny);
  Numbers percent;
  percent.fill(kNotSaid);
  for (const EtsShare& share : policy.ets) {
    const auto index = std::size_t(share.priority);
    classes[index] = std::int8_t(share.priority);
    algorithms[index] = share.algorithm;
    if (share.algorithm == Algorithm::kEts) percent[index] = share.percent;
  }
  settings.priority_to_class = classes;
  settings.class_algorithm = algorithms;
  settings.class_percent = percent;
}

}  // namespace

DscpMap DscpsOf(const Policy& policy) {
  DscpMap map = AllDscps(0);
  const auto put = [&map](int dscp, int priority) { map[std::size_t(dscp)] = std::int8_t(priority); };
  for (const OtherClass& other : policy.classes) {
    for (const int dscp : other.dscps) put(dscp, other.priority);
  }
  put(*policy.cnp_dscp, *policy.cnp_priority);
  put(*policy.rdma_dscp, *policy.rdma_priority);
  return map;
}

std::string NotApplicable(topology::Transport transport) {
  switch (transport) {
    case topology::Transport::kInfiniBand:
      return "InfiniBand is lossless by link credits: it has no PFC and no DSCP, and its service levels are "
             "the subnet manager's";
    case topology::Transport::kEfa:
      return "EFA's SRD brings its own congestion control: a host has no PFC, ECN or traffic class to set";
    case topology::Transport::kEthernet:
      return "no RDMA device is on this port: nothing it sends belongs to the lossless class";
    case topology::Transport::kRoce:
      break;
  }
  return "";
}

Rendering Render(const ResolvedPolicy& resolved, const PortFacts& port) {
  Rendering rendering;
  rendering.reason = NotApplicable(port.transport);
  if (!rendering.reason.empty()) return rendering;
  const Profile* profile = FindProfile(resolved.profile);
  if (profile != nullptr && !profile->devices.empty() && !port.device.empty() &&
      std::find(profile->devices.begin(), profile->devices.end(), port.device) == profile->devices.end()) {
    rendering.reason = "profile " + resolved.profile + " is not for a NIC of PCI id " + port.device +
                       ": name another profile, or generic/v1";
    return rendering;
  }
  const Policy& policy = resolved.policy;
  PortSettings settings;
  settings.dcbx = Dcbx::kHost;
  settings.trust = policy.trust;
  settings.dscp_to_priority = DscpsOf(policy);
  settings.pfc = policy.pfc;
  settings.watchdog_ms = policy.watchdog_ms;
  if (!policy.watchdog_ms && !resolved.no_watchdog.empty()) {
    rendering.gaps.push_back({Setting::kWatchdogMs, resolved.no_watchdog});
  }
  settings.cable_metres = policy.cable_metres;
  PutShares(policy, settings);
  settings.priority_to_buffer = policy.priority_to_buffer;
  settings.buffer_bytes = policy.buffer_bytes;
  settings.mtu = policy.mtu;
  settings.ecn = policy.ecn;
  settings.cnp_dscp = policy.cnp_dscp;
  settings.cnp_priority = policy.cnp_priority;
  settings.tos = policy.tos;
  settings.traffic_class = policy.traffic_class;
  settings.dcqcn = policy.dcqcn;
  rendering.settings = std::move(settings);
  return rendering;
}

}  // namespace heddle::lossless
