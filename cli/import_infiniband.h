#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/import_machine.h"
#include "formats/ibnetdiscover.h"
#include "topology/fabric.h"

namespace heddle::cli {

// Dumps of one subnet or of several (a rail-only fabric has one for each rail), as one network.
class IbGraph {
 public:
  // What the dump says is wrong with itself becomes warnings; a node that an earlier dump has is left out
  // with one.
  void Add(const std::string& path, formats::IbNetwork network, ImportFindings& findings);
  // Names the switches. Call it once, after the last dump.
  void Finish(ImportFindings& findings);

  const std::vector<formats::IbNode>& nodes() const { return nodes_; }
  // How a switch is called, as the nodes' agents call it (formats::IbSwitchName); by its GUID too where
  // several share a name. Empty for what is no switch.
  const std::string& Name(std::size_t node) const { return names_[node]; }
  // Positions in nodes(); -1 where there is no such node.
  int Find(std::string_view id) const;
  // Whether the other end says that it is on this cable too.
  bool Answered(const formats::IbNode& node, const formats::IbLink& link) const;

 private:
  std::vector<formats::IbNode> nodes_;
  std::vector<std::string> names_;
  std::map<std::string, int, std::less<>> by_id_;
};

// The hosts and their HCAs with GUID and leaf, sorted by name. SHARP's aggregation nodes are told from them;
// an adapter without a name is a host of its own, called by its GUID.
std::vector<topology::Node> IbHosts(const IbGraph& graph, ImportFindings& findings);

// The switches above the compute NICs of `nodes`: uplinks, their bandwidth, and dragonfly groups where leaves
// or spines are cabled among themselves. Warns of cables that are slow, missing between like leaves, loose at
// one end, or that lead back to their own switch.
topology::Declaration IbSwitches(const IbGraph& graph, const std::vector<topology::Node>& nodes,
                                 ImportFindings& findings);

}  // namespace heddle::cli
