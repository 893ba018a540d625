#include "switches/cable_join.h"

#include <fmt/format.h>

#include <algorithm>

#include "crds/port_name.h"
#include "formats/printable.h"
#include "switches/chassis.h"

namespace heddle::switches {
namespace {

using lossless::CableEnd;
using lossless::LosslessVerdict;
using topology::Missing;

constexpr int kSeveral = -2;

// Settings that nobody has any longer stay in the pool; past so many times what it began with all is joined anew.
constexpr std::size_t kMostOverBegin = 2, kPoolSlack = 64;

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

// Not joined with it: whatever that switch is set to, the host's cable ends on another one.
lossless::CableFinding OtherChassis(const NamedCable& name, const KnownSwitch& twin) {
  constexpr std::size_t kMaxWord = 64;
  const auto shown = [](const std::string& text) { return formats::Printable(text, kMaxWord); };
  const std::string host = shown(name.chassis_id), own = shown(ChassisOf(twin));
  return {LosslessVerdict::kUnproved,
          "chassis-differs",
          "chassisId",
          host,
          own,
          fmt::format(
              "{} {} sees a switch called {} with chassis id {}, and the FabricSwitch of that name has {}",
              name.node, name.port, shown(name.leaf), host, own),
          "two switches have one hostname: give each its own, or correct the FabricSwitch's address or "
          "chassisId"};
}

bool SeesSame(const KnownSwitch& a, const KnownSwitch& b) {
  return a.neighbours == b.neighbours ||
         (a.neighbours != nullptr && b.neighbours != nullptr && *a.neighbours == *b.neighbours);
}

}  // namespace

void CableJoin::Begin(std::span<const crds::NodeTopology* const> nodes, std::span<const KnownSwitch> switches,
                      const std::set<std::string>& silent) {
  *this = CableJoin();
  switches_.assign(switches.begin(), switches.end());
  indexes_.resize(switches.size());
  for (std::size_t i = 0; i < switches.size(); ++i) {
    Name(switches[i].name, int(i));
    if (switches[i].chassis_id != switches[i].name) Name(switches[i].chassis_id, int(i));
  }
  starts_.push_back(0);
  for (const crds::NodeTopology* node : nodes) {
    for (Joined& joined : Join(*node, silent.contains(node->name))) {
      compared_.names.push_back(std::move(joined.name));
      compared_.cables.push_back(std::move(joined.cable));
      netdevs_.push_back(std::move(joined.netdev));
      ports_.push_back(joined.port);
    }
    starts_.push_back(compared_.names.size());
  }
  pool_began_with_ = pool_.size();
  Compare();
  doubts_ = FindDoubts(compared_.names, netdevs_, switches_);
  FindTwins();
  TakeDoubts();
}

std::optional<std::vector<std::size_t>> CableJoin::Again(std::span<const crds::NodeTopology* const> nodes,
                                                         std::span<const KnownSwitch> switches,
                                                         const std::set<std::string>& silent,
                                                         const Changed& changed) {
  if (changed.nodes.empty() && changed.switches.empty()) return std::vector<std::size_t>();
  DropDoubts();
  std::vector<char> touched(nodes.size(), 0);
  for (const std::size_t node : changed.nodes) touched[node] = 1;
  bool moved = TakeSwitches(switches, changed.switches);
  if (!changed.switches.empty()) {
    std::vector<char> other(switches_.size(), 0);
    for (const std::size_t at : changed.switches) other[at] = 1;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      for (std::size_t i = starts_[node]; touched[node] == 0 && i < starts_[node + 1]; ++i) {
        const int at = std::max(compared_.names[i].at, compared_.names[i].twin);  // it has one at most
        if (at >= 0 && other[std::size_t(at)] != 0) touched[node] = 1;
      }
    }
  }
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (touched[node] == 0) continue;
    const Replaced replaced = Replace(node, Join(*nodes[node], silent.contains(nodes[node]->name)));
    if (!replaced.fits) return std::nullopt;
    moved = moved || replaced.moved;
  }
  if (pool_.size() > kMostOverBegin * pool_began_with_ + kPoolSlack) return std::nullopt;
  Compare();
  if (moved) {
    // Whoever was in doubt may be no longer, and the other way round.
    for (const CableDoubt& doubt : doubts_) touched[NodeOf(doubt.cable)] = 1;
    doubts_ = FindDoubts(compared_.names, netdevs_, switches_);
    for (const CableDoubt& doubt : doubts_) touched[NodeOf(doubt.cable)] = 1;
    FindTwins();
  }
  TakeDoubts();
  std::vector<std::size_t> all;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (touched[node] != 0) all.push_back(node);
  }
  return all;
}

