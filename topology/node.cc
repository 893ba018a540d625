#include "topology/node.h"

#include <algorithm>

namespace heddle::topology {
namespace {

constexpr int kMaxPortGbps = 1'000'000;

// Position in `nics` or -1. Linear: nodes have tens of NICs, and the order is not to be trusted.
int NicPosition(const Node& node, std::string_view name) {
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    if (node.nics[i].name == name) return int(i);
  }
  return -1;
}

int GpuPosition(const Node& node, int index) {
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    if (node.gpus[i].index == index) return int(i);
  }
  return -1;
}

// Which NICs each GPU may be dealt, and the dealing of them.
class Dealing {
 public:
  explicit Dealing(const Node& node) : node_(node), candidates_(node.gpus.size()), dealt_(node.gpus.size()) {
    for (std::size_t i = 0; i < node.nics.size(); ++i) {
      if (node.nics[i].role == NicRole::kCompute) order_.push_back(int(i));
    }
    std::stable_sort(order_.begin(), order_.end(), [&](int a, int b) { return Before(a, b); });
    FindCandidates();
    holder_.assign(node.nics.size(), -1);
    users_.assign(node.nics.size(), 0);
  }

  std::vector<std::vector<int>> Deal() && {
    std::vector<bool> done(candidates_.size(), false);
    for (std::size_t gpu = 0; gpu < candidates_.size(); ++gpu) {
      if (done[gpu] || candidates_[gpu].empty()) continue;
      const std::vector<int> rivals = Rivals(int(gpu));
      for (const int rival : rivals) done[std::size_t(rival)] = true;
      DealAmong(rivals);
    }
    return std::move(dealt_);
  }

 private:
  bool Before(int a, int b) const {
    const Nic& x = node_.nics[std::size_t(a)];
    const Nic& y = node_.nics[std::size_t(b)];
    if (x.rail.known() != y.rail.known()) return x.rail.known();
    if (x.rail.known() && *x.rail != *y.rail) return *x.rail < *y.rail;
    return x.name < y.name;
  }

  void FindCandidates() {
    std::vector<PciDistance> nearest(candidates_.size(), PciDistance::kSys);
    for (const GpuNicPath& path : node_.paths) {
      const int gpu = GpuPosition(node_, path.gpu);
      const int nic = NicPosition(node_, path.nic);
      if (gpu < 0 || nic < 0 || node_.nics[std::size_t(nic)].role != NicRole::kCompute) continue;
      auto& candidates = candidates_[std::size_t(gpu)];
      auto& best = nearest[std::size_t(gpu)];
      if (!candidates.empty() && path.distance > best) continue;
      if (candidates.empty() || path.distance < best) candidates.clear();
      best = path.distance;
      if (std::find(candidates.begin(), candidates.end(), nic) == candidates.end()) candidates.push_back(nic);
    }
    for (auto& candidates : candidates_) {
      if (candidates.empty()) candidates = order_;
      std::stable_sort(candidates.begin(), candidates.end(), [&](int a, int b) { return Before(a, b); });
    }
  }

  // The GPUs that compete, directly or through others, with `gpu`; in order.
  std::vector<int> Rivals(int gpu) const {
    std::vector<bool> in(candidates_.size(), false), reached(node_.nics.size(), false);
    in[std::size_t(gpu)] = true;
    for (bool grew = true; grew;) {
      grew = false;
      for (std::size_t g = 0; g < candidates_.size(); ++g) {
        const auto& nics = candidates_[g];
        if (!in[g] &&
            std::any_of(nics.begin(), nics.end(), [&](int nic) { return reached[std::size_t(nic)]; })) {
          in[g] = true;
        }
        if (!in[g]) continue;
        for (const int nic : nics) {
          grew = grew || !reached[std::size_t(nic)];
          reached[std::size_t(nic)] = true;
        }
      }
    }
    std::vector<int> rivals;
    for (std::size_t g = 0; g < in.size(); ++g) {
      if (in[g]) rivals.push_back(int(g));
    }
    return rivals;
  }

  void DealAmong(const std::vector<int>& rivals) {
    for (bool first = true;; first = false) {
      for (const int gpu : rivals) {
        for (const int nic : candidates_[std::size_t(gpu)]) holder_[std::size_t(nic)] = -1;
      }
      std::size_t served = 0;
      for (const int gpu : rivals) {
        std::vector<bool> tried(node_.nics.size(), false);
        served += Serve(gpu, tried) ? 1 : 0;
      }
      if (!first && served < rivals.size()) return;
      for (const int gpu : rivals) TakeHeld(gpu);
      if (served < rivals.size()) return ShareAmongTheRest(rivals);
    }
  }

