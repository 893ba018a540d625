#pragma once

#include <string>
#include <utility>

#include "nodeagent/leaf/command.h"
#include "nodeagent/leaf/probe.h"

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
  explicit LldpdLeaves(CommandOptions lldpcli = AskLldpd()) : lldpcli_(std::move(lldpcli)) {}
  LeafReadings Read(const RdmaReadings& rdma) override;

 private:
  Command lldpcli_;
};

}  // namespace heddle::nodeagent
