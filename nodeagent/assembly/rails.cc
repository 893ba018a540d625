#include "nodeagent/assembly/rails.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

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
    const bool rdma = nic.transport != Transport::kEthernet;
    return rdma && (!nic.up || nic.rate_gbps >= kStorageGbps) ? NicRole::kStorage : NicRole::kManagement;
  }

  PciDistance Nearest(const RailNic& nic) const {
    return nic.distance.empty() ? PciDistance::kSys
                                : *std::min_element(nic.distance.begin(), nic.distance.end());
  }

  std::vector<std::size_t> RdmaWithin(PciDistance limit) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < nics_.size(); ++i) {
      if (nics_[i].transport != Transport::kEthernet && Nearest(nics_[i]) <= limit) found.push_back(i);
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
    KeepMainTransport();
    KeepFast();
  }

  // A storage NIC may well sit behind a GPU's switch; it is of the other transport then.
  void KeepMainTransport() {
    std::map<Transport, std::pair<int, int>> weight;  // bandwidth, then number
    for (const std::size_t i : compute_) {
      weight[nics_[i].transport].first += nics_[i].rate_gbps;
      ++weight[nics_[i].transport].second;
    }
    if (weight.size() < 2) return;
    const auto most = std::max_element(weight.begin(), weight.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    std::erase_if(compute_, [&](std::size_t i) { return nics_[i].transport != most->first; });
  }

  void KeepFast() {
    int best = 0;
    for (const std::size_t i : compute_) best = std::max(best, nics_[i].rate_gbps);
    // Half: a link that trained to half of its lanes is a degraded rail, not another kind of NIC.
    std::erase_if(compute_, [&](std::size_t i) { return nics_[i].up && nics_[i].rate_gbps * 2 < best; });
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
    std::size_t share = 1;  // GPUs per NIC where NICs are fewer
    for (const Group& group : groups) {
      if (!group.nics.empty()) share = std::max(share, group.gpus.size() / group.nics.size());
    }
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
