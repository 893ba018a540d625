#include "lossless/switch_profiles.h"

#include <algorithm>

namespace heddle::lossless {
namespace {

constexpr std::string_view kMtu =
    "SONiC's largest (sonic-port.yang, mtu 68 to 9216): hosts' 9000 and the headers of an overlay fit";
// Of switches that run either.
constexpr std::string_view kSpectrumMtu =
    "what Cumulus Linux gives a port by itself (NVIDIA Cumulus Linux 5.x, Switch Port Attributes, MTU), and "
    "SONiC's largest (sonic-port.yang, mtu 68 to 9216): hosts' 9000 and the headers of an overlay fit";
constexpr std::string_view kSonicWatchdog =
    "sonic-utilities pfcwd/main.py, `pfcwd start_default`: 200 ms for up to 32 ports";
constexpr std::string_view kSonicMarking =
    "sonic-buildimage qos_config.j2, WRED_PROFILE AZURE_LOSSLESS: ECN from 1 to 2 MiB, 5 %";
constexpr std::string_view kNvueMarking =
    "NVIDIA Cumulus Linux 5.x, RDMA over Converged Ethernet, `nv show qos roce`: 146.48 KB to 1.43 MB, 100 %";
constexpr std::string_view kNvueWatchdog =
    "NVIDIA Cumulus Linux 5.x, Quality of Service, PFC watchdog: polls every 100 ms and acts after 3";
constexpr std::string_view kSpectrumChip =
    "sonic-net/SONiC doc/qos, ASIC_TABLE of MELLANOX-SPECTRUM-2 and -3: cell 144, MAC and PHY 0.8 KiB, "
    "pipeline 18 "
    "KiB";

constexpr std::string_view kSpectrum4Chip =
    "sonic-net/sonic-buildimage platform/mellanox/asic_table.j2, MELLANOX-SPECTRUM-4 and -5: cell 192, MAC "
    "and PHY 0.8 KiB, pipeline 19 KiB";

SwitchProfile Sonic() {
  SwitchProfile profile;
  profile.name = "sonic/v1";
  profile.mtu = 9216;
  profile.watchdog_ms = 200;
  profile.marking = EcnMarking{1'048'576, 2'097'152, 5};
  profile.sources = {{"mtu", kMtu}, {"watchdogMs", kSonicWatchdog}, {"marking", kSonicMarking}};
  profile.no_asic =
      "nothing is known of its chip: name a profile of it, or let the switch size headroom by CABLE_LENGTH";
  return profile;
}

SwitchProfile Spectrum() {
  SwitchProfile profile;
  profile.name = "spectrum/v1";
  profile.mtu = 9216;
  profile.watchdog_ms = 300;
  // 146.48 KB and 1.43 MB, as bytes.
  profile.marking = EcnMarking{150'000, 1'500'000, 100};
  profile.asic = Asic{144, 819, 18'432};
  profile.sources = {{"mtu", kSpectrumMtu},
                     {"watchdogMs", kNvueWatchdog},
                     {"marking", kNvueMarking},
                     {"headroom", kSpectrumChip}};
  profile.note =
      "its headroom is that of Spectrum-2 and -3; of Spectrum, whose cells are smaller, it is more than it "
      "takes, and of Spectrum-4 and -5 too little: take spectrum4/v1";
  return profile;
}

SwitchProfile Spectrum4() {
  SwitchProfile profile = Spectrum();
  profile.name = "spectrum4/v1";
  profile.asic = Asic{192, 819, 19'456};
  profile.sources.back() = {"headroom", kSpectrum4Chip};
  profile.note = "its headroom is that of Spectrum-4 and -5; Spectrum-6 has larger cells and takes more";
  return profile;
}

SwitchProfile Tomahawk() {
  SwitchProfile profile = Sonic();
  profile.name = "tomahawk/v1";
  profile.no_asic =
      "Broadcom publishes no cell size and no delays of Tomahawk; SONiC ships headroom for each switch model "
      "by speed "
      "and cable (pg_profile_lookup.ini), and takes it from there by CABLE_LENGTH";
  profile.note = "CNPs are on priority 6, or on 7 where the policy's profile is thor2/v1";
  return profile;
}

}  // namespace

std::span<const SwitchProfile> SwitchProfiles() {
  static const std::vector<SwitchProfile> profiles{Sonic(), Spectrum(), Spectrum4(), Tomahawk()};
  return profiles;
}

const SwitchProfile* FindSwitchProfile(std::string_view name) {
  const auto profiles = SwitchProfiles();
  const auto found = std::find_if(profiles.begin(), profiles.end(),
                                  [&](const SwitchProfile& profile) { return profile.name == name; });
  return found == profiles.end() ? nullptr : &*found;
}

std::string SwitchProfileNames() {
  std::string names;
  for (const SwitchProfile& profile : SwitchProfiles()) names += (names.empty() ? "" : ", ") + profile.name;
  return names;
}

}  // namespace heddle::lossless
