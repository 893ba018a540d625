#include "lossless/profiles.h"

#include <algorithm>

namespace heddle::lossless {
namespace {

constexpr std::string_view kNvue =
    "NVIDIA Cumulus Linux 5.x, RDMA over Converged Ethernet: the table of `nv set qos roce` (lossless mode)";
constexpr std::string_view kRdmaMtu =
    "common practice, no vendor's rule: RDMA packets of 4096 bytes need 4192 (include/rdma/ib_addr.h, "
    "iboe_get_mtu), and 9000 is below what switches take (SONiC's default is 9100)";
constexpr std::string_view kMlx5Watchdog =
    "Linux mlx5 en_ethtool.c, pfc-prevention-tout: auto is 100 ms, else 80 to 8000 ms";
constexpr std::string_view kSonicMarking =
    "sonic-buildimage qos_config.j2, WRED_PROFILE AZURE_LOSSLESS: ECN from 1 to 2 MiB, 5 %";
constexpr std::string_view kThor2 =
    "Juniper JVD AI data center with AMD, BCM57608 Thor2: DSCP 26 on priority 3, CNP DSCP 48 on priority 7";

// The values that all profiles share; a profile overrides what its NIC's maker says otherwise.
Profile Base(std::string name) {
  Profile profile;
  profile.name = std::move(name);
  Policy& values = profile.values;
  values.trust = Trust::kDscp;
  values.rdma_dscp = 26;
  values.rdma_priority = 3;
  values.cnp_dscp = 48;
  values.cnp_priority = 6;
  values.rdma_percent = 50;
  values.mtu = 9000;
  values.watchdog_ms = kWatchdogAuto;
  values.marking = EcnMarking{1'048'576, 2'097'152, 5};
  profile.sources = {{"trust", kNvue},    {"rdma.dscp", kNvue},        {"rdma.priority", kNvue},
                     {"cnp.dscp", kNvue}, {"cnp.priority", kNvue},     {"rdma.percent", kNvue},
                     {"mtu", kRdmaMtu},   {"watchdog", kMlx5Watchdog}, {"switchMarking", kSonicMarking}};
  return profile;
}

Profile Mlx5(std::string name, std::vector<std::string_view> devices, std::string_view note) {
  Profile profile = Base(std::move(name));
  profile.devices = std::move(devices);
  profile.note = note;
  return profile;
}

Profile Thor2() {
  Profile profile = Base("thor2/v1");
  profile.devices = {"14e4:1760"};
  profile.values.cnp_priority = 7;
  profile.values.watchdog_ms.reset();
  // bnxt_ethtool.c. Michael Chan sent patches for it to netdev in September 2025, for NICs whose firmware has it.
  profile.no_watchdog =
      "Linux's bnxt_en has no pfc-prevention-tout up to 6.17: only the switch's watchdog ends a pause storm "
      "of this NIC";
  std::erase_if(profile.sources, [](const ProfileValue& value) { return value.field == "watchdog"; });
  for (ProfileValue& value : profile.sources) {
    if (value.field.starts_with("rdma.") || value.field.starts_with("cnp.")) value.source = kThor2;
    if (value.field == "rdma.percent") value.source = kNvue;
  }
  profile.note = "bnxt_en takes the queue of RDMA from the DCB APP entry for RoCE beside the DSCP map";
  return profile;
}

std::vector<Profile> MakeProfiles() {
  constexpr std::string_view kBounce = "a change of PFC bounces the link (Linux mlx5 en_dcbnl.c)";
  return {Mlx5("bluefield-3/v1", {"15b3:a2dc"},
               "in DPU mode the settings are those of the card's own OS, not of the host"),
          Mlx5("connectx-6/v1", {"15b3:101b", "15b3:101d"}, kBounce),
          Mlx5("connectx-7/v1", {"15b3:1021"}, kBounce),
          Mlx5("connectx-8/v1", {"15b3:1023"}, "ports that carry data may be 3, 6, 9 and 12"),
          Base("generic/v1"),
          Thor2()};
}

}  // namespace

std::span<const Profile> Profiles() {
  static const std::vector<Profile> profiles = MakeProfiles();
  return profiles;
}

const Profile* FindProfile(std::string_view name) {
  const auto profiles = Profiles();
  const auto found = std::find_if(profiles.begin(), profiles.end(),
                                  [&](const Profile& profile) { return profile.name == name; });
  return found == profiles.end() ? nullptr : &*found;
}

const Profile* ProfileOfDevice(std::string_view device) {
  const auto profiles = Profiles();
  const auto found = std::find_if(profiles.begin(), profiles.end(), [&](const Profile& profile) {
    return std::find(profile.devices.begin(), profile.devices.end(), device) != profile.devices.end();
  });
  return found == profiles.end() ? nullptr : &*found;
}

std::string ProfileNames() {
  std::string names;
  for (const Profile& profile : Profiles()) names += (names.empty() ? "" : ", ") + profile.name;
  return names;
}

}  // namespace heddle::lossless
