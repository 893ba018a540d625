#include "switches/cables.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "crds/port_name.h"
#include "formats/printable.h"
#include "switches/claims.h"
#include "switches/port_index.h"

namespace heddle::switches {
namespace {

using lossless::CableEnd;
using lossless::LosslessVerdict;
using topology::Missing;

// What a node reports of a port; null where it reports nothing.
const crds::LosslessReport* ReportOf(const crds::NodeTopology& node, const std::string& port) {
  for (const crds::LosslessReport& report : node.status.lossless) {
    if (std::find(report.ports.begin(), report.ports.end(), port) != report.ports.end()) return &report;
  }
  return nullptr;
}

// A policy's profile asks NICs without a watchdog for none. One that was asked for and could not be read is not known.
bool WantsNoWatchdog(const crds::NodeTopology& node, const std::string& port) {
  for (const crds::LosslessWish& wish : node.spec.lossless) {
    if (std::find(wish.ports.begin(), wish.ports.end(), port) != wish.ports.end())
      return wish.settings && !wish.settings->watchdog_ms;
  }
  return false;
}

class Comparing {
 public:
  Comparing(std::span<const KnownSwitch> switches, const std::set<std::string>& silent)
      : switches_(switches), silent_(silent), ports_(switches.size()) {
    for (std::size_t i = 0; i < switches.size(); ++i) {
      Name(switches[i].name, int(i));
      if (switches[i].chassis_id != switches[i].name) Name(switches[i].chassis_id, int(i));
    }
  }

  void Add(const crds::NodeTopology& node) {
    for (const topology::Nic& nic : node.status.node.nics) {
      if (nic.role != topology::NicRole::kCompute || nic.transport != topology::Transport::kRoce) continue;
      for (const topology::NicPort& port : nic.ports) {
        NamedCable name{node.name, crds::PortName(nic, port), "", "", -1};
        lossless::Cable cable;
        cable.host = HostEnd(node, nic, port, name.port);
        if (nic.rail) cable.rail = *nic.rail;
        cable.leaf = LeafEnd(port, name);
        compared_.names.push_back(std::move(name));
        netdevs_.push_back(nic.netdev);
        compared_.cables.push_back(std::move(cable));
      }
    }
  }

  ComparedCables Take() && {
    compared_.comparison = lossless::CompareCables(pool_, compared_.cables);
    // An outcome of its own: whatever the two ends are set to, nobody knows that they are two ends.
    for (CableDoubt& doubt : FindDoubts(compared_.names, netdevs_, switches_)) {
      compared_.cables[doubt.cable].leaf.settings = Missing::kAmbiguous;
      compared_.comparison.of_cable[doubt.cable] = int(compared_.comparison.outcomes.size());
      compared_.comparison.outcomes.push_back({LosslessVerdict::kUnproved, {std::move(doubt.finding)}});
    }
    return std::move(compared_);
  }

 private:
  static constexpr int kSeveral = -2;

  void Name(const std::string& name, int at) {
    if (name.empty()) return;
    const auto [found, fresh] = by_name_.emplace(name, at);
    if (fresh || found->second == at) return;
    found->second = kSeveral;
    compared_.doubled.insert(name);
  }

  CableEnd HostEnd(const crds::NodeTopology& node, const topology::Nic& nic, const topology::NicPort& port,
                   const std::string& name) {
    CableEnd end;
    if (silent_.contains(node.name)) {
      end.settings = Missing::kStale;
      return end;
    }
    if (port.rate_gbps > 0) end.speed_mbps = port.rate_gbps * 1000;
    if (port.state != topology::LinkState::kUnknown) end.link_up = port.state == topology::LinkState::kActive;
    const crds::LosslessReport* report = ReportOf(node, name);
    if (report == nullptr || !report->have) return end;
    end.has_no_watchdog = WantsNoWatchdog(node, name);
    // Of a link that is down the driver may say what it would run with.
    if (end.link_up == std::optional(true)) end.fec = report->fec;
    if (report->have->mtu || nic.mtu <= 0) {
      end.settings = pool_.Intern(*report->have);
    } else {
      lossless::PortSettings settings = *report->have;
      settings.mtu = nic.mtu;
      end.settings = pool_.Intern(settings);
    }
    return end;
  }