void CableJoin::Name(const std::string& name, int at) {
  if (name.empty()) return;
  const auto [found, fresh] = by_name_.emplace(name, at);
  if (fresh || found->second == at) return;
  found->second = kSeveral;
  compared_.doubled.insert(name);
}

std::vector<CableJoin::Joined> CableJoin::Join(const crds::NodeTopology& node, bool silent) {
  std::vector<Joined> all;
  last_report_ = nullptr;
  for (const topology::Nic& nic : node.status.node.nics) {
    if (nic.role != topology::NicRole::kCompute || nic.transport != topology::Transport::kRoce) continue;
    for (const topology::NicPort& port : nic.ports) {
      Joined& one = all.emplace_back();
      one.name = {node.name, crds::PortName(nic, port), "", "", -1};
      one.netdev = nic.netdev;
      if (silent) {
        one.cable.host.settings = Missing::kStale;
      } else {
        one.cable.host = HostEnd(node, nic, port, one.name.port);
      }
      if (nic.rail) one.cable.rail = *nic.rail;
      one.cable.leaf = LeafEnd(port, one);
    }
  }
  return all;
}

CableEnd CableJoin::HostEnd(const crds::NodeTopology& node, const topology::Nic& nic,
                            const topology::NicPort& port, const std::string& name) {
  CableEnd end;
  if (port.rate_gbps > 0) end.speed_mbps = port.rate_gbps * 1000;
  if (port.state != topology::LinkState::kUnknown) end.link_up = port.state == topology::LinkState::kActive;
  const crds::LosslessReport* report = ReportOf(node, name);
  if (report == nullptr || !report->have) return end;
  end.has_no_watchdog = WantsNoWatchdog(node, name);
  // Of a link that is down the driver may say what it would run with.
  if (end.link_up == std::optional(true)) end.fec = report->fec;
  if (report->have->mtu || nic.mtu <= 0) {
    if (report != last_report_) last_number_ = pool_.Intern(*report->have);
    last_report_ = report;
    end.settings = last_number_;
  } else {
    lossless::PortSettings settings = *report->have;
    settings.mtu = nic.mtu;
    end.settings = pool_.Intern(settings);
  }
  return end;
}

CableEnd CableJoin::LeafEnd(const topology::NicPort& port, Joined& joined) {
  CableEnd end;
  if (!port.leaf_port) {
    end.settings = port.leaf_port.missing();
    return end;
  }
  NamedCable& name = joined.name;
  name.leaf = port.leaf_port->leaf;
  name.leaf_port = port.leaf_port->port;
  const auto found = by_name_.find(name.leaf);
  if (found == by_name_.end()) return end;
  if (found->second == kSeveral) {
    end.settings = Missing::kAmbiguous;
    return end;
  }
  const KnownSwitch& there = switches_[std::size_t(found->second)];
  const std::string &seen = port.leaf_port->chassis_id, &own = ChassisOf(there);
  if (!seen.empty() && !own.empty() && !IsSameChassis(seen, own)) {
    name.twin = found->second;
    name.chassis_id = seen;
    return end;
  }
  name.at = found->second;
  if (there.config == nullptr) {
    end.settings = there.missing;
    return end;
  }
  std::optional<PortIndex>& ports = indexes_[std::size_t(name.at)];
  if (!ports) ports.emplace(*there.config);
  FillFrom(*ports, joined, end);
  return end;
}

