#include "nodeagent/assembly/lost_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

namespace heddle::nodeagent {
namespace {

// What stands together, and the NICs of the GPUs' model there.
struct Place {
  std::vector<std::string> gpus;
  std::vector<const PlacedNic*> nics;
  std::size_t missing = 0;
};

class Search {
 public:
  Search(const PciTree& tree, std::vector<std::string> gpus, std::size_t listed,
         const std::vector<PlacedNic>& nics)
      : tree_(tree), listed_(listed), nics_(nics) {
    found_.places = std::move(gpus);
  }

  RailGpus Run() {
    switches_ = SwitchesAreVisible();
    Collect();
    const std::size_t missing = CountMissing();
    if (missing == 0) return std::move(found_);
    // Bus numbers below one root port are contiguous, so a NIC sorts among the GPUs as its own would. Elsewhere only
    // a GPU that is left tells where those of its NUMA node stand.
    const bool sorted = std::is_sorted(found_.places.begin(), found_.places.end());
    for (const auto& [name, place] : places_) {
      if (place.missing > 0 && !(switches_ ? sorted : !place.gpus.empty())) return std::move(found_);
    }
    found_.lost = int(missing);
    for (auto& [name, place] : places_) {
      for (; place.missing > 0; --place.missing) StandIn(place);
    }
    for (const PlacedNic& nic : nics_) {
      if (std::find(orphans_.begin(), orphans_.end(), nic.pci) != orphans_.end())
        found_.orphans.push_back(nic.name);
    }
    return std::move(found_);
  }

 private:
  bool SwitchesAreVisible() const {
    for (const std::string& gpu : found_.places) {
      for (const PlacedNic& nic : nics_) {
        const PciDevice *left = tree_.Find(gpu), *right = tree_.Find(nic.pci);
        if (left != nullptr && right != nullptr && Distance(*left, *right, 0) <= topology::PciDistance::kPxb)
          return true;
      }
    }
    return false;
  }

  // Where a device stands; empty where nothing tells.
  std::string NameOfPlace(const std::string& pci) const {
    const PciDevice* device = tree_.Find(pci);
    if (device == nullptr) return {};
    if (!switches_) return device->numa ? fmt::format("node {}", *device->numa) : std::string();
    return device->bridges.empty() ? std::string() : device->root + " " + device->bridges.front();
  }

  void Collect() {
    for (const std::string& gpu : found_.places) {
      if (const std::string name = NameOfPlace(gpu); !name.empty()) places_[name].gpus.push_back(gpu);
    }
    using Kind = std::tuple<topology::Transport, std::string, std::size_t>;
    const auto kind_of = [this](const PlacedNic& nic) {
      const PciDevice* device = tree_.Find(nic.pci);
      // As many bridges above it: a card in a slot is no NIC of the GPU board.
      return Kind{nic.transport, nic.model, switches_ && device != nullptr ? device->bridges.size() : 0};
    };
    std::map<Kind, std::pair<std::size_t, int>> beside_gpus;  // how many, and their best rate
    for (const PlacedNic& nic : nics_) {
      const auto place = places_.find(NameOfPlace(nic.pci));
      if (place == places_.end() || place->second.gpus.empty()) continue;
      auto& [count, rate] = beside_gpus[kind_of(nic)];
      ++count;
      rate = std::max(rate, nic.rate_gbps);
    }
    const auto most =
        std::max_element(beside_gpus.begin(), beside_gpus.end(),
                         [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
    if (most == beside_gpus.end()) return;
    for (const PlacedNic& nic : nics_) {
      const std::string name = NameOfPlace(nic.pci);
      const bool slow = nic.rate_gbps > 0 && nic.rate_gbps * 2 < most->second.second;
      if (!name.empty() && !slow && kind_of(nic) == most->first) places_[name].nics.push_back(&nic);
    }
  }

  // How many GPUs are gone; of each place in `missing`.
  std::size_t CountMissing() {
    std::map<std::size_t, std::size_t> full;  // GPUs beside so many NICs
    for (const auto& [name, place] : places_)
      full[place.nics.size()] = std::max(full[place.nics.size()], place.gpus.size());
    std::size_t missing = 0;
    for (auto& [name, place] : places_) {
      if (!place.nics.empty()) place.missing = full[place.nics.size()] - place.gpus.size();
      missing += place.missing;
    }
    const std::size_t present = found_.places.size(), all = present + missing;
    if (missing >= present) return 0;
    const bool whole =
        listed_ > present ? all == listed_ : std::has_single_bit(all) && !std::has_single_bit(present);
    return whole ? missing : 0;
  }

  // Beside the NIC of the place that has the fewest GPUs; on a NUMA node, beside a GPU that is left.
  void StandIn(Place& place) {
    auto& all = found_.places;
    if (!switches_) {
      const std::string left = place.gpus.back();
      all.insert(std::find(all.begin(), all.end(), left) + 1, left);
      return;
    }
    std::map<std::string, std::size_t> served;
    for (const std::string& gpu : place.gpus) {
      const PlacedNic* nearest = nullptr;
      for (const PlacedNic* nic : place.nics) {
        const auto farther = [&](const PlacedNic* one) {
          return std::pair(DistanceOf(gpu, one->pci), served[one->pci]);
        };
        if (nearest == nullptr || farther(nic) < farther(nearest)) nearest = nic;
      }
      ++served[nearest->pci];
    }
    const PlacedNic* least = *std::min_element(
        place.nics.begin(), place.nics.end(),
        [&served](const PlacedNic* a, const PlacedNic* b) { return served[a->pci] < served[b->pci]; });
    all.insert(std::upper_bound(all.begin(), all.end(), least->pci), least->pci);
    place.gpus.push_back(least->pci);
    orphans_.push_back(least->pci);
  }

  topology::PciDistance DistanceOf(const std::string& a, const std::string& b) const {
    const PciDevice *left = tree_.Find(a), *right = tree_.Find(b);
    return left == nullptr || right == nullptr ? topology::PciDistance::kSys : Distance(*left, *right, 0);
  }

  const PciTree& tree_;
  const std::size_t listed_;
  const std::vector<PlacedNic>& nics_;
  bool switches_ = false;
  std::map<std::string, Place> places_;
  std::vector<std::string> orphans_;  // addresses
  RailGpus found_;
};

}  // namespace

RailGpus FindLostGpus(const PciTree& tree, std::vector<std::string> gpus, std::size_t listed,
                      const std::vector<PlacedNic>& nics) {
  return Search(tree, std::move(gpus), listed, nics).Run();
}

}  // namespace heddle::nodeagent
