#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "topology/fabric.h"
#include "topology/suspects.h"

namespace heddle::operators {

// Where cables ended that nobody can follow now. A link that is down has no LLDP, so its agent knows its leaf no
// longer; but the suspect keeps its name, and what the switch counts at its end still belongs to that cable.
// A value: no clock. Thread rule: one thread.
class CableMemory {
 public:
  // As long as a cable is believed to end where it did. Whoever moves one brings its link up before that.
  static constexpr std::chrono::hours kKeep{1};

  // After a restart: cables that published suspects name. Before the first Look at that fabric.
  void Restore(const std::vector<topology::Suspect>& published, base::MonotonicTime now);
  // Takes what the agents of a fabric say now. A leaf port that another port of that fabric has now is forgotten, and
  // so is what has not been confirmed for kKeep.
  void Look(const topology::Fabric& fabric, base::MonotonicTime now);
  // Null: it was never known, or too long ago. `port`: as crds::PortName.
  const topology::LeafPort* Of(const std::string& node, const std::string& port) const;

 private:
  struct Known {
    topology::LeafPort leaf;
    base::MonotonicTime at;
  };
  std::map<std::pair<std::string, std::string>, Known> cables_;  // by node and port
};

}  // namespace heddle::operators
