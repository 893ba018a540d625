#include "nodeagent/qos/dcb_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace heddle::nodeagent {
namespace {

using lossless::Algorithm;
using lossless::kDscps;
using lossless::kNotSaid;
using lossless::kPriorities;
using lossless::PortSettings;
using lossless::Setting;

constexpr int kDscpSelector = IEEE_8021QAZ_APP_SEL_DSCP;
constexpr int kMaxCableMetres = 1000;                // as lossless/port_settings.h has it
constexpr std::uint32_t kMaxBufferBytes = 1U << 30;  // as NodeTopology's schema has it

bool Has(std::span<const Setting> settings, Setting setting) {
  return std::find(settings.begin(), settings.end(), setting) != settings.end();
}

Algorithm AlgorithmOf(int tsa) {
  switch (tsa) {
    case IEEE_8021QAZ_TSA_STRICT:
      return Algorithm::kStrict;
    case IEEE_8021QAZ_TSA_CB_SHAPER:
      return Algorithm::kCbs;
    case IEEE_8021QAZ_TSA_ETS:
      return Algorithm::kEts;
    case IEEE_8021QAZ_TSA_VENDOR:
      return Algorithm::kVendor;
    default:
      return Algorithm::kAny;  // reserved: nothing can be said of it
  }
}

std::optional<std::uint8_t> TsaOf(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kStrict:
      return IEEE_8021QAZ_TSA_STRICT;
    case Algorithm::kCbs:
      return IEEE_8021QAZ_TSA_CB_SHAPER;
    case Algorithm::kEts:
      return IEEE_8021QAZ_TSA_ETS;
    case Algorithm::kVendor:
      return IEEE_8021QAZ_TSA_VENDOR;
    case Algorithm::kAny:
      break;
  }
  return std::nullopt;
}

class Reader {
 public:
  Reader(const DcbState& state, const QosPort& port, DcbSettings& out)
      : state_(state), port_(port), out_(out) {}

  void Dcbx() {
    if (!state_.dcbx) return Gap(Setting::kDcbx, "the driver has no DCBX mode");
    const int flags = *state_.dcbx;
    const bool host = (flags & DCB_CAP_DCBX_HOST) != 0 && (flags & DCB_CAP_DCBX_LLD_MANAGED) == 0;
    const bool ieee = (flags & DCB_CAP_DCBX_VER_IEEE) != 0;
    out_.have.dcbx = !host  ? lossless::Dcbx::kFirmware
                     : ieee ? lossless::Dcbx::kHost
                            : lossless::Dcbx::kHostCee;
  }

  void Trust(const std::optional<std::string>& file) {
    if (state_.trust) {
      for (const int selector : *state_.trust) {
        if (selector != kDscpSelector && selector != kSelectPcp) continue;
        out_.have.trust = selector == kDscpSelector ? lossless::Trust::kDscp : lossless::Trust::kPcp;
        return;
      }
      return Gap(Setting::kTrust,
                 fmt::format("the port trusts neither DSCP nor PCP: dcb apptrust set dev {} order dscp",
                             port_.netdev));
    }
    if (file && (*file == "dscp" || *file == "pcp")) {
      out_.have.trust = *file == "dscp" ? lossless::Trust::kDscp : lossless::Trust::kPcp;
      return;
    }
    out_.have.trust = DscpApps(state_.apps).empty() ? lossless::Trust::kPcp : lossless::Trust::kDscp;
  }

  void Dscps() {
    lossless::DscpMap map = lossless::AllDscps(kNotSaid);
    for (const DcbApp& app : DscpApps(state_.apps)) {
      auto& entry = map[std::size_t(app.protocol)];
      entry = std::max(entry, std::int8_t(app.priority));
    }
    out_.have.dscp_to_priority = map;
  }

