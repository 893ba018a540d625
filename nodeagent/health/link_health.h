#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "crds/node_topology.h"
#include "nodeagent/assembly/assemble.h"
#include "nodeagent/health/counters.h"
#include "nodeagent/health/link_rules.h"
#include "nodeagent/health/own_changes.h"
#include "topology/node.h"

namespace heddle::nodeagent {

// kUnknown: the port's state could not be read. It neither takes a verdict back nor makes one.
enum class Verdict : std::uint8_t { kHealthy, kDegraded, kFlapping, kDown, kUnknown };
std::string_view VerdictName(Verdict verdict);  // "Healthy", "Degraded", "Flapping", "Down", "Unknown"

struct PortHealth {
  WatchedPort port;
  Verdict verdict = Verdict::kHealthy;
  topology::LinkState state = topology::LinkState::kUnknown;  // as read just now
  topology::LinkFault fault = topology::LinkFault::kNone;     // stays while the state is unknown or down
  // With its time: "41 link changes in 10 min, since 2026-11-22T01:46:30Z". It stays as it was when the fault
  // began until it is twice as bad, so that a fault which goes on is not published again and again.
  std::string evidence;
  std::string unread;  // why the state is unknown, and which counters that matter cannot be read
  // No fault of the link. "70000 CNPs handled in 1 min; 61000 pause frames received in 1 min (priority 3)": each stays
  // as it was when it began, so that what goes on is published once. Nothing: neither end counts any.
  std::optional<Congestion> congestion;
  // Since this agent started, wraps and resets taken out; for people and metrics.
  std::map<CounterId, std::uint64_t> totals;
  bool state_unread = false;  // the state could not be read just now
  // Of the switch port at the other end of the cable, where its leaf is asked: nothing = it is not. The sentence says
  // why nothing is known of it, or not all; empty = all is. What it counts is judged as what the port itself does.
  std::optional<std::string> leaf_unread;
  std::map<CounterId, std::uint64_t> leaf_totals;  // as `totals`
  // "4 link changes by setting its lossless settings are not counted": of the last time that the agent set it, for an
  // hour.
  std::string own;
  friend bool operator==(const PortHealth&, const PortHealth&) = default;
};

// What placement may count on of `rate_gbps`, see link_rules.h.
int UsableGbps(int rate_gbps, topology::LinkFault fault);

// "mlx5_3 port 1 (leaf-4 port 17)"; `leaf`: as WatchedPort has it.
std::string NameOf(const WatchedPort& port, std::string_view leaf);

struct HealthChange {
  WatchedPort port;
  Verdict before = Verdict::kHealthy, after = Verdict::kHealthy;
  std::string
      sentence;  // for an event or a log line: "mlx5_3 port 1 (leaf-4 port 17): Flapping: 4 link downs in …"
  std::string what;  // of that, what is behind the name: "Flapping: 4 link downs in …"
};

// The health of every port by what its counters did from look to look: fast into trouble, out of it only after
// a quiet time. A missing file is evidence of nothing. A value: no clock, no I/O. Thread rule: one thread.
class LinkHealth {
 public:
  // What was published before this agent started: faults and congestion are taken over with their evidence, and their
  // quiet time begins at the first Look. Before the first Look.
  void Restore(const topology::Node& published, std::span<const crds::CongestedPort> congestion = {});

  // The agent is about to change this link itself, or knows by now how often it did. Before the Look that sees it.
  void Expect(const OwnLinkChanges& changes);

  // A port that the readings do not have is left out of ports(), and forgotten after an hour: a file that could not
  // be read takes no fault back. Returns the verdicts that changed; the first sight of a port is a change only
  // where another verdict was published. `now` never goes back.
  std::vector<HealthChange> Look(const CounterReadings& readings, base::MonotonicTime now,
                                 base::WallTime wall);

  // As of the last Look, in the order of its readings.
  const std::vector<PortHealth>& ports() const { return ports_; }

 private:
  struct Known {
    std::uint64_t raw = 0, total = 0;
    base::MonotonicTime at;
  };
  struct Bucket {
    std::int64_t number = 0;
    std::uint64_t count = 0;
  };
  struct RuleState {
    std::vector<Bucket> buckets;  // ascending; of the last window
    bool in_trouble = false;
    bool at_least = false;  // a saturated counter was in it
    std::optional<base::MonotonicTime> quiet_since;
    base::MonotonicTime told;  // when its counter was last read, or could not be
    std::uint64_t reported = 0;
    base::WallTime since;
    std::string evidence;
  };
  struct Published {  // before this agent started; empty evidence: nothing was
    topology::LinkFault fault = topology::LinkFault::kNone;  // kNone: congestion
    std::string evidence;
    base::WallTime since;  // of congestion; of a fault the evidence says it
    std::optional<base::MonotonicTime> quiet_since;
  };
  struct End {  // of the cable
    std::map<CounterId, Known> counters;
    std::map<std::pair<std::size_t, int>, RuleState> rules;  // by place in LinkRules() and priority
  };
  struct State {
    End host, leaf;
    std::string leaf_who, leaf_name;  // as LeafEnd says
    std::optional<std::string> leaf_unread;
    std::map<int, std::vector<Bucket>> pause_frames;  // by priority
    std::vector<Bucket> packets;
    Published published, congestion;
    std::optional<Verdict> verdict;           // of the last look; nothing before the first
    std::optional<base::MonotonicTime> seen;  // nothing: only published
  };
  struct Own {
    OwnLinkChanges changes;
    std::map<Counter, std::uint64_t> taken;  // of them, seen so far
  };
  class Step;

  std::map<std::string, Own> own_;       // by crds::PortName
  std::map<std::string, State> states_;  // by PortKey
  std::vector<PortHealth> ports_;
};

}  // namespace heddle::nodeagent