  CableEnd LeafEnd(const topology::NicPort& port, NamedCable& name) {
    CableEnd end;
    if (!port.leaf_port) {
      end.settings = port.leaf_port.missing();
      return end;
    }
    name.leaf = port.leaf_port->leaf;
    name.leaf_port = port.leaf_port->port;
    const auto found = by_name_.find(name.leaf);
    if (found == by_name_.end()) {
      ++compared_.without[name.leaf];
      return end;
    }
    if (found->second == kSeveral) {
      end.settings = Missing::kAmbiguous;
      return end;
    }
    name.at = found->second;
    const KnownSwitch& there = switches_[std::size_t(name.at)];
    if (there.config == nullptr) {
      end.settings = there.missing;
      return end;
    }
    std::optional<PortIndex>& ports = ports_[std::size_t(name.at)];
    if (!ports) ports.emplace(*there.config);
    FillFrom(*ports, name, end);
    return end;
  }

  void FillFrom(const PortIndex& ports, NamedCable& name, CableEnd& end) {
    const formats::SonicPort* there = ports.Find(name.leaf_port);
    if (there == nullptr) return;
    name.leaf_port = there->name;
    if (!there->bare.empty()) {
      compared_.bare.insert(fmt::format("{} {} {}, and nothing is known of its settings",
                                        formats::Printable(name.leaf), there->name, there->bare));
      if (there->bare.starts_with(formats::kCannotBeRead)) end.why_unknown = there->bare;
      // Of OpenConfig, whose MTU may have Ethernet's header in it: a host over the larger is over both.
      if (there->settings.mtu) end.max_frame_bytes = *there->settings.mtu + lossless::kFrameAround;
    } else {
      end.settings = pool_.Intern(there->settings);
    }
    end.speed_mbps = there->speed_mbps;
    end.negotiates = there->negotiates;
    end.fec = lossless::ParseFec(there->fec);
  }

  const std::span<const KnownSwitch> switches_;
  const std::set<std::string>& silent_;
  std::vector<std::optional<PortIndex>> ports_;  // of the switches, once a cable ends there
  std::map<std::string, int> by_name_;
  lossless::SettingsPool pool_;
  std::vector<std::string> netdevs_;  // of each cable its host's interface
  ComparedCables compared_;
};

}  // namespace

ComparedCables CompareBothEnds(std::span<const crds::NodeTopology* const> nodes,
                               std::span<const KnownSwitch> switches, const std::set<std::string>& silent) {
  Comparing comparing(switches, silent);
  for (const crds::NodeTopology* node : nodes) comparing.Add(*node);
  return std::move(comparing).Take();
}

const lossless::CableFinding* WorstOf(const lossless::CableOutcome& outcome) {
  const bool any =
      !outcome.findings.empty() && outcome.findings.front().weight != lossless::LosslessVerdict::kLossless;
  return any ? &outcome.findings.front() : nullptr;
}

const formats::SonicPort* PortOf(const formats::SonicConfig& config, std::string_view name) {
  const auto by = [&](auto matches) -> const formats::SonicPort* {
    for (const auto* ports : {&config.ports, &config.bare}) {
      const auto found = std::find_if(ports->begin(), ports->end(), matches);
      if (found != ports->end()) return &*found;
    }
    return nullptr;
  };
  if (const auto* port = by([&](const formats::SonicPort& one) { return one.name == name; })) return port;
  return by([&](const formats::SonicPort& one) { return !one.alias.empty() && one.alias == name; });
}

}  // namespace heddle::switches
