#include "switches/switch_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "formats/printable.h"
#include "lossless/compare.h"
#include "lossless/lint.h"

namespace heddle::switches {
namespace {

using lossless::CableFinding;
using lossless::CableOutcome;
using lossless::LosslessVerdict;
using lossless::PortSettings;
using lossless::Setting;

constexpr std::string_view kNotKnown = "not known";

struct End {
  int at = -1;
  std::string port;
  friend auto operator<=>(const End&, const End&) = default;
};

// Both ends of one link, held against each other.
class Comparing {
 public:
  Comparing(std::string lower, const formats::SonicPort& here, std::string upper,
            const formats::SonicPort& there)
      : names_{std::move(lower), std::move(upper)}, ports_{&here, &there} {}

  CableOutcome Run() && {
    const bool known = Known(0) && Known(1);
    if (known) {
      Settings();
      Watchdogs();
      for (const int end : {0, 1}) Alone(end);
    }
    Line();
    outcome_.verdict = outcome_.findings.empty() ? LosslessVerdict::kLossless : LosslessVerdict::kUnproved;
    for (const CableFinding& one : outcome_.findings) outcome_.verdict = Worst(outcome_.verdict, one.weight);
    std::stable_sort(outcome_.findings.begin(), outcome_.findings.end(),
                     [](const auto& a, const auto& b) { return a.weight < b.weight; });
    return std::move(outcome_);
  }

 private:
  const PortSettings& Of(int end) const { return ports_[std::size_t(end)]->settings; }

  bool Known(int end) {
    const formats::SonicPort& port = *ports_[std::size_t(end)];
    if (!port.bare.empty()) {
      Find(LosslessVerdict::kUnproved, "not-known", "settings", "", "",
           fmt::format("{} {}, and nothing is known of its settings", names_[std::size_t(end)], port.bare),
           "give the port its maps: `kubectl heddle switch render` for a host's port shows which");
      return false;
    }
    for (const auto& [setting, said] :
         {std::pair(Setting::kPfc, Of(end).pfc.has_value()),
          std::pair(Setting::kDscpToPriority, Of(end).dscp_to_priority.has_value()),
          std::pair(Setting::kMtu, Of(end).mtu.has_value())}) {
      if (said) continue;
      const std::string name(SettingName(setting));
      Find(LosslessVerdict::kUnproved, "not-known", name, SettingText(Of(0), setting),
           SettingText(Of(1), setting), fmt::format("nobody says {} of {}", name, names_[std::size_t(end)]),
           "the switch's configuration names no such table for this port");
    }
    return true;
  }

  // Of the map of DSCPs what is lossless at either end: what the others do loses no RDMA.
  void Settings() {
    PortSettings want;
    want.pfc = Of(0).pfc;
    want.mtu = Of(0).mtu;
    bool any = false;
    if (Of(0).dscp_to_priority && Of(1).dscp_to_priority) {
      want.dscp_to_priority = lossless::AllDscps(lossless::kNotSaid);
      for (int dscp = 0; dscp < lossless::kDscps; ++dscp) {
        const bool lossless =
            IsLossless(Of(0), dscp) == std::optional(true) || IsLossless(Of(1), dscp) == std::optional(true);
        any = any || lossless;
        if (lossless)
          (*want.dscp_to_priority)[std::size_t(dscp)] = (*Of(0).dscp_to_priority)[std::size_t(dscp)];
      }
    }
    for (const lossless::Drift& drift : Compare(want, Of(1)).drifts) {
      const std::string name(SettingName(drift.setting));
      Find(LosslessVerdict::kContradiction, "switch-link-" + name, name, drift.want, drift.have,
           fmt::format("{} has {} {}, and {} has {}", names_[0], name, drift.want, names_[1], drift.have),
           "set both ends alike, from one LosslessPolicy");
    }
    if (any || !Of(0).dscp_to_priority || !Of(1).dscp_to_priority) return;
    Find(LosslessVerdict::kUnproved, "switch-link-lossy", "pfc", SettingText(Of(0), Setting::kPfc),
         SettingText(Of(1), Setting::kPfc), "neither end has a lossless DSCP",
         "if RDMA crosses this link, set it as the hosts' ports are set");
  }