  void Pfc() {
    if (!state_.pfc) {
      Gap(Setting::kPfc, "the driver has no PFC");
      return Gap(Setting::kCableMetres, "the driver has no PFC");
    }
    lossless::PrioritySet pfc;
    for (int priority = 0; priority < kPriorities; ++priority) {
      if ((state_.pfc->pfc_en >> priority & 1) != 0) pfc.Insert(priority);
    }
    out_.have.pfc = pfc;
    if (port_.driver != "mlx5_core") {
      return Gap(Setting::kCableMetres, "only mlx5 sizes its buffers by the length of the cable");
    }
    out_.have.cable_metres = std::min<int>(state_.pfc->delay, kMaxCableMetres);
  }

  void Ets() {
    if (!state_.ets) {
      for (const Setting setting :
           {Setting::kPriorityToClass, Setting::kClassAlgorithm, Setting::kClassPercent})
        Gap(setting, "the driver has no ETS");
      return;
    }
    const ieee_ets& ets = *state_.ets;
    lossless::PriorityTable& classes = out_.have.priority_to_class.emplace();
    lossless::Algorithms& algorithms = out_.have.class_algorithm.emplace();
    lossless::Numbers& percent = out_.have.class_percent.emplace();
    for (std::size_t i = 0; i < classes.size(); ++i) {
      classes[i] = std::int8_t(ets.prio_tc[i] < kPriorities ? ets.prio_tc[i] : kNotSaid);
      algorithms[i] = AlgorithmOf(ets.tc_tsa[i]);
      // The share of a class that is not of ETS means nothing.
      percent[i] = algorithms[i] == Algorithm::kEts ? std::min<int>(ets.tc_tx_bw[i], 100) : kNotSaid;
    }
  }

  void Buffers() {
    if (!state_.buffer) {
      Gap(Setting::kPriorityToBuffer, "the driver lets nobody set its buffers");
      return Gap(Setting::kBufferBytes, "the driver lets nobody set its buffers");
    }
    lossless::PriorityTable& buffers = out_.have.priority_to_buffer.emplace();
    lossless::Numbers& bytes = out_.have.buffer_bytes.emplace();
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const int buffer = state_.buffer->prio2buffer[i];
      buffers[i] = std::int8_t(buffer < kPriorities ? buffer : kNotSaid);
      bytes[i] = int(std::min(state_.buffer->buffer_size[i], kMaxBufferBytes));
    }
  }

 private:
  void Gap(Setting setting, std::string reason) { out_.gaps.push_back({setting, std::move(reason)}); }
  const DcbState& state_;
  const QosPort& port_;
  DcbSettings& out_;
};

template <class T>
std::optional<T> IfChanged(const T& have, const T& fresh) {
  if (std::memcmp(&have, &fresh, sizeof(T)) == 0) return std::nullopt;
  return fresh;
}

}  // namespace

DcbSettings SettingsOfDcb(const DcbState& state, const std::optional<std::string>& trust_file,
                          const QosPort& port) {
  DcbSettings settings;
  Reader reader(state, port, settings);
  reader.Dcbx();
  reader.Trust(trust_file);
  reader.Dscps();
  reader.Pfc();
  reader.Ets();
  reader.Buffers();
  return settings;
}

std::optional<ieee_ets> EtsFor(const ieee_ets& have, std::span<const Setting> settings,
                               const PortSettings& want) {
  ieee_ets fresh = have;
  const bool shares = Has(settings, Setting::kClassPercent) && want.class_percent.has_value();
  for (std::size_t i = 0; i < IEEE_8021QAZ_MAX_TCS; ++i) {
    if (Has(settings, Setting::kPriorityToClass) && want.priority_to_class &&
        (*want.priority_to_class)[i] != kNotSaid)
      fresh.prio_tc[i] = std::uint8_t((*want.priority_to_class)[i]);
    if (Has(settings, Setting::kClassAlgorithm) && want.class_algorithm) {
      if (const auto tsa = TsaOf((*want.class_algorithm)[i])) fresh.tc_tsa[i] = *tsa;
    }
    const int percent = shares ? (*want.class_percent)[i] : kNotSaid;
    if (percent != kNotSaid) fresh.tc_tx_bw[i] = std::uint8_t(percent);
    if (shares && percent == kNotSaid && fresh.tc_tsa[i] == IEEE_8021QAZ_TSA_ETS) {
      fresh.tc_tsa[i] = IEEE_8021QAZ_TSA_STRICT;
    }
    // A driver's own number for a class without a share is left alone.
    const bool changed = shares || fresh.tc_tsa[i] != have.tc_tsa[i];
    if (changed && fresh.tc_tsa[i] != IEEE_8021QAZ_TSA_ETS) fresh.tc_tx_bw[i] = 0;
  }
  return IfChanged(have, fresh);
}

