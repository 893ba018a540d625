#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "crds/node_topology.h"
#include "formats/sonic_config.h"
#include "lossless/cable_compare.h"
#include "switches/cables.h"
#include "switches/claims.h"
#include "switches/port_index.h"

namespace heddle::switches {

// The comparison of cables.h, kept for the next one: of 16,384 cables mostly none has changed, or those of one switch,
// and to join them all by their names is most of what a comparison costs. What stands after Again is what Begin would
// have made of the same.
// Thread rule: one owner.
class CableJoin {
 public:
  // Forgets all, and compares all. `names` of the switches, configurations and whom they see, and all that they point
  // to, must live until a later call has another in their place.
  void Begin(std::span<const crds::NodeTopology* const> nodes, std::span<const KnownSwitch> switches,
             const std::set<std::string>& silent);

  // By position, each ascending. A node has changed also where it falls silent or speaks again.
  struct Changed {
    std::vector<std::size_t> nodes, switches;
  };
  // Compares again what has a changed end. Nodes and switches are as many as before, in the same order, with the same
  // names, chassis ids (own_chassis may be another) and tiers; whatever is not among `changed` is as it was. The nodes
  // of which anything may be judged otherwise, ascending; nothing: a node has another number of cables, or too much is
  // kept that nobody has any longer. Then Begin has to be called, and nothing else may be.
  std::optional<std::vector<std::size_t>> Again(std::span<const crds::NodeTopology* const> nodes,
                                                std::span<const KnownSwitch> switches,
                                                const std::set<std::string>& silent, const Changed& changed);

  // Without `without` and `bare`, which only CompareBothEnds has.
  const ComparedCables& compared() const { return compared_; }
  ComparedCables Take() && { return std::move(compared_); }
  // The cables of a node, by its position: from the first to before the second.
  std::pair<std::size_t, std::size_t> CablesOf(std::size_t node) const {
    return {starts_[node], starts_[node + 1]};
  }
  // The switch's port on which the cable ends; null: nobody knows how the switch is set, or it has none of that name.
  const formats::SonicPort* PortAt(std::size_t cable) const { return ports_[cable]; }

 private:
  struct Joined {
    NamedCable name;
    lossless::Cable cable;
    std::string netdev;  // the host's interface
    const formats::SonicPort* port = nullptr;
  };

  void Name(const std::string& name, int at);
  std::vector<Joined> Join(const crds::NodeTopology& node, bool silent);
  lossless::CableEnd HostEnd(const crds::NodeTopology& node, const topology::Nic& nic,
                             const topology::NicPort& port, const std::string& name);
  lossless::CableEnd LeafEnd(const topology::NicPort& port, Joined& joined);
  void FillFrom(const PortIndex& ports, Joined& joined, lossless::CableEnd& end);
  // Takes what the changed switches say now; returns whether it has to do with where cables end.
  bool TakeSwitches(std::span<const KnownSwitch> switches, const std::vector<std::size_t>& changed);
  // In place of what was joined of the node. Whether it has as many cables; and whether they are said to end elsewhere.
  struct Replaced {
    bool fits = false, moved = false;
  };
  Replaced Replace(std::size_t node, std::vector<Joined> joined);
  void Compare();
  void FindTwins();
  void TakeDoubts();
  void DropDoubts();
  std::size_t NodeOf(std::size_t cable) const;

  std::vector<KnownSwitch> switches_;
  std::vector<std::optional<PortIndex>> indexes_;  // of the switches, once a cable ends there
  std::map<std::string, int> by_name_;
  lossless::SettingsPool pool_;
  std::size_t pool_began_with_ = 0;
  // Of the node that is being joined: all of its NICs are mostly set alike, by one report.
  const crds::LosslessReport* last_report_ = nullptr;
  int last_number_ = 0;

  ComparedCables compared_;
  std::vector<std::string> netdevs_;              // of each cable
  std::vector<const formats::SonicPort*> ports_;  // likewise
  std::vector<std::size_t> starts_;               // of each node its first cable, and behind the last one
  std::vector<CableDoubt> doubts_;
  std::vector<topology::Fact<int>> doubted_;  // of each of them what the leaf's end was before
  std::vector<CableDoubt> twins_;  // cables that end on another switch of the name that the host says
};

}  // namespace heddle::switches
