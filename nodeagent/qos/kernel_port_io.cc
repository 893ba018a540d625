#include "nodeagent/qos/kernel_port_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <utility>

#include "formats/printable.h"
#include "formats/scanner.h"
#include "nodeagent/pci/probe.h"
#include "nodeagent/qos/congestion_files.h"
#include "nodeagent/qos/dcb_settings.h"
#include "nodeagent/qos/likely_writer.h"
#include "nodeagent/qos/link_evidence.h"
#include "nodeagent/qos/port_functions.h"
#include "nodeagent/qos/rdma_cm_tos.h"

namespace heddle::nodeagent {
namespace {

using base::Code;
using lossless::Gap;
using lossless::kNotSaid;
using lossless::PortSettings;
using lossless::Setting;

constexpr int kMaxMtu = 65'535;

std::string NetPath(const QosPort& port, std::string_view file) {
  return fmt::format("sys/class/net/{}/{}", port.netdev, file);
}

bool Has(std::span<const Setting> settings, Setting setting) {
  return std::find(settings.begin(), settings.end(), setting) != settings.end();
}

// Those of `settings` that are in `group`.
std::vector<Setting> Among(std::span<const Setting> settings, std::initializer_list<Setting> group) {
  std::vector<Setting> found;
  for (const Setting setting : group) {
    if (Has(settings, setting)) found.push_back(setting);
  }
  return found;
}

// What is to be added once the wrong entries of the same DSCPs are gone. A right one beside a wrong one goes along and
// comes back.
std::vector<DcbApp> TakeMoved(const std::vector<DcbApp>& have, const lossless::DscpMap& want,
                              DscpDifference& difference) {
  const auto wrong = [old = difference.remove](const DcbApp& app) {
    return std::any_of(old.begin(), old.end(),
                       [&app](const DcbApp& other) { return other.protocol == app.protocol; });
  };
  std::vector<DcbApp> moved;
  for (const DcbApp& app : difference.add) {
    if (wrong(app)) moved.push_back(app);
  }
  std::erase_if(difference.add, wrong);
  for (const DcbApp& app : DscpApps(have)) {
    if (!wrong(app) || app.priority != want[std::size_t(app.protocol)]) continue;
    difference.remove.push_back(app);
    moved.push_back(app);
  }
  return moved;
}

constexpr std::array kDcbSettings{Setting::kDcbx,
                                  Setting::kTrust,
                                  Setting::kDscpToPriority,
                                  Setting::kPfc,
                                  Setting::kCableMetres,
                                  Setting::kPriorityToClass,
                                  Setting::kClassAlgorithm,
                                  Setting::kClassPercent,
                                  Setting::kPriorityToBuffer,
                                  Setting::kBufferBytes};

}  // namespace

QosSources LiveQosSources(const std::string& root) {
  QosSources sources;
  sources.files = std::make_unique<SettingFiles>(root);
  sources.dcb = std::make_unique<NetlinkDcb>();
  sources.watchdog = std::make_unique<EthtoolWatchdog>();
  sources.queue_pairs = std::make_unique<NetlinkQueuePairs>(sources.files->files());
  sources.statistics = std::make_unique<LiveEthtool>();
  sources.fec = std::make_unique<EthtoolFec>();
  sources.pause = std::make_unique<EthtoolPause>();
  return sources;
}

bool KernelPortIo::Exists(const QosPort& port) const {
  const auto link = sources_.files->files().List("sys/class/net/" + port.netdev);
  if (!link && link.error().code == Code::kNotFound) return false;
  // Two that swapped their names: what the journal calls so is another NIC now, and was not taken away from pods.
  const auto device = sources_.files->files().ReadLink(NetPath(port, "device"));
  if (!device) return true;
  const std::string place = device->substr(device->find_last_of('/') + 1);
  return !IsPciAddress(place) || !IsPciAddress(port.pci_address) || place == port.pci_address;
}

void KernelPortIo::ReadMtu(const QosPort& port, QosReading& reading) const {
  const auto text = base::ReadTrimmed(sources_.files->files(), NetPath(port, "mtu"));
  const auto mtu = text ? formats::Number<int>(*text) : std::nullopt;
  if (mtu && *mtu > 0) {
    reading.have.mtu = std::min(*mtu, kMaxMtu);
  } else {
    reading.gaps.push_back({Setting::kMtu, text ? "sysfs says no MTU" : text.error().message});
  }
}

std::optional<std::string> KernelPortIo::TrustFile(const QosPort& port) const {
  auto text = base::ReadTrimmed(sources_.files->files(), NetPath(port, "qos/trust"));
  if (!text) return std::nullopt;
  return *std::move(text);
}

QosReading KernelPortIo::Read(const QosPort& port) {
  if (!Exists(port)) return {{}, {}, true};
  QosReading reading;
  if (const auto state = sources_.dcb->Read(port.netdev); state) {
    DcbSettings dcb = SettingsOfDcb(*state, TrustFile(port), port);
    reading.have = std::move(dcb.have);
    reading.gaps = std::move(dcb.gaps);
  } else {
    for (const Setting setting : kDcbSettings) reading.gaps.push_back({setting, state.error().message});
  }
  if (const auto watchdog = sources_.watchdog->Read(port.netdev); watchdog) {
    reading.have.watchdog_ms = *watchdog;
  } else {
    reading.gaps.push_back({Setting::kWatchdogMs, watchdog.error().message});
  }
  if (sources_.pause != nullptr) {
    // A driver that has none pauses by class only, or not at all.
    if (const auto pause = sources_.pause->Read(port.netdev); pause) {
      reading.have.global_pause = *pause;
    } else if (pause.error().code != Code::kUnimplemented) {
      reading.gaps.push_back({Setting::kGlobalPause, pause.error().message});
    }
  }
  ReadMtu(port, reading);
  if (sources_.fec != nullptr) reading.fec = sources_.fec->Read(port.netdev);
  ReadCongestion(sources_.files->files(), port, reading);
  if (const auto tos = ReadRdmaCmTos(*sources_.files, port); tos) {
    reading.have.tos = tos->tos;
    reading.roce1 = tos->roce1;
  } else {
    reading.gaps.push_back({Setting::kTos, tos.error().message});
  }
  // Whatever went in between makes the rest of what was read a guess.
  if (!Exists(port)) return {{}, {}, true};
  std::stable_sort(reading.gaps.begin(), reading.gaps.end(),
                   [](const Gap& a, const Gap& b) { return a.setting < b.setting; });
  return reading;
}

base::Status KernelPortIo::WriteDcbx(const QosPort& port, const PortSettings& want) {
  ASSIGN_OR_RETURN(const DcbState state, sources_.dcb->Read(port.netdev));
  if (!state.dcbx) return base::Fail(Code::kUnimplemented, "the driver has no DCBX mode");
  if (*want.dcbx != lossless::Dcbx::kFirmware) {
    const bool cee = *want.dcbx == lossless::Dcbx::kHostCee;
    const int flags = DCB_CAP_DCBX_HOST | (cee ? DCB_CAP_DCBX_VER_CEE : DCB_CAP_DCBX_VER_IEEE);
    // A driver may take both versions at once, and then it takes what IEEE says.
    const int others = DCB_CAP_DCBX_LLD_MANAGED | (cee ? DCB_CAP_DCBX_VER_IEEE : 0);
    const bool so = (*state.dcbx & flags) == flags && (*state.dcbx & others) == 0;
    return so ? base::Status() : sources_.dcb->ChangeDcbx(port.netdev, flags);
  }
  // mlx5 takes no flag for "leave it to the firmware".
  return (*state.dcbx & DCB_CAP_DCBX_HOST) == 0 ? base::Status() : sources_.dcb->ChangeDcbx(port.netdev, 0);
}

base::Status KernelPortIo::WriteMtu(const QosPort& port, int mtu) const {
  const std::string path = NetPath(port, "mtu");
  const auto have = base::ReadTrimmed(sources_.files->files(), path);
  if (have && *have == std::to_string(mtu)) return {};
  return sources_.files->Write(path, std::to_string(mtu));
}

base::Status KernelPortIo::WriteTrust(const QosPort& port, const PortSettings& want) {
  ASSIGN_OR_RETURN(const DcbState state, sources_.dcb->Read(port.netdev));
  if (state.trust) {
    const auto trust = TrustFor(*state.trust, *want.trust);
    DcbChange change;
    change.trust = trust;
    return trust ? sources_.dcb->Change(port.netdev, change) : base::Status();
  }
  const bool dscp = *want.trust == lossless::Trust::kDscp;
  if (const auto file = TrustFile(port); file) {
    const std::string_view word = dscp ? "dscp" : "pcp";
    return *file == word ? base::Status() : sources_.files->Write(NetPath(port, "qos/trust"), word);
  }
  const std::vector<DcbApp> apps = DscpApps(state.apps);
  if (!dscp) return apps.empty() ? base::Status() : sources_.dcb->DeleteApps(port.netdev, apps);
  if (!apps.empty()) return {};
  const lossless::DscpMap nothing = lossless::AllDscps(kNotSaid);
  if (want.dscp_to_priority.value_or(nothing) == nothing) {
    return base::Fail(
        Code::kUnimplemented,
        "this driver trusts DSCPs once one is mapped, and the policy maps none: give it a DSCP");
  }
  return WriteDscps(port, want, Unsaid::kLeave);
}

base::Status KernelPortIo::WriteDscps(const QosPort& port, const PortSettings& want, Unsaid unsaid) {
  ASSIGN_OR_RETURN(DcbState state, sources_.dcb->Read(port.netdev));
  DscpDifference difference = DscpsFor(state.apps, *want.dscp_to_priority, unsaid);
  if (want.trust == lossless::Trust::kPcp && !difference.add.empty() && !state.trust && !TrustFile(port)) {
    return base::Fail(Code::kUnimplemented, "this driver trusts DSCPs once one is mapped, and PCP is wanted");
  }
  // Whatever else happens, first the DSCPs that have no entry yet: the last entry that is deleted takes trust along.
  // Then mlx5 puts a new entry in the place of the old one (mlx5 en_dcbnl.c). For bnxt_en the old one has to go before:
  // its firmware has one mapping of a DSCP, and whichever entry is deleted takes that away (bnxt_dcb.c,
  // bnxt_hwrm_queue_dscp2pri_cfg), so that the kernel would show the new entry and the NIC have none.
  const bool replaces = port.driver.empty() || port.driver == "mlx5_core";
  std::vector<DcbApp> moved;
  if (!replaces) moved = TakeMoved(state.apps, *want.dscp_to_priority, difference);
  if (!difference.add.empty()) {
    DcbChange change;
    change.apps = std::move(difference.add);
    TRY(sources_.dcb->Change(port.netdev, change));
    if (replaces && !difference.remove.empty()) {
      ASSIGN_OR_RETURN(state, sources_.dcb->Read(port.netdev));
      difference = DscpsFor(state.apps, *want.dscp_to_priority, unsaid);
    }
  }
  if (!difference.remove.empty()) TRY(sources_.dcb->DeleteApps(port.netdev, difference.remove));
  if (moved.empty()) return {};
  DcbChange change;
  change.apps = std::move(moved);
  return sources_.dcb->Change(port.netdev, change);
}

base::Status KernelPortIo::WriteTables(const QosPort& port, std::span<const Setting> settings,
                                       const PortSettings& want) {
  ASSIGN_OR_RETURN(const DcbState state, sources_.dcb->Read(port.netdev));
  DcbChange change;
  const auto none = [](std::string_view what) {
    return base::Fail(Code::kUnimplemented, fmt::format("the driver has no {}", what));
  };
  switch (settings.front()) {
    case Setting::kPriorityToBuffer:
    case Setting::kBufferBytes:
      if (!state.buffer) return none("buffers that can be set");
      change.buffer = BufferFor(*state.buffer, settings, want);
      break;
    case Setting::kPfc:
    case Setting::kCableMetres:
      if (!state.pfc) return none("PFC");
      if (Has(settings, Setting::kCableMetres) && port.driver != "mlx5_core")
        return none("length of a cable");
      change.pfc = PfcFor(*state.pfc, settings, want);
      break;
    default:
      if (!state.ets) return none("ETS");
      change.ets = EtsFor(*state.ets, settings, want);
      break;
  }
  if (!change.ets && !change.buffer && !change.pfc) return {};
  return sources_.dcb->Change(port.netdev, change);
}

base::Status KernelPortIo::WriteWatchdog(const QosPort& port, int milliseconds) {
  ASSIGN_OR_RETURN(const int have, sources_.watchdog->Read(port.netdev));
  return have == milliseconds ? base::Status() : sources_.watchdog->Write(port.netdev, milliseconds);
}

base::Status KernelPortIo::WriteGlobalPause(const QosPort& port, lossless::GlobalPause pause) {
  if (sources_.pause == nullptr) return base::Fail(Code::kUnimplemented, "nothing here sets global pause");
  ASSIGN_OR_RETURN(const lossless::GlobalPause have, sources_.pause->Read(port.netdev));
  return have == pause ? base::Status() : sources_.pause->Write(port.netdev, pause);
}

base::Status KernelPortIo::Write(const QosPort& port, std::span<const Setting> settings,
                                 const PortSettings& want) {
  return WriteAll(port, settings, want, Unsaid::kLeave);
}

base::Status KernelPortIo::WriteBack(const QosPort& port, std::span<const Setting> settings,
                                     const PortSettings& before) {
  return WriteAll(port, settings, before, Unsaid::kClear);
}

base::Status KernelPortIo::WriteRoce1(const QosPort& port) {
  if (!Exists(port)) {
    return base::Fail(Code::kUnavailable, fmt::format("{}: the interface is gone", port.netdev));
  }
  TRY(WriteRdmaCmRoce1(*sources_.files, port), lossless::SettingName(Setting::kTos));
  return {};
}

base::Status KernelPortIo::WriteAll(const QosPort& port, std::span<const Setting> settings,
                                    const PortSettings& want, Unsaid unsaid) {
  if (!Exists(port)) {
    return base::Fail(Code::kUnavailable, fmt::format("{}: the interface is gone", port.netdev));
  }
  const auto asked = [&](Setting setting, bool said) { return said && Has(settings, setting); };
  const auto tables = [&](std::initializer_list<Setting> group) -> base::Status {
    const std::vector<Setting> here = Among(settings, group);
    if (here.empty()) return {};
    std::string names;
    for (const Setting setting : here)
      names += (names.empty() ? "" : ", ") + std::string(lossless::SettingName(setting));
    TRY(WriteTables(port, here, want), names);
    return {};
  };
  const auto name = [](Setting setting) { return lossless::SettingName(setting); };
  const auto dcbx = [&]() -> base::Status {
    if (asked(Setting::kDcbx, want.dcbx.has_value())) TRY(WriteDcbx(port, want), name(Setting::kDcbx));
    return {};
  };
  // Once the firmware has the say again, bnxt_en refuses the rest with EINVAL (bnxt_dcb.c, bnxt_dcbnl_ieee_setets).
  const bool let_go = unsaid == Unsaid::kClear && want.dcbx == lossless::Dcbx::kFirmware;
  if (!let_go) TRY(dcbx());
  if (asked(Setting::kMtu, want.mtu.has_value())) TRY(WriteMtu(port, *want.mtu), name(Setting::kMtu));
  if (asked(Setting::kTrust, want.trust.has_value())) TRY(WriteTrust(port, want), name(Setting::kTrust));
  if (asked(Setting::kDscpToPriority, want.dscp_to_priority.has_value()))
    TRY(WriteDscps(port, want, unsaid), name(Setting::kDscpToPriority));
  TRY(tables({Setting::kPriorityToClass, Setting::kClassAlgorithm, Setting::kClassPercent}));
  TRY(tables({Setting::kPriorityToBuffer, Setting::kBufferBytes}));
  if (asked(Setting::kWatchdogMs, want.watchdog_ms.has_value()))
    TRY(WriteWatchdog(port, *want.watchdog_ms), name(Setting::kWatchdogMs));
  const bool pauses =
      want.global_pause.value_or(lossless::GlobalPause::kNone) != lossless::GlobalPause::kNone;
  const auto global_pause = [&]() -> base::Status {
    if (asked(Setting::kGlobalPause, want.global_pause.has_value()))
      TRY(WriteGlobalPause(port, *want.global_pause), name(Setting::kGlobalPause));
    return {};
  };
  if (!pauses) TRY(global_pause());
  // A length that the driver takes for bit times must neither be sent nor keep PFC from being set.
  if (port.driver == "mlx5_core") {
    TRY(tables({Setting::kPfc, Setting::kCableMetres}));
  } else {
    TRY(tables({Setting::kPfc}));
    if (asked(Setting::kCableMetres, want.cable_metres.has_value())) {
      return base::Fail(Code::kUnimplemented,
                        "cableMetres: only mlx5 sizes its buffers by the length of the cable; leave it out");
    }
  }
  if (pauses) TRY(global_pause());
  for (const Setting setting : {Setting::kEcn, Setting::kCnpDscp, Setting::kCnpPriority, Setting::kDcqcn}) {
    if (Has(settings, setting)) TRY(WriteCongestion(*sources_.files, port, setting, want), name(setting));
  }
  if (asked(Setting::kTos, want.tos.has_value()))
    TRY(WriteRdmaCmTos(*sources_.files, port, *want.tos), name(Setting::kTos));
  if (let_go) TRY(dcbx());
  return {};
}

namespace {

// The port's own device among them.
PortFunctions AllFunctionsOf(const base::FileTree& files, const QosPort& port) {
  PortFunctions functions = FunctionsOf(files, port.pci_address);
  functions.rdma_devices.push_back(port.rdma_device);
  return functions;
}

}  // namespace

base::Result<int> KernelPortIo::UserQueuePairs(const QosPort& port) {
  const PortFunctions functions = AllFunctionsOf(sources_.files->files(), port);
  std::optional<base::Error> unknown;
  int users = 0;
  for (const std::string& device : functions.rdma_devices) {
    const auto counted = sources_.queue_pairs->CountUsers(device);
    if (counted) users += std::min(*counted, std::numeric_limits<int>::max() - users);
    if (!counted && !unknown) unknown = counted.error();
  }
  // Whoever is seen using it is enough to leave it alone, whatever else is not seen.
  if (users > 0) return users;
  if (unknown) return base::Fail(*unknown);
  if (!functions.unseen.empty()) return base::Fail(Code::kForbidden, functions.unseen);
  return 0;
}

std::vector<std::string> KernelPortIo::QueuePairHolders(const QosPort& port) {
  std::vector<std::string> holders;
  for (const std::string& device : AllFunctionsOf(sources_.files->files(), port).rdma_devices) {
    std::vector<std::string> some = sources_.queue_pairs->Holders(device);
    holders.insert(holders.end(), some.begin(), some.end());
  }
  // One program may have both.
  std::sort(holders.begin(), holders.end());
  holders.erase(std::unique(holders.begin(), holders.end()), holders.end());
  return holders;
}

base::Result<LinkEvidence> KernelPortIo::Link(const QosPort& port) {
  return ReadLinkEvidence(sources_.files->files(), *sources_.statistics, port);
}

std::string KernelPortIo::LikelyWriter(const QosPort& port, Setting setting) {
  std::optional<DcbState> state;
  if (auto read = sources_.dcb->Read(port.netdev); read) state = *std::move(read);
  return LikelyWriterOf(sources_.files->files(), state, setting);
}

}  // namespace heddle::nodeagent