  void Watchdogs() {
    for (const int end : {0, 1}) {
      const auto& pfc = Of(end).pfc;
      if (!pfc || pfc->empty()) continue;
      const auto& watched = Of(end).watched;
      const bool off = Of(end).watchdog_ms == std::optional(lossless::kWatchdogOff) ||
                       (watched && (pfc->bits() & ~watched->bits()) != 0);
      if (Of(end).watchdog_ms && !off) continue;
      Find(off ? LosslessVerdict::kContradiction : LosslessVerdict::kUnproved, "switch-link-watchdog",
           std::string(SettingName(Setting::kWatchdogMs)), SettingText(Of(0), Setting::kWatchdogMs),
           SettingText(Of(1), Setting::kWatchdogMs),
           fmt::format("{} has PFC and no watchdog: a storm above it stops for good",
                       names_[std::size_t(end)]),
           "turn PFC_WD on at both ends");
    }
  }

  // What loses packets whatever the other end has. Watchdogs are told above, for both ends at once.
  void Alone(int end) {
    const std::string& name = names_[std::size_t(end)];
    for (CableFinding& one : lossless::FindLossySettings(Of(end))) {
      if (one.rule == "pfc-without-watchdog") continue;
      Find(LosslessVerdict::kContradiction, std::move(one.rule), std::move(one.setting),
           end == 0 ? one.leaf : "-", end == 0 ? "-" : one.leaf, fmt::format("{}: {}", name, one.leaf),
           std::move(one.next));
    }
  }

  void Line() {
    const auto speed = [](const formats::SonicPort& port) {
      return port.speed_mbps ? fmt::format("{} Gb/s", *port.speed_mbps / 1000) : std::string();
    };
    const formats::SonicPort &here = *ports_[0], &there = *ports_[1];
    if (here.speed_mbps && there.speed_mbps && *here.speed_mbps != *there.speed_mbps)
      Find(LosslessVerdict::kContradiction, "link-speed", "speed", speed(here), speed(there),
           "the ends have different speeds", "set one speed at both ends");
    const auto a = lossless::ParseFec(here.fec), b = lossless::ParseFec(there.fec);
    if (a && b && *a != *b)
      Find(LosslessVerdict::kContradiction, "link-fec", "fec", here.fec, there.fec,
           "the ends code differently: what arrives is broken", "set the same FEC at both ends");
  }

  void Find(LosslessVerdict weight, std::string rule, std::string setting, std::string here,
            std::string there, std::string sentence, std::string next) {
    const auto known = [](std::string value) { return value.empty() ? std::string(kNotKnown) : value; };
    outcome_.findings.push_back({weight, std::move(rule), std::move(setting), known(std::move(here)),
                                 known(std::move(there)), std::move(sentence), std::move(next)});
  }

  const std::array<std::string, 2> names_;
  const std::array<const formats::SonicPort*, 2> ports_;
  CableOutcome outcome_;
};

class Linking {
 public:
  explicit Linking(std::span<const KnownSwitch> switches) : switches_(switches) {
    for (std::size_t at = 0; at < switches.size(); ++at) {
      by_name_.Add(switches[at].name, int(at));
      by_chassis_.Add(switches[at].chassis_id, int(at));
    }
  }

  std::vector<SwitchLink> Run() && {
    for (std::size_t at = 0; at < switches_.size(); ++at) {
      if (!IsAsked(int(at))) continue;
      for (const auto& [port, seen] : *switches_[at].neighbours) Take({int(at), port}, seen);
    }
    std::map<End, int> links_of;
    for (const auto& ends : links_) {
      ++links_of[ends.first];
      ++links_of[ends.second];
    }
    std::vector<SwitchLink> links;
    for (const auto& ends : links_) {
      const bool several = links_of[ends.first] > 1 || links_of[ends.second] > 1;
      links.push_back(LinkOf(ends.first, ends.second, several));
    }
    std::sort(links.begin(), links.end(), [](const SwitchLink& a, const SwitchLink& b) {
      return std::tie(a.lower_at, a.lower_port, a.upper_at, a.upper_port) <
             std::tie(b.lower_at, b.lower_port, b.upper_at, b.upper_port);
    });
    return links;
  }

