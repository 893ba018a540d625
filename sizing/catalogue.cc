#include "sizing/catalogue.h"

#include <algorithm>
#include <array>

namespace heddle::sizing {
namespace {

using topology::Transport;

constexpr std::string_view kH100Guide = "NVIDIA DGX H100/H200 User Guide, hardware overview";
constexpr std::string_view kH100Pod =
    "NVIDIA RA-11333-001 V11 (DGX SuperPOD H100), network ports and rack layout";
constexpr std::string_view kB200Guide = "docs.nvidia.com/dgx/dgxb200-user-guide/introduction-to-dgxb200.html";
constexpr std::string_view kB300Pod =
    "docs.nvidia.com/dgx-superpod/reference-architecture/scalable-infrastructure-b300-xdr: ConnectX-8, four "
    "nodes "
    "in about 56 kW";
constexpr std::string_view kGb200Guide = "docs.nvidia.com/dgx/dgxgb200-user-guide/hardware.html";
constexpr std::string_view kGb200Pod =
    "docs.nvidia.com/dgx-superpod/reference-architecture-scalable-infrastructure-gb200: 1.2 MW for 8 racks";
constexpr std::string_view kA100Pod = "NVIDIA RA-09950-001 (DGX SuperPOD A100)";
constexpr std::string_view kAmdReference =
    "instinct.docs.amd.com/projects/MI3XX-reference: eight 400 Gb/s NICs, 2 x 100 Gb/s for storage";
constexpr std::string_view kAmdPower =
    "eight GPUs of 750 W (AMD Instinct MI300X data sheet) and as much again as a DGX H100 takes beside its "
    "GPUs";

constexpr std::array kA100 = std::to_array<Source>({{"gpus", kA100Pod},
                                                    {"nics", kA100Pod},
                                                    {"nicGbps", kA100Pod},
                                                    {"storagePorts", kA100Pod},
                                                    {"managementPorts", kA100Pod},
                                                    {"watts", "NVIDIA DGX A100 User Guide, power: 6.5 kW"}});
constexpr std::array kH100 =
    std::to_array<Source>({{"gpus", kH100Guide},
                           {"nics", kH100Guide},
                           {"nicGbps", kH100Guide},
                           {"storagePorts", kH100Pod},
                           {"managementPorts", kH100Pod},
                           {"watts", "NVIDIA DGX H100/H200 User Guide, power: 10.2 kW"}});
constexpr std::array kB200 = std::to_array<Source>({{"gpus", kB200Guide},
                                                    {"nics", kB200Guide},
                                                    {"nicGbps", kB200Guide},
                                                    {"storagePorts", kB200Guide},
                                                    {"managementPorts", kB200Guide},
                                                    {"watts", kB200Guide}});
constexpr std::array kB300 = std::to_array<Source>({{"gpus", kB300Pod},
                                                    {"nics", kB300Pod},
                                                    {"nicGbps", kB300Pod},
                                                    {"storagePorts", kB300Pod},
                                                    {"managementPorts", kB300Pod},
                                                    {"watts", kB300Pod}});
constexpr std::array kGb200 = std::to_array<Source>({{"gpus", kGb200Guide},
                                                     {"nics", kGb200Guide},
                                                     {"nicGbps", kGb200Guide},
                                                     {"domainNodes", kGb200Guide},
                                                     {"storagePorts", kGb200Guide},
                                                     {"managementPorts", kGb200Guide},
                                                     {"watts", kGb200Pod}});
constexpr std::array kMi300x = std::to_array<Source>({{"gpus", kAmdReference},
                                                      {"nics", kAmdReference},
                                                      {"nicGbps", kAmdReference},
                                                      {"storagePorts", kAmdReference},
                                                      {"managementPorts", kAmdReference},
                                                      {"watts", kAmdPower}});

const std::array<MachineType, 7>& MachineTable() {
  static const std::array<MachineType, 7> kTable = {{
      {"a100", "DGX or HGX A100", 8, 8, 200, 1, 2, 200, 3, 6500, true, 0, kA100},
      {"b200", "DGX or HGX B200", 8, 8, 400, 1, 2, 400, 3, 14300, true, 0, kB200},
      {"b300", "DGX or HGX B300", 8, 8, 800, 1, 2, 400, 3, 14000, true, 0, kB300},
      {"gb200", "GB200 NVL72", 4, 4, 400, 18, 2, 200, 2, 8330, true, 18, kGb200},
      {"h100", "DGX or HGX H100", 8, 8, 400, 1, 2, 400, 3, 10200, true, 0, kH100},
      {"h200", "DGX or HGX H200", 8, 8, 400, 1, 2, 400, 3, 10200, true, 0, kH100},
      {"mi300x", "MI300X platform", 8, 8, 400, 1, 2, 100, 3, 10600, false, 0, kMi300x},
  }};
  return kTable;
}

// Ports of a twin-port cage count singly, as the reference architectures count them.
const std::array<SwitchType, 6>& SwitchTable() {
  static const std::array<SwitchType, 6> kTable = {{
      {"qm8790", "QM8790 (Quantum)", Transport::kInfiniBand, 40, 200, 80,
       "NVIDIA QM8700/QM8790 HDR data sheet: 40 ports of 200 Gb/s, 80 of 100"},
      {"qm9700", "QM9700 (Quantum-2)", Transport::kInfiniBand, 64, 400, 128,
       "NVIDIA QM9700/QM9790 user manual: 64 ports of 400 Gb/s in 32 OSFP cages, 128 of 200"},
      {"q3400", "Q3400 (Quantum-X800)", Transport::kInfiniBand, 144, 800, 144,
       "NVIDIA Quantum-X800 Q3400-RA data sheet: 144 ports of 800 Gb/s in 72 cages"},
      {"tomahawk4", "Tomahawk 4, 25.6 Tb/s", Transport::kRoce, 64, 400, 256,
       "Broadcom BCM56990; MegaScale (arXiv 2402.15627) section 3.6: 64 ports of 400 Gb/s"},
      {"sn5600", "SN5600 (Spectrum-4)", Transport::kRoce, 64, 800, 256,
       "NVIDIA SN5000 user manual: 64 ports of 800 Gb/s, 128 of 400, 256 of 100 or 200"},
      {"tomahawk5", "Tomahawk 5, 51.2 Tb/s", Transport::kRoce, 64, 800, 256,
       "Broadcom BCM78900: 64 ports of 800 Gb/s, 128 of 400, 256 of 200"},
  }};
  return kTable;
}

constexpr std::string_view kLinkX =
    "docs.nvidia.com/networking/display/400g100gpam4ovpub/linkx-100g-pam4-product-line-overview";
constexpr std::string_view kLinkXSingle =
    "docs.nvidia.com/networking/display/intrcnctcabreqndr400eth: MPO single mode to 500 m, LC (FR4) to 2 km";

// Ends of a twin-port transceiver take half of its watts each.
const std::array<CableType, 12>& CableTable() {
  static const std::array<CableType, 12> kTable = {{
      {Medium::kDac, 200, 2, 0, 0.1, "docs.nvidia.com/networking/display/MCP7Y60HXXX400pub: 1, 1.5 and 2 m"},
      {Medium::kAoc, 200, 100, 4, 5, "IEEE 802.3cd 200GBASE-SR4: 100 m of OM4, as active cables have it"},
      {Medium::kSingleMode, 200, 500, 5, 7, "IEEE 802.3bs 200GBASE-DR4: 500 m"},
      {Medium::kLongReach, 200, 2000, 6, 8, "IEEE 802.3bs 200GBASE-FR4: 2 km"},
      {Medium::kDac, 400, 3, 0, 0.1, kLinkX},
      {Medium::kAec, 400, 5, 0.6, 1.5, kLinkX},
      {Medium::kMultimode, 400, 50, 8.5, 9, kLinkX},
      {Medium::kSingleMode, 400, 500, 8.5, 9, kLinkXSingle},
      {Medium::kLongReach, 400, 2000, 8.5, 10, kLinkXSingle},
      {Medium::kDac, 800, 1, 0, 0.1, "IEEE P802.3dj 800GBASE-CR4: 1 m"},
      {Medium::kSingleMode, 800, 500, 12, 17, "IEEE P802.3dj 800GBASE-DR4: 500 m"},
      {Medium::kLongReach, 800, 2000, 13, 18, "IEEE P802.3dj 800GBASE-FR4: 2 km"},
  }};
  return kTable;
}

const std::array<StorageGuide, 3>& GuideTable() {
  static const std::array<StorageGuide, 3> kTable = {{{"good", 4, 15}, {"better", 8, 40}, {"best", 40, 125}}};
  return kTable;
}

template <class Table>
auto Find(const Table& table, std::string_view word) -> decltype(table.data()) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const auto& one) { return one.word == word; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

const std::string_view kStorageSource =
    "NVIDIA RA-11333-001 V11 (DGX SuperPOD H100), table 6: reads of one node and of a unit of 32; storage at "
    "1:1, nodes "
    "near 4:3";

std::span<const MachineType> Machines() {
  return MachineTable();
}

const MachineType* FindMachineType(std::string_view word) {
  return Find(MachineTable(), word);
}

std::string MachineTypeWords() {
  std::string words;
  for (const MachineType& one : MachineTable()) (words += words.empty() ? "" : ", ") += one.word;
  return words;
}

int SwitchType::PortsAt(int link_gbps) const {
  if (link_gbps < 1 || link_gbps > port_gbps) return 0;
  return std::min(most_ports, ports * (port_gbps / link_gbps));
}

std::span<const SwitchType> Switches() {
  return SwitchTable();
}

const SwitchType* FindSwitchType(std::string_view word) {
  return Find(SwitchTable(), word);
}

std::string SwitchTypeWords(Transport transport) {
  std::string words;
  for (const SwitchType& one : SwitchTable()) {
    if (one.transport == transport) (words += words.empty() ? "" : ", ") += one.word;
  }
  return words;
}

const SwitchType* UsualSwitch(Transport transport, int link_gbps) {
  // Ethernet of these years is bought as 51.2 Tb/s whatever the rate; InfiniBand has one generation for each.
  if (transport == Transport::kRoce) return link_gbps <= 800 ? FindSwitchType("sn5600") : nullptr;
  for (const SwitchType& one : SwitchTable()) {
    if (one.transport == transport && one.PortsAt(link_gbps) > 0) return &one;
  }
  return nullptr;
}

std::string_view MediumWord(Medium medium) {
  constexpr std::array<std::string_view, kMediums> kWords{"dac",       "aec",        "aoc",
                                                          "multimode", "singlemode", "longreach"};
  return kWords[std::size_t(medium)];
}

std::string_view MediumTitle(Medium medium) {
  constexpr std::array<std::string_view, kMediums> kTitles{
      "passive copper (DAC)",    "active copper (AEC)",       "active optical (AOC)",
      "multimode, transceivers", "single mode, transceivers", "single mode, 2 km (FR4)"};
  return kTitles[std::size_t(medium)];
}

bool IsOptical(Medium medium) {
  return medium != Medium::kDac && medium != Medium::kAec;
}

bool HasTransceivers(Medium medium) {
  return IsOptical(medium) && medium != Medium::kAoc;
}

std::span<const CableType> Cables() {
  return CableTable();
}

int RateClass(int link_gbps) {
  for (const int rate : {200, 400, 800}) {
    if (link_gbps <= rate) return rate;
  }
  return 0;
}

const CableType* CableFor(int link_gbps, int metres) {
  for (const CableType& one : Cables()) {
    if (one.link_gbps == RateClass(link_gbps) && metres <= one.metres) return &one;
  }
  return nullptr;
}

int LongestReach(int link_gbps) {
  int longest = 0;
  for (const CableType& one : Cables()) {
    if (one.link_gbps == RateClass(link_gbps)) longest = std::max(longest, one.metres);
  }
  return longest;
}

std::span<const StorageGuide> StorageGuides() {
  return GuideTable();
}

const StorageGuide* FindStorageGuide(std::string_view word) {
  return Find(GuideTable(), word);
}

}  // namespace heddle::sizing
