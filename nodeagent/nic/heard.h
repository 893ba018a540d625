#pragma once

#include <map>
#include <string>

#include "nodeagent/nic/net_probe.h"
#include "nodeagent/nic/rdma_probe.h"
#include "topology/node.h"

namespace heddle::nodeagent {

// The one rule for the bandwidth that is published of a port, after a full look as after a pass over the counters:
// it is taken away on evidence only. A port that says that it is down, trains or waits for a subnet manager carries
// nothing. One that cannot be asked (`unread`) counts with what it was counted with last, and its state is unknown.
// `gbps`: what it trained to, or was counted with last, or is assumed.
int CountedGbps(topology::LinkState state, bool unread, int gbps);

// What ports were counted with at the last look, for those that cannot be asked now. Where no rate was ever read, as at
// an agent's first look, the rate stays 0, which is unknown, and the port counts with `assumed_gbps`: the least of what
// cards of its kind (driver and board) trained to here, of a bond's slave that of the bond's other slaves; nothing
// where there is none. Thread rule: one thread.
class LastCounted {
 public:
  // Once a look. Puts into ports of which state or rate is unread the rate that they were counted with last, and into
  // those that have none by then the rate that is assumed. A card is known by name and GUID, an interface by name and
  // PCI function.
  void Settle(RdmaReadings& rdma, NetReadings& net);

 private:
  std::map<std::string, int> last_;
};

}  // namespace heddle::nodeagent
