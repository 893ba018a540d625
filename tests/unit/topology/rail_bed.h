#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "topology/suspects.h"

namespace heddle::test {

// The watched links of a rail-optimised fabric: in every unit port r of every host hangs on leaf "su<unit>-r<r>".
struct RailBed {
  RailBed(int units, int hosts_of_unit, int rails_of_host)
      : hosts(units * hosts_of_unit), rails(rails_of_host), leaves(units * rails_of_host) {
    for (int host = 0; host < hosts; ++host) {
      for (int rail = 0; rail < rails; ++rail) {
        links.push_back({fmt::format("gpu-{:03}", host),
                         fmt::format("mlx5_{}:1", rail),
                         fmt::format("su{}-r{}", host / hosts_of_unit, rail),
                         fmt::format("Ethernet{}", host % hosts_of_unit * 4),
                         false,
                         {}});
      }
    }
  }

  // Every leaf on every spine.
  void AddSpines(int count) {
    spines = count;
    for (int leaf = 0; leaf < leaves; ++leaf) {
      for (int spine = 0; spine < count; ++spine) {
        links.push_back({fmt::format("su{}-r{}", leaf / rails, leaf % rails),
                         fmt::format("Ethernet{}", 256 + spine * 4),
                         fmt::format("spine-{}", spine),
                         fmt::format("Ethernet{}", leaf * 4),
                         true,
                         {}});
      }
    }
  }

  std::size_t At(int host, int rail) const { return std::size_t(host * rails + rail); }
  std::size_t UpAt(int leaf, int spine) const { return std::size_t(hosts * rails + leaf * spines + spine); }
  topology::WatchedLink& On(int host, int rail) { return links[At(host, rail)]; }
  topology::WatchedLink& Up(int leaf, int spine) { return links[UpAt(leaf, spine)]; }

  void AddGang(std::string name, const std::vector<int>& members) {
    topology::GangOnLinks gang{std::move(name), {}};
    for (const int host : members) {
      for (int rail = 0; rail < rails; ++rail) gang.links.push_back(At(host, rail));
    }
    gangs.push_back(std::move(gang));
  }

  std::vector<topology::Suspect> Rank() const { return topology::RankSuspects(links, gangs); }

  int hosts, rails, leaves, spines = 0;
  std::vector<topology::WatchedLink> links;
  std::vector<topology::GangOnLinks> gangs;
};

template <class T>
void Shuffle(std::vector<T>& items, base::Random& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.Below(i)]);
}

}  // namespace heddle::test
