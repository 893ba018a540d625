#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "crds/node_lossless.h"
#include "nodeagent/qos/journal.h"
#include "nodeagent/qos/port_io.h"

namespace heddle::nodeagent {

// Whether a change of it may stop or reorder what is under way on the port. mlx5 takes the link down for PFC and MTU
// (Linux mlx5 en_dcbnl.c, mlx5_toggle_port_link; en_main.c, mlx5e_change_mtu), and what moves packets between
// classes, queues or buffers drops or reorders those that are in them. The others are a firmware's parameters (the
// watchdog: en_ethtool.c; ECN and DCQCN: infiniband/hw/mlx5/cong.c) or hold for new connections only (ToS of
// rdma_cm): they are set while traffic runs.
bool Interrupts(lossless::Setting setting);
// Whether a port without it, or of which nobody can tell, cannot be called lossless. The others are the fine tuning:
// what a driver has no such setting of is named as a gap, and the port is compliant without it.
bool IsEssential(lossless::Setting setting);
// Whether a port that has it otherwise cannot be called lossless: those, and global pause, of which a driver that has
// none says nothing.
bool MustBeAsWanted(lossless::Setting setting);

// A setting that somebody else wrote is set back so often in so long, and no more. lldpad says its own every 30 s
// (IEEE 802.1AB, msgTxInterval), a configuration tool every 30 minutes (Puppet's runinterval): either is found out.
inline constexpr std::size_t kMaxRepairs = 3;
inline constexpr std::chrono::hours kRepairWindow(2);
// Restarts of the machine, or of the agent, in the middle of the same write before it is held to be their cause.
inline constexpr int kMaxCrashes = 2;
inline constexpr int kMaxStarts = 3;
// Likewise what undid it before it had settled: a firmware that is reset by it comes back with its own settings each
// time, and one that is updated or reset by a person does so once.
inline constexpr int kMaxUndone = 2;

// What is known of one port.
struct QosFacts {
  QosPort port;
  const crds::LosslessWish* wish = nullptr;  // never null
  QosReading reading;
  std::map<lossless::Setting, std::string> writers;  // who probably wrote what differs
  bool may_write = false;
  std::string boot;  // of the machine; empty = not known
};

// What follows from them. `report` says it as if nothing were under way.
struct Judgement {
  crds::LosslessReport report;            // of this port alone
  lossless::PortSettings want;            // what is compared; NCCL's traffic class is no setting of a port
  std::vector<lossless::Setting> to_set;  // in their order; empty = nothing is to be written
  PortRecord record;
  bool repair = false;  // to_set takes back what somebody else wrote
};

// `before`: what was reported of this port last, by this agent or one before it; null = nothing. Pure.
Judgement Judge(const QosFacts& facts, PortRecord record, const crds::LosslessReport* before,
                base::WallTime now);

// The NIC and the settings that a record is about, as a hash.
std::string SubjectOf(const QosPort& port, const lossless::PortSettings& want);
// Those of `settings` whose value in `have` is not that of `want`.
std::vector<lossless::Setting> Differing(const std::vector<lossless::Setting>& settings,
                                         const lossless::PortSettings& want,
                                         const lossless::PortSettings& have);
// These, and what a write of them may take along, to be set back with them: a driver that knows trust by its DSCP
// entries alone loses the entries where trust is set to PCP (KernelPortIo::WriteTrust).
std::vector<lossless::Setting> WithWhatTheyTakeAlong(std::vector<lossless::Setting> settings);
// Differing, of settings that are to be as they were before: of a DSCP map also where it had no entry.
std::vector<lossless::Setting> NotBack(const std::vector<lossless::Setting>& settings,
                                       const lossless::PortSettings& before,
                                       const lossless::PortSettings& have);
// The same of what a write that is not settled may have changed; tos also where connections are RoCE v1 no more.
std::vector<lossless::Setting> NotBack(const UnsettledWrite& write, const QosReading& now);
// `from` with these settings only.
lossless::PortSettings Only(const std::vector<lossless::Setting>& settings,
                            const lossless::PortSettings& from);
// "trust, pfc and mtu"
std::string Names(const std::vector<lossless::Setting>& settings);
// What a kernel or driver said, fit for the API: ASCII, 300 characters at most.
std::string Plain(std::string_view text);

}  // namespace heddle::nodeagent