std::optional<ieee_pfc> PfcFor(const ieee_pfc& have, std::span<const Setting> settings,
                               const PortSettings& want) {
  ieee_pfc fresh = have;
  if (Has(settings, Setting::kPfc) && want.pfc) fresh.pfc_en = want.pfc->bits();
  if (Has(settings, Setting::kCableMetres) && want.cable_metres)
    fresh.delay = std::uint16_t(*want.cable_metres);
  if (fresh.pfc_en == have.pfc_en && fresh.delay == have.delay) return std::nullopt;
  return fresh;
}

std::optional<dcbnl_buffer> BufferFor(const dcbnl_buffer& have, std::span<const Setting> settings,
                                      const PortSettings& want) {
  dcbnl_buffer fresh = have;
  for (std::size_t i = 0; i < DCBX_MAX_BUFFERS; ++i) {
    if (Has(settings, Setting::kPriorityToBuffer) && want.priority_to_buffer &&
        (*want.priority_to_buffer)[i] != kNotSaid)
      fresh.prio2buffer[i] = std::uint8_t((*want.priority_to_buffer)[i]);
    if (Has(settings, Setting::kBufferBytes) && want.buffer_bytes && (*want.buffer_bytes)[i] != kNotSaid)
      fresh.buffer_size[i] = std::uint32_t((*want.buffer_bytes)[i]);
  }
  return IfChanged(have, fresh);
}

std::vector<DcbApp> DscpApps(const std::vector<DcbApp>& apps) {
  std::vector<DcbApp> dscps;
  for (const DcbApp& app : apps) {
    const bool sound =
        app.protocol >= 0 && app.protocol < kDscps && app.priority >= 0 && app.priority < kPriorities;
    if (app.selector == kDscpSelector && sound) dscps.push_back(app);
  }
  return dscps;
}

DscpDifference DscpsFor(const std::vector<DcbApp>& have, const lossless::DscpMap& want, Unsaid unsaid) {
  DscpDifference difference;
  const std::vector<DcbApp> dscps = DscpApps(have);
  for (int dscp = 0; dscp < kDscps; ++dscp) {
    const int priority = want[std::size_t(dscp)];
    if (priority == kNotSaid && unsaid == Unsaid::kLeave) continue;
    const DcbApp wanted{kDscpSelector, dscp, priority};
    bool there = false;
    for (const DcbApp& app : dscps) {
      if (app.protocol != dscp) continue;
      if (app == wanted) {
        there = true;
      } else {
        difference.remove.push_back(app);
      }
    }
    if (!there && priority != kNotSaid) difference.add.push_back(wanted);
  }
  return difference;
}

std::optional<std::vector<int>> TrustFor(const std::vector<int>& have, lossless::Trust want) {
  const int first = want == lossless::Trust::kDscp ? kDscpSelector : kSelectPcp;
  const int other = want == lossless::Trust::kDscp ? kSelectPcp : kDscpSelector;
  const auto at = std::find(have.begin(), have.end(), first);
  const auto instead = std::find(have.begin(), have.end(), other);
  if (at != have.end() && at < instead) return std::nullopt;
  std::vector<int> fresh{first};
  // What else is trusted keeps its order behind it, but for the one that was in its place.
  for (const int selector : have) {
    if (selector != first && selector != other) fresh.push_back(selector);
  }
  return fresh;
}

}  // namespace heddle::nodeagent
