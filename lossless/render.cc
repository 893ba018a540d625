#include "lossless/render.h"

#include <algorithm>
#include <array>

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

// Drivers of RDMA NICs that cannot be told what no port is lossless without. By Linux's sources, drivers/net/ethernet/:
//   ice        intel/ice/ice_dcb_nl.c: ice_dcbnl_setapp closes and opens the interface for each DSCP and refuses one
//              that is mapped; ice_dcbnl_setets keeps the map of priorities to classes while DSCPs are trusted
//   idpf       intel/idpf: no dcbnl_ops (irdma's third generation sits on it)
//   ionic      pensando/ionic: no dcbnl_ops; nor in infiniband/hw/ionic
//   mana       microsoft/mana: no dcbnl_ops
//   mlx4_core  mellanox/mlx4/en_dcb_nl.c: dcbnl_ops without ieee_setapp, so the kernel keeps DSCPs to itself
struct DriverLimit {
  std::string_view driver;
  std::string_view why;
};
constexpr std::array<DriverLimit, 5> kDriverLimits{
    {{"ice",
      "Linux's ice takes its link down for each of 64 DSCPs, and keeps a map of priorities to classes of its "
      "own"},
     {"idpf", "Linux's idpf takes no DCB settings: they are those of the card's own OS"},
     {"ionic", "Linux's ionic takes no DCB settings: set PFC and DSCPs with its maker's tool"},
     {"mana", "Linux's mana takes no DCB settings: they are its cloud's"},
     {"mlx4_core", "Linux's mlx4_en picks priorities by the VLAN tag only, and cannot trust DSCP"}}};
constexpr std::string_view kMlx5 = "mlx5_core";

std::string WhyRefused(const ResolvedPolicy& resolved, const PortFacts& port) {
  const Profile* profile = FindProfile(resolved.profile);
  if (profile != nullptr && !profile->devices.empty() && !port.device.empty() &&
      std::find(profile->devices.begin(), profile->devices.end(), port.device) == profile->devices.end()) {
    const Profile* own = ProfileOfDevice(port.device);
    return "profile " + resolved.profile + " is not for a NIC of PCI id " + port.device + ": name " +
           (own == nullptr ? std::string("another profile") : own->name) +
           ", or generic/v1, in a policy of its own";
  }
  const auto limit = std::find_if(kDriverLimits.begin(), kDriverLimits.end(),
                                  [&](const DriverLimit& one) { return one.driver == port.driver; });
  return limit == kDriverLimits.end() ? std::string()
                                      : std::string(limit->why) + ", or leave this NIC out of the policy";
}

// What was asked for and this NIC does not have, but is lossless without.
std::vector<Gap> GapsOf(const ResolvedPolicy& resolved, const PortFacts& port) {
  const Policy& policy = resolved.policy;
  const Profile* own = ProfileOfDevice(port.device);
  const bool mlx5 = port.driver.empty() || port.driver == kMlx5;
  std::vector<Gap> gaps;
  const bool paused = policy.pfc && !policy.pfc->empty();
  if (!policy.watchdog_ms && !resolved.no_watchdog.empty()) {
    gaps.push_back({Setting::kWatchdogMs, resolved.no_watchdog});
  } else if (paused && own != nullptr && !own->no_watchdog.empty()) {
    gaps.push_back({Setting::kWatchdogMs, std::string(own->no_watchdog)});
  } else if (paused && !mlx5) {
    gaps.push_back({Setting::kWatchdogMs, "Linux's " + port.driver +
                                              " has no pfc-prevention-tout up to 6.17: only the switch's "
                                              "watchdog ends a pause storm of this NIC"});
  }
  if (policy.cable_metres && !mlx5)
    gaps.push_back({Setting::kCableMetres, "only mlx5 sizes its buffers by the length of the cable"});
  if (policy.dcqcn && !mlx5)
    gaps.push_back(
        {Setting::kDcqcn, "these are parameters of mlx5, and " + port.driver + " has none of them"});
  return gaps;
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
      return "InfiniBand is lossless by link credits: it has no PFC and no DSCP. Service levels, adaptive "
             "routing and congestion control are set in the subnet manager (opensm.conf: qos_sl2vl, "
             "routing_engine ar_updn, congestion_control; or UFM). Which of these NCCL uses is infiniBand of "
             "a LosslessPolicy: serviceLevel, adaptiveRouting";
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
  if (port.transport == topology::Transport::kInfiniBand) rendering.infiniband = resolved.policy.infiniband;
  if (!rendering.reason.empty()) return rendering;
  rendering.reason = WhyRefused(resolved, port);
  rendering.refused = !rendering.reason.empty();
  if (rendering.refused) return rendering;
  const Policy& policy = resolved.policy;
  PortSettings settings;
  settings.dcbx = Dcbx::kHost;
  settings.trust = policy.trust;
  // Also where the VLAN tag is trusted: NCCL's priority in that tag is read off it, and no port is held against it
  // (WithWhatFollows).
  settings.dscp_to_priority = DscpsOf(policy);
  settings.pfc = policy.pfc;
  settings.watchdog_ms = policy.watchdog_ms;
  rendering.gaps = GapsOf(resolved, port);
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
