#include "nodeagent/assembly/rails.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace heddle::nodeagent {
namespace {

using topology::Missing;
using topology::NicRole;
using topology::PciDistance;
using topology::Transport;

// Slower RDMA NICs than this far from every GPU are the host's own network card with RDMA switched on.
constexpr int kStorageGbps = 50;

// GPUs that share their nearest compute NICs, and those NICs.
struct Group {
  std::vector<int> gpus;
  std::vector<std::size_t> nics;
};

// The NICs near GPUs of one chip: transport and PCI id.
using Chip = std::pair<Transport, std::string>;
struct Kind {
  int best_gbps = 0;            // that one of them carries
  std::set<std::string> cards;  // a card with two ports is two NICs
};

Chip ChipOf(const RailNic& nic) {
  return {nic.transport, nic.pci_id};
}

bool MayEqual(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() || a == b;
}

class Measurement {
 public:
  Measurement(int gpus, const std::vector<RailNic>& nics) : gpus_(gpus), nics_(nics) {}

  Rails Run() {
    rails_.places.resize(nics_.size());
    for (std::size_t i = 0; i < nics_.size(); ++i) rails_.places[i].role = RoleFarFromGpus(nics_[i]);
    FindCompute();
    if (compute_.empty()) return std::move(rails_);
    for (const std::size_t nic : compute_) rails_.places[nic] = {NicRole::kCompute, Missing::kUnknown};
    Number(Groups());
    return std::move(rails_);
  }

 private:
  static NicRole RoleFarFromGpus(const RailNic& nic) {
    if (nic.storage) return NicRole::kStorage;
    const bool rdma = nic.transport != Transport::kEthernet;
    return rdma && (nic.rate_gbps == 0 || nic.rate_gbps >= kStorageGbps) ? NicRole::kStorage
                                                                         : NicRole::kManagement;
  }

  PciDistance Nearest(const RailNic& nic) const {
    return nic.distance.empty() ? PciDistance::kSys
                                : *std::min_element(nic.distance.begin(), nic.distance.end());
  }