  // Gives `gpu` a NIC that it did not get before: a free one, else by Kuhn's augmenting path one whose holder
  // can move. So the order of NICs follows the order of GPUs wherever it can. Depth is bounded by the number
  // of GPUs.
  bool Serve(int gpu, std::vector<bool>& tried) {
    for (const bool move_others : {false, true}) {
      for (const int nic : candidates_[std::size_t(gpu)]) {
        int& holder = holder_[std::size_t(nic)];
        if (users_[std::size_t(nic)] > 0 || tried[std::size_t(nic)] || (holder >= 0 && !move_others)) {
          continue;
        }
        tried[std::size_t(nic)] = true;
        if (holder < 0 || Serve(holder, tried)) {
          holder = gpu;
          return true;
        }
      }
    }
    return false;
  }

  void TakeHeld(int gpu) {
    for (const int nic : candidates_[std::size_t(gpu)]) {
      if (holder_[std::size_t(nic)] != gpu) continue;
      dealt_[std::size_t(gpu)].push_back(nic);
      ++users_[std::size_t(nic)];
      return;
    }
  }

  void ShareAmongTheRest(const std::vector<int>& rivals) {
    for (const int gpu : rivals) {
      if (!dealt_[std::size_t(gpu)].empty()) continue;
      const auto& nics = candidates_[std::size_t(gpu)];
      const int least = *std::min_element(nics.begin(), nics.end(), [&](int a, int b) {
        return users_[std::size_t(a)] < users_[std::size_t(b)];
      });
      dealt_[std::size_t(gpu)].push_back(least);
      ++users_[std::size_t(least)];
    }
  }

  const Node& node_;
  std::vector<int> order_;                    // compute NICs by rail, then name
  std::vector<std::vector<int>> candidates_;  // by GPU position: its nearest compute NICs
  std::vector<std::vector<int>> dealt_;
  std::vector<int> holder_;  // by NIC position: the GPU that holds it in this round
  std::vector<int> users_;   // by NIC position: GPUs that it was dealt to
};

}  // namespace

int Nic::usable_gbps() const {
  int sum = 0;
  // A port of nonsense counts as kMaxPortGbps and the sum stops there, so that no sum of NICs overflows.
  for (const NicPort& port : ports) {
    if (port.state != LinkState::kDown) {
      sum = std::min(kMaxPortGbps, sum + std::clamp(port.usable_gbps, 0, kMaxPortGbps));
    }
  }
  return sum;
}

int NvLink::usable_gbps(int gpu, int assumed_gbps) const {
  const int all = gbps_per_gpu > 0 ? gbps_per_gpu : assumed_gbps;
  for (const Exception& odd : exceptions) {
    if (odd.gpu != gpu) continue;
    if (odd.usable_gbps) return std::clamp(*odd.usable_gbps, 0, std::max(0, all));
    return links_per_gpu > 0 ? int(std::int64_t{all} * odd.links_up / links_per_gpu) : all;
  }
  return all;
}

bool Nic::up() const {
  return role == NicRole::kCompute && usable_gbps() > 0;
}

const Nic* Node::FindNic(std::string_view nic_name) const {
  const int position = NicPosition(*this, nic_name);
  return position < 0 ? nullptr : &nics[std::size_t(position)];
}

std::vector<const Nic*> Node::NicsOfGpu(int gpu) const {
  const int position = GpuPosition(*this, gpu);
  std::vector<const Nic*> found;
  if (position < 0) return found;
  const std::vector<std::vector<int>> dealt = DealNics(*this);
  for (const int nic : dealt[std::size_t(position)]) found.push_back(&nics[std::size_t(nic)]);
  return found;
}

const Nic* Node::NicOfGpu(int gpu) const {
  const std::vector<const Nic*> found = NicsOfGpu(gpu);
  return found.empty() ? nullptr : found.front();
}

std::vector<std::vector<int>> DealNics(const Node& node) {
  return Dealing(node).Deal();
}

bool BorrowsNics(const Node& node, const Gpu& gpu, const std::vector<int>& dealt) {
  return gpu.nic_gone && std::none_of(dealt.begin(), dealt.end(), [&](int nic) {
           const Fact<int>& rail = node.nics[std::size_t(nic)].rail;
           return rail.known() && *rail == gpu.nic_gone->rail;
         });
}

PciDistance Distance(const Node& node, int gpu_position, int nic_position) {
  const int index = node.gpus[std::size_t(gpu_position)].index;
  const std::string& name = node.nics[std::size_t(nic_position)].name;
  PciDistance best = PciDistance::kSys;
  for (const GpuNicPath& path : node.paths) {
    if (path.gpu == index && path.nic == name) best = std::min(best, path.distance);
  }
  return best;
}

}  // namespace heddle::topology
