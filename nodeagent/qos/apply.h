#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "nodeagent/qos/decide.h"

namespace heddle::nodeagent {

// How long things take.
struct QosTimings {
  // From the withdrawal to the first question who uses the port: the publication takes 4 s at most (an urgent
  // change, PublisherOptions), and the planner and the kubelet have heard of it some seconds later.
  std::chrono::nanoseconds drain = std::chrono::seconds(15);
  std::chrono::nanoseconds poll = std::chrono::seconds(5);  // between two such questions
  // How long after that a port in use is kept from new pods, so that it is free once its programs have ended; then it
  // is given back. 0: without a limit. Short jobs, tests and servers end within half an hour; who waits for a job of
  // days by this takes a rail of its node from all others for days.
  std::chrono::nanoseconds patience = std::chrono::minutes(30);
  // From there to the next time, doubling. A node that is never idle then lacks a rail for 8 % of the time.
  std::chrono::nanoseconds pause = std::chrono::minutes(30);
  std::chrono::nanoseconds max_pause = std::chrono::hours(6);
  // Meanwhile a port that is idle at a look is tried at once; so long after one that was in use again.
  std::chrono::nanoseconds idle_pause = std::chrono::minutes(5);
  // How long a port may be without carrier after a write: a 400 Gb/s link trains for some seconds, and an optical
  // one longer.
  std::chrono::nanoseconds carrier = std::chrono::seconds(60);
  std::chrono::nanoseconds settle = std::chrono::seconds(10);  // with carrier, in which errors are counted
  std::chrono::nanoseconds settle_poll = std::chrono::seconds(1);
  // From a start on, for the spec: what an agent before this one began is gone on with without it after that, since a
  // port that is half set is of no use, and the API server may be away for long.
  std::chrono::nanoseconds hear = std::chrono::seconds(20);
  // After a write that found the port busy, doubling; at the last the write is taken back.
  std::chrono::nanoseconds back_off = std::chrono::seconds(5);
  std::chrono::nanoseconds max_back_off = std::chrono::minutes(5);
};
inline constexpr int kMaxBusy = 5;
// Likewise where the driver refuses what it had before: so often that is tried again before it is given up.
inline constexpr int kMaxRefused = 5;
// A write may take the link down and up; several that the driver takes one by one, as often each.
inline constexpr std::uint64_t kMaxBounces = 4;

enum class ApplyStage : std::uint8_t {
  kIdle,
  kDraining,     // pods do not get the port any more; nothing was written
  kWriting,      // something may have been written, and the journal says what was there before
  kSettling,     // all reads back as wanted; the link is watched
  kRollingBack,  // what was written is being taken back
};

// How far the work on one port has come. Only the journal outlives the agent: a write that it finds unsettled goes on
// at kWriting, or at kRollingBack.
struct ApplyProgress {
  ApplyStage stage = ApplyStage::kIdle;
  base::MonotonicTime since{};       // in this stage
  base::MonotonicTime not_before{};  // no step until then
  int busy = 0;                      // times in a row that the port was
  int refused = 0;                   // kRollingBack: times that the driver would not have its old value
  base::MonotonicTime withdrawn{};   // kDraining: when the port was taken away
  bool seen = false;                 // from kWriting on: the interface was there at the last look
  bool idle_moment = false;        // kDraining: it was idle in a pause, and is given back if it is so no more
  std::optional<LinkEvidence> at;  // kDraining: at its begin; kSettling: with carrier again
  base::MonotonicTime at_time{};   // of it
  // kSettling: changes of the carrier when the link was back for the first time; later ones are none of the write's.
  std::optional<std::uint64_t> back;
};

enum class ApplyStep : std::uint8_t {
  kNothing,
  kWithdraw,  // close the gate
  kWrite,     // remember what is there (unless the journal does), then write what differs and read it back
  kSettle,    // the write stands: forget what was before, open the gate
  kRollBack,  // write what was there before and read it back; see why
  kAbandon,   // nothing was written and nothing is to be: open the gate
  kGiveBack,  // nothing was written, and it was waited for in vain: open the gate until later; see why
};

// What is asked of a port besides its settings; nothing = not asked.
struct PortQuestions {
  std::optional<base::Result<int>> queue_pairs;
  std::optional<base::Result<LinkEvidence>> link;
};

// While a node pauses, its ports in use are left alone: one of them was waited for in vain.
struct NodePause {
  base::MonotonicTime until{};
  base::MonotonicTime not_idle_before{};  // no port is taken for idle until then
  std::string port;                       // the one that was waited for
  std::string until_text;                 // until, on the wall
  int in_vain = 0;                        // times in a row
};

struct StepFacts {
  const Judgement* judged = nullptr;  // null: no policy speaks of the port any more
  bool wanted = false;                // a policy has it set, and this agent may
  bool gone = false;                  // the interface
  const PortRecord* record = nullptr;
  ApplyProgress progress;
  PortQuestions asked;
  std::string before_it;  // the port whose turn it is; empty = this one's
  std::string leak;       // PortGate::Leak
  bool granted = false;   // kDraining: pods were given it of late, which may begin to use it at any time
  NodePause pause;
  std::string
      given_back;  // what is said of the port while it pauses, where it is the one that was waited for
  QosTimings timings;
};
// Which of the questions NextStepOf looks at.
bool AsksQueuePairs(const StepFacts& facts, base::MonotonicTime now);
bool AsksLink(const StepFacts& facts, base::MonotonicTime now);

// The next step of one port, and what is said of it until then.
struct NextApplyStep {
  ApplyStep step = ApplyStep::kNothing;
  ApplyProgress progress;
  std::string reason;   // why it waits, a sentence without numbers that change; empty = nothing is under way
  std::string why;      // kRollBack: what went wrong; empty = nothing did, it is only not wanted any more.
                        // kGiveBack: what it was waited for
  bool undone = false;  // what was written is gone: one more time for UnsettledWrite::undone
  bool in_use = false;  // kGiveBack: that is programs that use it
  base::MonotonicTime when;  // of the next look at it, where it is under way
};
NextApplyStep NextStepOf(const StepFacts& facts, base::MonotonicTime now);

inline constexpr std::string_view kCannotKeep =
    "what is there now cannot be written down first; see whether --state-dir is a folder that the agent may "
    "write, "
    "with space in it";

// "30 min", "6 h", "90 s"
std::string DurationText(std::chrono::nanoseconds time);

// What the link lost by a write, as a sentence; empty = nothing. `noise`: how much each counter grew before it, in a
// time that goes `times` into that since `calm`. A counter is worse where it grew by more than it is tolerated to
// (link_evidence.h) and by more than twice as fast as before. The carrier's changes are not looked at.
std::string Worse(const LinkEvidence& calm, const LinkEvidence& now,
                  const std::map<std::string, std::uint64_t>& noise, std::uint64_t times = 1);
// The same of one counter, or of the carrier (kCarrierCount).
std::string WorseBy(std::string_view counter, std::uint64_t grew,
                    const std::map<std::string, std::uint64_t>& noise, std::uint64_t times);
// How much each error counter grew; one that was reset grew by what it has.
std::map<std::string, std::uint64_t> Growth(const LinkEvidence& before, const LinkEvidence& now);

}  // namespace heddle::nodeagent
