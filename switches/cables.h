#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "crds/node_topology.h"
#include "formats/sonic_config.h"
#include "lossless/cable_compare.h"
#include "switches/neighbours.h"
#include "topology/fact.h"

namespace heddle::switches {

// Joins hosts with the switches that their cables end on, by what LLDP told the hosts, and compares both ends. Where
// LLDP contradicts itself, nothing is proved (claims.h).

// A switch as far as it is known. What is pointed to must outlive whatever is made of it.
struct KnownSwitch {
  std::string name;                              // system name, as LLDP says it
  std::string chassis_id;                        // likewise; empty = not known
  const formats::SonicConfig* config = nullptr;  // null: nobody knows how it is set, because of
  topology::Missing missing = topology::Missing::kUnknown;
  const Neighbours* neighbours = nullptr;  // whom it sees; null: nobody knows
  int tier = 0;                            // 0 = leaf, 1 = spine, 2 = core
  // It said so too long ago for a proof that a cable is there; what it contradicts it contradicts still.
  bool neighbours_stale = false;
  std::string own_chassis;  // the chassis id that its own LLDP says; empty = it says none
};

// The chassis id that it must have: what a person says before what it says itself; empty = not known.
inline const std::string& ChassisOf(const KnownSwitch& known) {
  return known.chassis_id.empty() ? known.own_chassis : known.chassis_id;
}

// A cable with the names of its ends.
struct NamedCable {
  std::string node, port;  // "gpu-017", "mlx5_3:1"
  std::string leaf,
      leaf_port;  // empty where it is not known where the cable ends; the port as the switch names it
  int at = -1;    // which of the switches; -1 = none of them
  int twin = -1;  // which of them only has the name of the one that the host sees; -1 = none
  std::string chassis_id;  // with `twin`: that the host sees
  friend bool operator==(const NamedCable&, const NamedCable&) = default;
};

struct ComparedCables {
  std::vector<NamedCable> names;
  std::vector<lossless::Cable> cables;  // with the ends of `names`
  lossless::CableComparison comparison;
  std::map<std::string, int> without;  // switches of which nothing was given, and how many cables end there
  std::set<std::string> doubled;       // names that several switches have: nobody knows which is the host's
  std::set<std::string> bare;          // sentences: ports that have no settings
};

// Every cable of a compute NIC with RoCE, by node and port in the order of `nodes`. A switch is the one that a host
// sees where the host's leaf is its name or its chassis id, and the chassis ids, where both are known, are one; a port
// by name, else by alias; what is the name of one and the alias of another is neither (PortIndex::IsAmbiguous).
// `silent`: nodes whose agents report no more, so that what they said is stale. Pure and total.
ComparedCables CompareBothEnds(std::span<const crds::NodeTopology* const> nodes,
                               std::span<const KnownSwitch> switches,
                               const std::set<std::string>& silent = {});

// The port that a configuration, or a neighbour by LLDP, calls so: by name, else by alias. Also one that is bare. Null:
// there is none.
const formats::SonicPort* PortOf(const formats::SonicConfig& config, std::string_view name);

// The worst thing that is wrong with the cable; null where it is lossless.
const lossless::CableFinding* WorstOf(const lossless::CableOutcome& outcome);

}  // namespace heddle::switches
