#include "switches/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "formats/printable.h"
#include "switches/neighbours.h"

namespace heddle::switches {
namespace {

constexpr std::size_t kMostNamed = 3;
constexpr std::size_t kMaxWord = 100;

// Positions by a small number that each has, in order of both; those without (-1) are in no group.
class Groups {
 public:
  Groups() = default;
  Groups(std::span<const int> numbers, std::size_t groups) : starts_(groups + 1, 0) {
    for (const int number : numbers) {
      if (number >= 0) ++starts_[std::size_t(number) + 1];
    }
    for (std::size_t i = 0; i < groups; ++i) starts_[i + 1] += starts_[i];
    members_.resize(starts_.back());
    std::vector<std::size_t> next(starts_.begin(), starts_.end() - 1);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] >= 0) members_[next[std::size_t(numbers[i])]++] = i;
    }
  }
  std::size_t size() const { return starts_.empty() ? 0 : starts_.size() - 1; }
  std::span<std::size_t> operator[](std::size_t group) {
    return std::span(members_).subspan(starts_[group], starts_[group + 1] - starts_[group]);
  }
  std::span<const std::size_t> operator[](std::size_t group) const {
    return std::span(members_).subspan(starts_[group], starts_[group + 1] - starts_[group]);
  }

 private:
  std::vector<std::size_t> starts_, members_;
};

class Doubting {
 public:
  Doubting(std::span<const NamedCable> names, std::span<const std::string> netdevs,
           std::span<const KnownSwitch> switches)
      : names_(names), netdevs_(netdevs), switches_(switches) {
    NumberNodes();
    for (std::size_t at = 0; at < switches.size(); ++at) {
      switches_by_name_.Add(switches[at].name, int(at));
      switches_by_name_.AddChassis(switches[at].chassis_id, int(at));
    }
    FindClaims();
    called_.resize(node_names_.size(), 0);
    for (const Claim& claim : claims_) {
      if (claim.who >= 0) called_[std::size_t(claim.who)] = 1;
    }
  }

  std::vector<CableDoubt> Run() {
    for (const Claim& claim : claims_) {
      const std::string others = Claimants(claim.cables);
      for (const std::size_t cable : claim.cables) {
        if (!others.empty()) {
          doubts_.push_back({cable, Shared(names_[cable], others, claim.seen)});
        } else if (claim.seen != nullptr && Contradicts(cable, claim)) {
          doubts_.push_back({cable, Otherwise(cable, *claim.seen)});
        }
      }
    }
    std::sort(doubts_.begin(), doubts_.end(),
              [](const CableDoubt& a, const CableDoubt& b) { return a.cable < b.cable; });
    return std::move(doubts_);
  }

 private:
  // One port of a switch, by the cables that are said to end there.
  struct Claim {
    std::span<const std::size_t> cables;
    const Neighbour* seen = nullptr;  // whom the switch sees there; null: it says no name
    int who = ByName::kNobody;        // which of the nodes that is; as ByName::Find
  };

  // By numbers from here on: names of thousands of nodes lie all over the memory, and each cable asked for its own
  // several times. A node's cables mostly stand together.
  void NumberNodes() {
    std::map<std::string_view, int> numbers;
    node_of_.reserve(names_.size());
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const std::string& node = names_[i].node;
      if (i > 0 && names_[i - 1].node == node) {
        node_of_.push_back(node_of_.back());
        continue;
      }
      const auto [found, fresh] = numbers.emplace(node, int(node_names_.size()));
      if (fresh) {
        nodes_.Add(node, found->second);
        node_names_.push_back(&node);
      }
      node_of_.push_back(found->second);
    }
    of_node_ = Groups(node_of_, node_names_.size());
    called_so_.reserve(node_names_.size());
    for (const std::string* name : node_names_) called_so_.push_back(nodes_.Find(*name));
  }

  void FindClaims() {
    std::vector<int> at(names_.size(), -1);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (IsClaim(names_[i])) at[i] = names_[i].at;
    }
    of_switch_ = Groups(at, switches_.size());
    for (std::size_t one = 0; one < of_switch_.size(); ++one) {
      const std::span<std::size_t> cables = of_switch_[one];
      std::sort(cables.begin(), cables.end(), [this](std::size_t a, std::size_t b) {
        const int order = names_[a].leaf_port.compare(names_[b].leaf_port);
        return order != 0 ? order < 0 : a < b;
      });
      for (std::size_t first = 0, last = 0; first < cables.size(); first = last) {
        const std::string& port = names_[cables[first]].leaf_port;
        while (last < cables.size() && names_[cables[last]].leaf_port == port) ++last;
        Claim claim;
        claim.cables = cables.subspan(first, last - first);
        claim.seen = SeenAt(int(one), port);
        if (claim.seen != nullptr) claim.who = WhoIs(claim.seen->system, node_of_[cables[first]]);
        claims_.push_back(claim);
      }
    }
  }

  // Mostly a switch sees who claims the port, by that very name.
  int WhoIs(const std::string& system, int claimant) const {
    const bool own = system == *node_names_[std::size_t(claimant)];
    return own ? called_so_[std::size_t(claimant)] : nodes_.Find(system);
  }

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

  bool Contradicts(std::size_t cable, const Claim& claim) const {
    const int mine = node_of_[cable];
    const bool itself = claim.who >= 0 ? claim.who == mine : IsCalled(claim.seen->system, names_[cable].node);
    if (itself) return IsOtherPort(cable, *claim.seen);
    return claim.who != ByName::kNobody || IsSwitch(*claim.seen) || called_[std::size_t(mine)] != 0;
  }

  // By the names of interfaces alone: a MAC may be that of a bond.
  bool IsOtherPort(std::size_t cable, const Neighbour& seen) const {
    const auto is = [&](const std::string& netdev) {
      return !netdev.empty() && (netdev == seen.port_id || netdev == seen.port_description);
    };
    if (netdevs_[cable].empty() || is(netdevs_[cable])) return false;
    const std::span<const std::size_t> own = of_node_[std::size_t(node_of_[cable])];
    return std::any_of(own.begin(), own.end(), [&](std::size_t other) { return is(netdevs_[other]); });
  }

  // "gpu-017 mlx5_0:1 and gpu-018 mlx5_0:1"; empty where all are of one host.
  std::string Claimants(std::span<const std::size_t> cables) const {
    const int first = node_of_[cables.front()];
    if (std::all_of(cables.begin(), cables.end(),
                    [&](std::size_t cable) { return node_of_[cable] == first; }))
      return "";
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
  ByName nodes_, switches_by_name_;
  std::vector<const std::string*> node_names_;  // by number
  std::vector<int> called_so_;  // by number: who is found by that name, which several may have
  std::vector<int> node_of_;    // of each cable: which of the nodes
  Groups of_node_, of_switch_;  // cables; of_switch_ those that claim a port, by its name
  std::vector<Claim> claims_;   // by switch and port, into of_switch_
  std::vector<char> called_;    // by node: whether a switch somewhere calls it by its name
  std::vector<CableDoubt> doubts_;
};

}  // namespace

std::vector<CableDoubt> FindDoubts(std::span<const NamedCable> names, std::span<const std::string> netdevs,
                                   std::span<const KnownSwitch> switches) {
  return Doubting(names, netdevs, switches).Run();
}

}  // namespace heddle::switches