void CableJoin::FillFrom(const PortIndex& ports, Joined& joined, CableEnd& end) {
  if (const std::string& called = joined.name.leaf_port; ports.IsAmbiguous(called)) {
    end.settings = Missing::kAmbiguous;
    end.why_unknown = fmt::format("{} is one port by its name and another by its alias, and LLDP says either",
                                  formats::Printable(called, 40));
    return;
  }
  const formats::SonicPort* there = ports.Find(joined.name.leaf_port);
  if (there == nullptr) return;
  joined.port = there;
  joined.name.leaf_port = there->name;
  if (!there->bare.empty()) {
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

bool CableJoin::TakeSwitches(std::span<const KnownSwitch> switches, const std::vector<std::size_t>& changed) {
  bool moved = false;
  for (const std::size_t at : changed) {
    const KnownSwitch &now = switches[at], &before = switches_[at];
    moved = moved || (now.config == nullptr) != (before.config == nullptr) || !SeesSame(now, before) ||
            now.own_chassis != before.own_chassis;
    indexes_[at].reset();
    switches_[at] = now;
  }
  return moved;
}

CableJoin::Replaced CableJoin::Replace(std::size_t node, std::vector<Joined> joined) {
  const std::size_t first = starts_[node];
  if (joined.size() != starts_[node + 1] - first) return {};
  Replaced replaced{true, false};
  for (std::size_t i = 0; i < joined.size(); ++i) {
    Joined& now = joined[i];
    NamedCable& name = compared_.names[first + i];
    std::string& netdev = netdevs_[first + i];
    if (name != now.name || netdev != now.netdev) {
      replaced.moved = true;
      name = std::move(now.name);
      netdev = std::move(now.netdev);
    }
    compared_.cables[first + i] = std::move(now.cable);
    ports_[first + i] = now.port;
  }
  return replaced;
}

// Of all, whichever have changed: it costs a tenth of what joining them does (bench/lossless_bench.cc).
void CableJoin::Compare() {
  compared_.comparison = lossless::CompareCables(pool_, compared_.cables);
}

void CableJoin::FindTwins() {
  twins_.clear();
  for (std::size_t i = 0; i < compared_.names.size(); ++i) {
    const NamedCable& name = compared_.names[i];
    if (name.twin >= 0) twins_.push_back({i, OtherChassis(name, switches_[std::size_t(name.twin)])});
  }
}

// An outcome of its own: whatever the two ends are set to, nobody knows that they are two ends.
void CableJoin::TakeDoubts() {
  lossless::CableComparison& comparison = compared_.comparison;
  for (const CableDoubt& twin : twins_) {
    comparison.of_cable[twin.cable] = int(comparison.outcomes.size());
    comparison.outcomes.push_back({LosslessVerdict::kUnproved, {twin.finding}});
  }
  doubted_.clear();
  for (const CableDoubt& doubt : doubts_) {
    topology::Fact<int>& settings = compared_.cables[doubt.cable].leaf.settings;
    doubted_.push_back(settings);
    settings = Missing::kAmbiguous;
    comparison.of_cable[doubt.cable] = int(comparison.outcomes.size());
    comparison.outcomes.push_back({LosslessVerdict::kUnproved, {doubt.finding}});
  }
}

void CableJoin::DropDoubts() {
  for (std::size_t i = 0; i < doubted_.size(); ++i)
    compared_.cables[doubts_[i].cable].leaf.settings = doubted_[i];
  doubted_.clear();
}

std::size_t CableJoin::NodeOf(std::size_t cable) const {
  return std::size_t(std::upper_bound(starts_.begin(), starts_.end(), cable) - starts_.begin()) - 1;
}

}  // namespace heddle::switches