 private:
  bool IsAsked(int at) const {
    const KnownSwitch& one = switches_[std::size_t(at)];
    const bool named = !one.chassis_id.empty() || by_name_.Find(one.name) != ByName::kSeveral;
    return one.config != nullptr && one.neighbours != nullptr && named;
  }

  // The one switch that is meant, by its chassis id where either says one; -1 = none that is asked, or one of several.
  int SwitchOf(const Neighbour& seen) const {
    int found = by_chassis_.Find(seen.chassis_id);
    if (found == ByName::kNobody) {
      found = by_name_.Find(seen.system);
      const bool other =
          found >= 0 && !seen.chassis_id.empty() && !switches_[std::size_t(found)].chassis_id.empty();
      if (other) return -1;
    }
    return found >= 0 && IsAsked(found) ? found : -1;
  }

  // SONiC says the alias as port id and the name as description, by sonic-buildimage's lldpmgrd.
  const formats::SonicPort* PortSeen(int at, const Neighbour& seen) const {
    const formats::SonicConfig& config = *switches_[std::size_t(at)].config;
    const formats::SonicPort* port = seen.port_id.empty() ? nullptr : PortOf(config, seen.port_id);
    if (port == nullptr && !seen.port_description.empty()) port = PortOf(config, seen.port_description);
    return port;
  }

  void Take(const End& here, const Neighbour& seen) {
    const int there = SwitchOf(seen);
    if (there < 0 || there == here.at ||
        PortOf(*switches_[std::size_t(here.at)].config, here.port) == nullptr)
      return;
    const formats::SonicPort* port = PortSeen(there, seen);
    if (port == nullptr) return;
    End one = here, other{there, port->name};
    if (IsAbove(one.at, other.at)) std::swap(one, other);
    links_.emplace(one, other);
  }

  bool IsAbove(int a, int b) const {
    const KnownSwitch &one = switches_[std::size_t(a)], &other = switches_[std::size_t(b)];
    return std::tuple(one.tier, std::string_view(NameOf(one))) >
           std::tuple(other.tier, std::string_view(NameOf(other)));
  }

  // Whether who stands at that end says that the cable goes elsewhere.
  bool Denies(const End& end, const End& other) const {
    const Neighbours& seen = *switches_[std::size_t(end.at)].neighbours;
    const auto found = seen.find(end.port);
    return found != seen.end() && !found->second.system.empty() && SwitchOf(found->second) != other.at;
  }

  SwitchLink LinkOf(const End& lower, const End& upper, bool several) const {
    const KnownSwitch &below = switches_[std::size_t(lower.at)], &above = switches_[std::size_t(upper.at)];
    SwitchLink link{NameOf(below), NameOf(above), lower.port, upper.port, lower.at, upper.at, {}};
    const std::string here = fmt::format("{} {}", link.lower, link.lower_port),
                      there = fmt::format("{} {}", link.upper, link.upper_port);
    if (several || Denies(lower, upper) || Denies(upper, lower)) {
      link.outcome = {
          LosslessVerdict::kUnproved,
          {{LosslessVerdict::kUnproved, "lldp-disagrees", "leafPort", here, there,
            fmt::format("one says that {} and {} are one cable, and another says otherwise", here, there),
            "`show lldp table` on both switches"}}};
      return link;
    }
    link.outcome =
        Comparing(here, *PortOf(*below.config, lower.port), there, *PortOf(*above.config, upper.port)).Run();
    return link;
  }

  const std::span<const KnownSwitch> switches_;
  ByName by_name_, by_chassis_;
  std::set<std::pair<End, End>> links_;  // that an end speaks of, or both
};

}  // namespace

const std::string& NameOf(const KnownSwitch& known) {
  return known.name.empty() ? known.chassis_id : known.name;
}

std::vector<SwitchLink> FindSwitchLinks(std::span<const KnownSwitch> switches) {
  return Linking(switches).Run();
}

}  // namespace heddle::switches
