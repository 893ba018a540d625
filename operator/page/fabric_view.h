#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "crds/gang.h"
#include "kube/object.h"
#include "operator/assembly.h"
#include "topology/suspects.h"

// What the fabric page shows, as JSON in pieces: a piece that has not changed is not sent again. Facts that every node
// has stand by position and refer by index, so that 10,000 nodes are 2 MB. docs/page.md is their form.
namespace heddle::operators::page {

// One of the API server's lists that all this is read from.
struct Source {
  std::string kind;   // "NodeTopology"
  std::string error;  // why it cannot be read now; empty = it is as new as the server's
  std::string since;  // RFC 3339: when it could be read last; empty = it is, or never was
  friend bool operator==(const Source&, const Source&) = default;
};

struct Seen {
  const Assembly& assembly;
  const std::vector<std::string>& topologies;  // names of all NodeTopologies, in any order
  const std::set<std::string>& stale;          // nodes whose agents do not renew their Lease
  const std::vector<crds::Gang>& gangs;
  const std::vector<Source>& sources;
  std::map<std::string, std::vector<topology::Suspect>> suspects = {};  // by fabric, as its object has them
  std::map<kube::ObjectKey, std::string> unread_gangs = {};             // Gangs that cannot be read, and why
};

struct Pieces {
  std::string sources;                       // one array
  std::string fabrics;                       // one array, in the order of names
  std::map<std::string, std::string> nodes;  // by name
  std::map<std::string, std::string> gangs;  // by "namespace/name"
  std::size_t gangs_left_out = 0;            // of those that have not ended
  friend bool operator==(const Pieces&, const Pieces&) = default;
};

// Of a node, worst last but for the two that are not known. The page has the same words in the same order.
enum class NodeState : std::uint8_t { kOk, kDegraded, kDown, kStale, kUnknown };

// Total: whatever stands in the objects is shown or cut, and never fails.
Pieces Show(const Seen& seen);

}  // namespace heddle::operators::page
