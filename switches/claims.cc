#include "switches/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "formats/printable.h"
#include "switches/neighbours.h"

namespace heddle::switches {
namespace {

constexpr std::size_t kMostNamed = 3;
constexpr std::size_t kMaxWord = 100;

class Doubting {
 public:
  Doubting(std::span<const NamedCable> names, std::span<const std::string> netdevs,
           std::span<const KnownSwitch> switches)
      : names_(names), netdevs_(netdevs), switches_(switches) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      of_node_[names[i].node].push_back(i);
      if (IsClaim(names[i])) claims_[{names[i].at, names[i].leaf_port}].push_back(i);
    }
    for (const auto& [node, cables] : of_node_) {
      nodes_.Add(node, int(node_names_.size()));
      node_names_.push_back(node);
    }
    for (std::size_t at = 0; at < switches.size(); ++at) {
      switches_by_name_.Add(switches[at].name, int(at));
      switches_by_name_.AddChassis(switches[at].chassis_id, int(at));
    }
    for (const auto& [where, cables] : claims_) {
      const Neighbour* const seen = SeenAt(where.first, where.second);
      const int node = seen == nullptr ? ByName::kNobody : nodes_.Find(seen->system);
      if (node >= 0) called_.insert(node_names_[std::size_t(node)]);
    }
  }

  std::vector<CableDoubt> Run() {
    for (const auto& [where, cables] : claims_) {
      const Neighbour* const seen = SeenAt(where.first, where.second);
      const std::string others = Claimants(cables);
      for (const std::size_t cable : cables) {
        if (!others.empty()) {
          doubts_.push_back({cable, Shared(names_[cable], others, seen)});
        } else if (seen != nullptr && Contradicts(cable, *seen)) {
          doubts_.push_back({cable, Otherwise(cable, *seen)});
        }
      }
    }
    std::sort(doubts_.begin(), doubts_.end(),
              [](const CableDoubt& a, const CableDoubt& b) { return a.cable < b.cable; });
    return std::move(doubts_);
  }

 private:
  // Where the switch's configuration is not known, its port may have two names; and nothing is proved anyway.
  bool IsClaim(const NamedCable& name) const {
    return name.at >= 0 && !name.leaf_port.empty() && switches_[std::size_t(name.at)].config != nullptr;
  }

  const Neighbour* SeenAt(int at, const std::string& port) const {
    const Neighbours* const seen = switches_[std::size_t(at)].neighbours;
    if (seen == nullptr) return nullptr;
    const auto found = seen->find(port);
    return found == seen->end() || found->second.system.empty() ? nullptr : &found->second;
  }

  bool IsSwitch(const Neighbour& seen) const {
    return switches_by_name_.Find(seen.system) != ByName::kNobody ||
           switches_by_name_.Find(seen.chassis_id) != ByName::kNobody;
  }

  bool Contradicts(std::size_t cable, const Neighbour& seen) const {
    const NamedCable& name = names_[cable];
    const int who = nodes_.Find(seen.system);
    const bool itself =
        who >= 0 ? node_names_[std::size_t(who)] == name.node : IsCalled(seen.system, name.node);
    if (itself) return IsOtherPort(cable, seen);
    return who != ByName::kNobody || IsSwitch(seen) || called_.contains(name.node);
  }

  // By the names of interfaces alone: a MAC may be that of a bond.
  bool IsOtherPort(std::size_t cable, const Neighbour& seen) const {
    const auto is = [&](const std::string& netdev) {
      return !netdev.empty() && (netdev == seen.port_id || netdev == seen.port_description);
    };
    if (netdevs_[cable].empty() || is(netdevs_[cable])) return false;
    const auto& own = of_node_.at(names_[cable].node);
    return std::any_of(own.begin(), own.end(), [&](std::size_t other) { return is(netdevs_[other]); });
  }

  // "gpu-017 mlx5_0:1 and gpu-018 mlx5_0:1"; empty where all are of one host.
  std::string Claimants(const std::vector<std::size_t>& cables) const {
    std::set<std::string> nodes;
    for (const std::size_t cable : cables) nodes.insert(names_[cable].node);
    if (nodes.size() < 2) return "";
    std::string text;
    const std::size_t shown = std::min(cables.size(), kMostNamed);
    for (std::size_t i = 0; i < shown; ++i) {
      const NamedCable& name = names_[cables[i]];
      text += fmt::format("{}{} {}",
                          i == 0                   ? ""
                          : i + 1 == cables.size() ? " and "
                                                   : ", ",
                          name.node, name.port);
    }
    if (shown < cables.size()) text += fmt::format(" and {} more", cables.size() - shown);
    return text;
  }

  // "gpu-018 eth5"
  static std::string Named(const Neighbour& seen) {
    const std::string& port = seen.port_description.empty() ? seen.port_id : seen.port_description;
    return formats::Printable(seen.system, kMaxWord) +
           (port.empty() ? "" : " " + formats::Printable(port, kMaxWord));
  }

  static lossless::CableFinding Finding(std::string rule, std::string host, std::string leaf,
                                        std::string sentence, std::string next) {
    return {lossless::LosslessVerdict::kUnproved,
            std::move(rule),
            "leafPort",
            std::move(host),
            std::move(leaf),
            std::move(sentence),
            std::move(next)};
  }

  static lossless::CableFinding Shared(const NamedCable& name, const std::string& claimants,
                                       const Neighbour* seen) {
    return Finding(
        "port-claimed-twice", fmt::format("{} {}", name.leaf, name.leaf_port),
        seen == nullptr ? "not known" : Named(*seen),
        fmt::format("{} both say that they end on {} {}{}", claimants, name.leaf, name.leaf_port,
                    seen == nullptr ? "" : fmt::format(", where the switch sees {}", Named(*seen))),
        "follow these cables: one was moved, or a box between them forwards LLDP to all");
  }

  lossless::CableFinding Otherwise(std::size_t cable, const Neighbour& seen) const {
    const NamedCable& name = names_[cable];
    return Finding("lldp-disagrees", fmt::format("{} {}", name.leaf, name.leaf_port), Named(seen),
                   fmt::format("{} {} says that it ends on {} {}, and the switch sees {} there", name.node,
                               name.port, name.leaf, name.leaf_port, Named(seen)),
                   "follow the cable: `lldpcli show neighbors` on the host, `show lldp table` on the switch");
  }

  const std::span<const NamedCable> names_;
  const std::span<const std::string> netdevs_;
  const std::span<const KnownSwitch> switches_;
  std::map<std::string, std::vector<std::size_t>> of_node_;
  std::map<std::pair<int, std::string>, std::vector<std::size_t>> claims_;  // by switch and its port
  ByName nodes_, switches_by_name_;
  std::vector<std::string> node_names_;
  std::set<std::string> called_;  // nodes that a switch somewhere calls by their name
  std::vector<CableDoubt> doubts_;
};

}  // namespace

std::vector<CableDoubt> FindDoubts(std::span<const NamedCable> names, std::span<const std::string> netdevs,
                                   std::span<const KnownSwitch> switches) {
  return Doubting(names, netdevs, switches).Run();
}

}  // namespace heddle::switches
