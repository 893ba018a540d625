#pragma once

#include <string>
#include <utility>

#include "base/file_tree.h"
#include "nodeagent/leaf/command.h"
#include "nodeagent/leaf/probe.h"
#include "nodeagent/nic/rdma_probe.h"

namespace heddle::nodeagent {

// The host's lldpd, by its own client: the protocol of its control socket is private and changes between
// versions, and liblldpctl waits for an answer without a limit.
// Asks for json0, whose shape does not change with the number of neighbours.
// `socket`: where lldpd listens; empty = where lldpcli was built to look.
CommandOptions AskLldpd(const std::string& socket = {});

// What lldpd hears. Where lldpcli or lldpd is not there, that is a problem only on a host with a RoCE port:
// InfiniBand and cloud hosts need none.
// Thread rule: one thread.
class LldpdLeaves final : public LeafSource {
 public:
  explicit LldpdLeaves(const base::FileTree& files, CommandOptions lldpcli = AskLldpd())
      : rdma_(files), lldpcli_(std::move(lldpcli)) {}
  LeafReadings Read() override;

 private:
  RdmaProbe rdma_;
  Command lldpcli_;
};

}  // namespace heddle::nodeagent