  std::vector<std::size_t> RdmaWithin(PciDistance limit) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < nics_.size(); ++i) {
      const RailNic& nic = nics_[i];
      if (nic.transport != Transport::kEthernet && !nic.storage && Nearest(nic) <= limit) found.push_back(i);
    }
    return found;
  }

  void FindCompute() {
    if (gpus_ == 0) return;
    limit_ = PciDistance::kPxb;
    compute_ = RdmaWithin(limit_);
    if (compute_.empty()) {
      limit_ = PciDistance::kNode;
      compute_ = RdmaWithin(limit_);
    }
    if (compute_.empty()) {
      limit_ = PciDistance::kSys;
      compute_ = RdmaWithin(limit_);
    }
    KeepDimRails();
    KeepMainTransport();
    KeepFast();
  }

  std::map<Chip, Kind> Kinds() const {
    std::map<Chip, Kind> kinds;
    for (const std::size_t i : compute_) {
      const RailNic& nic = nics_[i];
      Kind& kind = kinds[ChipOf(nic)];
      kind.best_gbps = std::max(kind.best_gbps, nic.rate_gbps);
      kind.cards.insert(nic.pci.empty() ? std::to_string(i) : nic.pci.substr(0, nic.pci.rfind('.')));
    }
    return kinds;
  }

  int BestGbps() const {
    int best = 0;
    for (const std::size_t i : compute_) best = std::max(best, nics_[i].rate_gbps);
    return best;
  }

  // A node that boots while the leaves of its rails are off sees only its storage up, and storage may have twice the
  // rate of the rails. It has fewer cards than there are GPUs, and the rails have one for each.
  void KeepDimRails() {
    const int best = BestGbps();
    if (best == 0) return;
    const std::map<Chip, Kind> kinds = Kinds();
    const auto gpus = std::size_t(gpus_);
    std::size_t lit = 0, most = 0;
    Chip rails;
    for (const auto& [chip, kind] : kinds) {
      if (kind.best_gbps * 2 > best) lit += kind.cards.size();
      const bool dim = kind.best_gbps == 0 || kind.best_gbps * 2 == best;
      if (!dim || kind.cards.size() <= most) continue;
      most = kind.cards.size();
      rails = chip;
    }
    if (most < gpus || lit >= gpus) return;
    std::erase_if(compute_, [&](std::size_t i) { return ChipOf(nics_[i]) != rails; });
  }

  // A storage NIC may well sit behind a GPU's switch; it is of the other transport then.
  void KeepMainTransport() {
    const std::map<Chip, Kind> kinds = Kinds();
    std::map<Transport, std::pair<int, int>> weight;  // bandwidth, then number
    for (const std::size_t i : compute_) {
      // What a NIC that is down would carry, its equals say.
      weight[nics_[i].transport].first += kinds.at(ChipOf(nics_[i])).best_gbps;
      ++weight[nics_[i].transport].second;
    }
    if (weight.size() < 2) return;
    const auto most = std::max_element(weight.begin(), weight.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    std::erase_if(compute_, [&](std::size_t i) { return nics_[i].transport != most->first; });
  }

  void KeepFast() {
    const int best = BestGbps();
    const std::vector<std::size_t> leaders = Leaders(best);
    std::erase_if(compute_, [&](std::size_t i) {
      if (std::find(leaders.begin(), leaders.end(), i) != leaders.end()) return false;
      const RailNic& nic = nics_[i];
      const bool slow = nic.whole && nic.rate_gbps > 0 && nic.rate_gbps * 2 < best;
      return slow || !GoesWith(leaders, nic, best == 0);
    });
  }

  // The NICs that are of the rails for certain.
  std::vector<std::size_t> Leaders(int best) const {
    const std::map<Chip, Kind> kinds = Kinds();
    std::size_t most = 0;
    for (const auto& [chip, kind] : kinds) most = std::max(most, kind.cards.size());
    std::vector<std::size_t> leaders;
    for (const std::size_t i : compute_) {
      const bool leads =
          best > 0 ? nics_[i].rate_gbps * 2 > best : kinds.at(ChipOf(nics_[i])).cards.size() == most;
      if (leads) leaders.push_back(i);
    }
    return leaders;
  }

  // Half of the rate is a link that lost half of its lanes, or another kind of NIC. `dark`: no link at all is up.
  bool GoesWith(const std::vector<std::size_t>& leaders, const RailNic& nic, bool dark) const {
    bool same_chip = false;
    for (const std::size_t leader : leaders) {
      if (!MayEqual(nic.pci_id, nics_[leader].pci_id)) continue;
      if (MayEqual(nic.board, nics_[leader].board)) return true;
      same_chip = true;
    }
    // A card that was replaced by one of another board is still its GPU's only one.
    return (same_chip || dark || nic.rate_gbps > 0) && HasGpuOfItsOwn(leaders, nic);
  }

  bool HasGpuOfItsOwn(const std::vector<std::size_t>& leaders, const RailNic& nic) const {
    for (std::size_t gpu = 0; gpu < nic.distance.size(); ++gpu) {
      const PciDistance distance = nic.distance[gpu];
      const bool own = distance <= limit_ && std::none_of(leaders.begin(), leaders.end(), [&](std::size_t i) {
                         return nics_[i].distance[gpu] <= distance;
                       });
      if (own) return true;
    }
    return false;
  }

  std::vector<Group> Groups() const {
    // group[g] for GPUs, group[gpus + n] for NICs; GPUs and NICs that are joined by a nearest path share a
    // number.
    std::vector<std::size_t> group(std::size_t(gpus_) + nics_.size());
    std::iota(group.begin(), group.end(), 0);
    for (int gpu = 0; gpu < gpus_; ++gpu) {
      PciDistance best = PciDistance::kSys;
      for (const std::size_t nic : compute_) best = std::min(best, nics_[nic].distance[std::size_t(gpu)]);
      if (best > limit_) continue;  // its own NIC is gone; it borrows one and names no rail
      for (const std::size_t nic : compute_) {
        if (nics_[nic].distance[std::size_t(gpu)] != best) continue;
        const std::size_t from = group[std::size_t(gpus_) + nic], to = group[std::size_t(gpu)];
        std::replace(group.begin(), group.end(), from, to);
      }
    }
    std::map<std::size_t, Group> found;
    for (int gpu = 0; gpu < gpus_; ++gpu) found[group[std::size_t(gpu)]].gpus.push_back(gpu);
    for (const std::size_t nic : compute_) found[group[std::size_t(gpus_) + nic]].nics.push_back(nic);
    std::vector<Group> groups;
    groups.reserve(found.size());
    for (auto& [number, members] : found) groups.push_back(std::move(members));
    return groups;
  }

  void Number(const std::vector<Group>& groups) {
    // GPUs per NIC where NICs are fewer, as most groups have it: one that lost a NIC renumbers no other.
    std::map<std::size_t, int> shares;
    for (const Group& group : groups) {
      if (!group.gpus.empty() && !group.nics.empty())
        ++shares[std::max<std::size_t>(1, group.gpus.size() / group.nics.size())];
    }
    const auto usual = std::max_element(shares.begin(), shares.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::size_t share = usual == shares.end() ? 1 : usual->first;
    bool dealt_blindly = false;
    for (const Group& group : groups) {
      if (group.gpus.empty() || group.nics.empty()) continue;
      const bool guess = limit_ > PciDistance::kPxb && group.gpus.size() > 1;
      const bool even =
          group.nics.size() % group.gpus.size() == 0 || group.gpus.size() % group.nics.size() == 0;
      if (limit_ == PciDistance::kSys || (guess && !even)) {
        if (limit_ == PciDistance::kSys) {
          rails_.notes.emplace_back(
              "neither a PCIe switch nor a NUMA node tells which NIC is near which GPU, so their rails are "
              "unknown: "
              "where a hypervisor hides both, give the NCCL topology file of the machine type "
              "(--from-nccl-xml)");
          continue;
        }
        rails_.notes.emplace_back(
            "no PCIe switch is visible and the NICs do not divide evenly among the GPUs of a NUMA "
            "node, so their rails are unknown");
        continue;
      }
      dealt_blindly = dealt_blindly || guess;
      Deal(group, share);
    }
    if (dealt_blindly) {
      rails_.notes.push_back(
          fmt::format("no PCIe switch is visible, so rails follow the PCI order within a {}",
                      rails_.reach == PciDistance::kPhb ? "host bridge" : "NUMA node"));
    }
    FindBare(groups, share);
  }

  // NICs for each GPU that as many GPUs have as no other number, silent ones counted, and how many GPUs those are.
  static std::pair<std::size_t, std::size_t> UsualNics(const std::vector<Group>& groups) {
    std::map<std::size_t, std::size_t> gpus;  // by NICs for each
    for (const Group& group : groups) {
      if (!group.gpus.empty()) gpus[group.nics.size() / group.gpus.size()] += group.gpus.size();
    }
    std::pair<std::size_t, std::size_t> most{0, 0};
    for (const auto& [nics, number] : gpus) {
      if (number > most.second) most = {nics, number};
    }
    return most;
  }

  void FindBare(const std::vector<Group>& groups, std::size_t share) {
    std::size_t whole = 0;
    for (const Group& group : groups) {
      if (group.nics.size() * share >= group.gpus.size()) whole += group.gpus.size();
    }
    const auto [each, having] = UsualNics(groups);
    for (const Group& group : groups) {
      std::set<int> rails, given;                      // of its NICs that are there, and that are given away
      std::map<int, std::vector<std::string>> silent;  // PCI addresses of those that are silent, by rail
      std::size_t here = 0;
      bool told = group.nics.empty();
      for (const std::size_t nic : group.nics) {
        const topology::Fact<int>& rail = rails_.places[nic].rail;
        told = told || rail.known();
        if (!nics_[nic].silent || nics_[nic].given) ++here;
        if (!rail.known()) continue;
        if (nics_[nic].given) {
          given.insert(*rail);
        } else if (nics_[nic].silent) {
          std::vector<std::string>& functions = silent[*rail];
          if (!nics_[nic].pci.empty()) functions.push_back(nics_[nic].pci);
        } else {
          rails.insert(*rail);
        }
      }
      const std::size_t gpus = group.gpus.size();
      const bool any_silent = here < group.nics.size();
      const bool none_left = here * share < gpus, fewer = here < each * gpus;
      const auto usual = [&](std::size_t number) {
        return any_silent || (limit_ == PciDistance::kPxb && number * 4 >= std::size_t(gpus_) * 3);
      };
      // Whose NIC it was that is nowhere, nobody can say of GPUs that share their switch and have one each.
      const bool bare = none_left && usual(whole);
      const bool shorn = !none_left && fewer && (any_silent || gpus == 1) && usual(having);
      if (!told || (!bare && !shorn)) continue;
      for (const int gpu : group.gpus) {
        const int rail = gpu / int(share);
        const bool others = rails.contains(rail), kept = others || given.contains(rail);
        const auto found = silent.find(rail);
        if (found != silent.end()) {
          rails_.bare.push_back({gpu, rail, true, others, found->second});
        } else if (kept ? shorn && !any_silent : bare) {
          rails_.bare.push_back({gpu, rail, any_silent, others, {}});
        }
      }
    }
  }

  void Deal(const Group& group, std::size_t share) {
    const std::size_t gpus = group.gpus.size(), nics = group.nics.size();
    for (std::size_t i = 0; i < nics; ++i) {
      rails_.reach = std::max(rails_.reach, Nearest(nics_[group.nics[i]]));
      const std::size_t owner = nics >= gpus ? std::min(i / (nics / gpus), gpus - 1) : i * gpus / nics;
      rails_.places[group.nics[i]].rail = group.gpus[owner] / int(share);
    }
  }

  const int gpus_;
  const std::vector<RailNic>& nics_;
  PciDistance limit_ = PciDistance::kPxb;
  std::vector<std::size_t> compute_;  // positions in nics_, in order
  Rails rails_;
};

}  // namespace

Rails MeasureRails(int gpus, const std::vector<RailNic>& nics) {
  return Measurement(gpus, nics).Run();
}

}  // namespace heddle::nodeagent
