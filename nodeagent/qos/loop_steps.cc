// The steps of QosLoop: what is done to one port when its turn has come.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "lossless/compare.h"
#include "nodeagent/qos/link_evidence.h"
#include "nodeagent/qos/loop.h"

namespace heddle::nodeagent {
namespace {

using base::Code;
using base::MonotonicTime;
using lossless::Setting;

// The setting that an error names, of those that were written; nothing where it names none of them.
std::optional<Setting> NamedIn(const std::string& message, const std::vector<Setting>& settings) {
  std::optional<Setting> named;
  std::size_t first = std::string::npos;
  for (const Setting setting : settings) {
    const std::string_view name = lossless::SettingName(setting);
    for (std::size_t at = message.find(name); at != std::string::npos; at = message.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      const bool begins = at == 0 || std::isalnum(static_cast<unsigned char>(message[at - 1])) == 0;
      const bool ends = end == message.size() || std::isalnum(static_cast<unsigned char>(message[end])) == 0;
      if (!begins || !ends || at >= first) continue;
      first = at;
      named = setting;
      break;
    }
  }
  return named;
}

constexpr std::string_view kDone = "nothing more is tried until the policy changes";

}  // namespace

void QosLoop::Do(Port& port, const NextApplyStep& next) {
  switch (next.step) {
    case ApplyStep::kNothing:
      break;
    case ApplyStep::kWithdraw:
      Log(port, "is taken away from new pods, to be set");
      gate_.Withdraw(port.port.name, "its lossless settings are being changed");
      break;
    case ApplyStep::kWrite:
      if (port.record.unsettled || Begin(port)) Write(port);
      break;
    case ApplyStep::kSettle:
      Settle(port);
      break;
    case ApplyStep::kRollBack:
      if (!port.record.unsettled->back) TurnBack(port, next.why, false);
      WriteBack(port);
      break;
    case ApplyStep::kAbandon:
      Log(port, "is not to be set any more, and nothing was written");
      Open(port);
      break;
    case ApplyStep::kGiveBack:
      GiveBack(port, next);
      break;
  }
}

bool QosLoop::Begin(Port& port) {
  const Judgement& judged = *port.judged;
  UnsettledWrite write;
  write.port = port.port;
  write.settings = judged.to_set;
  write.want = Only(judged.to_set, judged.want);
  write.before = Only(WithWhatTheyTakeAlong(judged.to_set), port.reading.have);
  write.roce1 = port.reading.roce1 &&
                std::find(judged.to_set.begin(), judged.to_set.end(), Setting::kTos) != judged.to_set.end();
  write.interrupts = std::any_of(judged.to_set.begin(), judged.to_set.end(), Interrupts);
  write.about = AboutOf(port.record);
  if (write.interrupts) {
    write.link = port.link;
    if (port.progress.at) {
      const LinkEvidence& before = *port.progress.at;
      write.noise = Growth(before, port.link);
      if (port.link.carrier_changes > before.carrier_changes)
        write.noise[std::string(kCarrierCount)] = port.link.carrier_changes - before.carrier_changes;
      write.noise_seconds =
          std::chrono::duration_cast<std::chrono::seconds>(clock_.Now() - port.progress.at_time).count();
    }
  }
  if (judged.repair) {
    auto& repairs = port.record.repairs;
    repairs.push_back(std::chrono::floor<std::chrono::seconds>(clock_.WallNow()));
    if (repairs.size() > kMaxRepairs) repairs.erase(repairs.begin());
  }
  port.progress.at.reset();
  port.record.unsettled = std::move(write);
  if (Keep(port)) return true;
  // Without the journal a crash would leave nobody to take the write back.
  const bool withdrawn = port.record.unsettled->interrupts;
  port.record = port.kept;
  port.progress.stage = withdrawn ? ApplyStage::kDraining : ApplyStage::kIdle;
  port.progress.not_before = clock_.Now() + BackOff(++port.progress.busy);
  port.waiting = fmt::format("cannot be set: {}", kCannotKeep);
  return false;
}

void QosLoop::Write(Port& port) {
  std::map<Setting, int> wrote;
  bool alone = false;
  // Each round writes something for the first or second time, or finds a setting that cannot be written.
  for (int round = 0; round < 4 * lossless::kHostSettings; ++round) {
    port.reading = io_.Read(port.port);
    if (port.reading.gone) return;
    port.progress.seen = true;
    const UnsettledWrite& write = *port.record.unsettled;
    std::vector<Setting> left = Differing(write.settings, write.want, port.reading.have);
    if (left.empty()) {
      port.progress = ApplyProgress();
      port.progress.since = clock_.Now();
      port.progress.stage = ApplyStage::kSettling;
      port.progress.seen = true;
      if (!write.interrupts) Settle(port);
      return;
    }
    if (std::any_of(left.begin(), left.end(), [&wrote](Setting setting) { return wrote[setting] > 1; }))
      return NotKept(port, left);
    // Firmware that keeps the say would write over all that follows.
    if (left.front() == Setting::kDcbx || alone) left.resize(1);
    ++counts_.writes;
    ExpectBounces(port);
    const auto status = io_.Write(port.port, left, write.want);
    for (const Setting setting : left) ++wrote[setting];
    if (status) {
      Log(port, fmt::format("wrote {}", Names(left)));
      continue;
    }
    ++counts_.failed_writes;
    Log(port, fmt::format("could not write {}: {}", Names(left), status.error().message));
    // Files of a NIC that vanishes meanwhile are not there, as those of a driver that has no such setting.
    port.reading = io_.Read(port.port);
    if (port.reading.gone) return;
    if (status.error().code != Code::kUnimplemented || left.front() == Setting::kDcbx)
      return Refused(port, left, status.error());
    const auto named = left.size() == 1 ? left.front() : NamedIn(status.error().message, left);
    alone = alone || !named;
    wrote.clear();
    if (!named) continue;
    port.record.unsupported[*named] = Plain(status.error().message);
    std::erase(port.record.unsettled->settings, *named);
    Keep(port);
  }
  TurnBack(port, "its settings would not stay as they were written", false);
}

void QosLoop::Refused(Port& port, const std::vector<Setting>& left, const base::Error& error) {
  const std::string said = Plain(error.message);
  if (error.code == Code::kUnavailable) {
    ++port.progress.busy;
    port.progress.not_before = clock_.Now() + BackOff(port.progress.busy);
    port.waiting = fmt::format("is busy and is tried again after a pause that grows: {}", said);
    if (port.progress.busy > kMaxBusy)
      TurnBack(port, fmt::format("was busy {} times: {}", kMaxBusy + 1, said), false);
    return;
  }
  if (left.front() == Setting::kDcbx) {
    return TurnBack(
        port,
        fmt::format("the NIC's firmware has the say in DCB settings and does not give it up: {}; turn its "
                    "DCBX off there, or the switch's",
                    said),
        true);
  }
  TurnBack(
      port,
      error.code == Code::kForbidden
          ? fmt::format(
                "the kernel did not let the agent set it: {}; it needs CAP_NET_ADMIN, which the chart gives "
                "with agent.lossless.enabled",
                said)
          : fmt::format("could not be set: {}", said),
      false);
}

void QosLoop::NotKept(Port& port, const std::vector<Setting>& left) {
  std::set<std::string> writers;
  for (const Setting setting : left) {
    std::string writer = Plain(io_.LikelyWriter(port.port, setting));
    if (!writer.empty() && writer != "manual") writers.insert(std::move(writer));
  }
  if (writers.empty()) {
    return TurnBack(
        port,
        fmt::format("the driver took {} and kept something else, twice: see the kernel's log", Names(left)),
        false);
  }
  TurnBack(port,
           fmt::format("{} wrote over {} at once, twice: stop it for this port", fmt::join(writers, " and "),
                       Names(left)),
           true);
}

void QosLoop::TurnBack(Port& port, std::string why, bool conflict) {
  UnsettledWrite& write = *port.record.unsettled;
  write.back = true;
  write.why = std::move(why);
  write.conflict = conflict;
  port.progress = ApplyProgress();
  port.progress.stage = ApplyStage::kRollingBack;
  port.progress.since = clock_.Now();
  Log(port, fmt::format("is set back to what was there before: {}",
                        write.why.empty() ? "no policy wants it any more" : write.why));
  // Unkept, a restart would go on with the write and come to the same end.
  Keep(port);
}

void QosLoop::WriteBack(Port& port) {
  UnsettledWrite& write = *port.record.unsettled;
  std::vector<Setting> lost;  // cannot be set back
  for (int written = 0;;) {
    port.reading = io_.Read(port.port);
    if (port.reading.gone) return;
    std::vector<Setting> left = NotBack(write, port.reading);
    std::erase_if(
        left, [&](Setting setting) { return std::find(lost.begin(), lost.end(), setting) != lost.end(); });
    if (left.empty()) break;
    if (written == 2) {
      lost.insert(lost.end(), left.begin(), left.end());
      break;
    }
    ++counts_.writes;
    ExpectBounces(port);
    base::Status status = io_.WriteBack(port.port, left, write.before);
    if (status && write.roce1 && std::find(left.begin(), left.end(), Setting::kTos) != left.end())
      status = io_.WriteRoce1(port.port);
    if (status) {
      ++written;
      continue;
    }
    ++counts_.failed_writes;
    const auto named = left.size() == 1 ? left.front() : NamedIn(status.error().message, left);
    // Neither a driver that has no such setting nor one that leaves it to its firmware will have it in an hour.
    const bool never = status.error().code == Code::kUnimplemented || status.error().code == Code::kConflict;
    if (never && named) {
      lost.push_back(*named);
      continue;
    }
    // A value that the driver had itself and does not take, again and again, must not keep the port from pods for ever.
    if (status.error().code == Code::kInvalid && ++port.progress.refused > kMaxRefused) {
      lost.push_back(named.value_or(left.front()));
      continue;
    }
    ++port.progress.busy;
    port.progress.not_before = clock_.Now() + BackOff(port.progress.busy);
    port.waiting = fmt::format(
        "that is tried again after a pause that grows, and pods do not get the port until then: {}",
        Plain(status.error().message));
    Log(port, fmt::format("could not be set back: {}", status.error().message));
    return;
  }
  // Whose word it was, the firmware's, is nothing that can be set (port_io.h).
  const bool taken =
      std::find(write.settings.begin(), write.settings.end(), Setting::kCnpPriority) != write.settings.end();
  if (taken && !write.before.cnp_priority && port.reading.have.cnp_priority)
    lost.push_back(Setting::kCnpPriority);
  RolledBack(port, lost);
}

void QosLoop::RolledBack(Port& port, const std::vector<Setting>& lost) {
  const UnsettledWrite& write = *port.record.unsettled;
  ++counts_.rolled_back;
  PortRecord& record = port.record;
  std::string said =
      fmt::format("{}; {}", write.why.empty() ? "no policy wants it any more" : write.why,
                  lost.empty() ? std::string("what was there before is set again")
                               : fmt::format("what was there before is set again, but for {}", Names(lost)));
  Tell(!write.why.empty(), kLosslessRolledBack, port, said);
  if (!write.why.empty() && write.about == AboutOf(record))
    (write.conflict ? record.conflict : record.failed) = fmt::format("{}; {}", said, kDone);
  record.unsettled.reset();
  Open(port);
}

void QosLoop::Settle(Port& port) {
  PortRecord& record = port.record;
  const UnsettledWrite write = *record.unsettled;
  if (write.about == AboutOf(record)) record.applied = true;
  if (write.interrupts) {
    pause_ = NodePause();
    port.in_vain = 0;
  }
  record.crashes = 0;
  const std::string bounces = CountBounces(port);
  record.unsettled.reset();
  ++counts_.applied;
  if (!write.settings.empty()) {
    Tell(false, kLosslessApplied, port,
         fmt::format("{} {} set{}{}", Names(write.settings), write.settings.size() == 1 ? "is" : "are",
                     port.resumed ? ", as was begun before the agent restarted" : "", bounces));
  }
  Open(port);
}

void QosLoop::ExpectBounces(Port& port) {
  const UnsettledWrite& write = *port.record.unsettled;
  if (!write.interrupts) return;
  const MonotonicTime now = clock_.Now();
  if (!port.own) port.own = OwnLinkChanges{port.port.name, now, now, 0};
  // More than that is a regression of the write itself (NextStepOf). Taking it back may bounce the link as often.
  port.own->most = (write.back ? 4 : 2) * kMaxBounces;
  port.own->until = now + options_.timings.carrier + options_.timings.settle;
  if (callbacks_.on_own_changes) callbacks_.on_own_changes(*port.own);
}

std::string QosLoop::CountBounces(Port& port) {
  if (!port.own) return {};
  const auto link = io_.Link(port.port);
  const std::uint64_t before = port.record.unsettled->link.carrier_changes;
  port.own->until = clock_.Now();
  if (link && link->carrier_changes >= before)
    port.own->most = std::min(port.own->most, link->carrier_changes - before);
  if (callbacks_.on_own_changes) callbacks_.on_own_changes(*port.own);
  if (!link || port.own->most == 0) return {};
  return fmt::format("; its link went down and up {} by that, which is no flapping",
                     port.own->most <= 2 ? "once" : fmt::format("{} times", (port.own->most + 1) / 2));
}

void QosLoop::Open(Port& port) {
  // The journal first: a crash between the two leaves a port that is shut, and the next start opens it.
  Keep(port);
  gate_.Restore(port.port.name);
  port.progress = ApplyProgress();
  port.waiting.clear();
  port.resumed = false;
  port.own.reset();
  freed_ = true;
}

void QosLoop::GiveBack(Port& port, const NextApplyStep& next) {
  const QosTimings& timings = options_.timings;
  const MonotonicTime now = clock_.Now();
  // That nobody uses it now is no news where it was not use that kept it.
  if (port.progress.idle_moment || !next.in_use) pause_.not_idle_before = now + timings.idle_pause;
  if (port.progress.idle_moment) {
    Log(port, "was idle for a moment only, and new pods get it again");
    return Open(port);
  }
  std::chrono::nanoseconds wait = timings.pause;
  for (int i = 0; i < pause_.in_vain && wait < timings.max_pause; ++i) wait *= 2;
  wait = std::min(wait, timings.max_pause);
  pause_.until = now + wait;
  pause_.until_text = base::FormatTime(std::chrono::floor<std::chrono::seconds>(clock_.WallNow() + wait));
  pause_.port = port.port.name;
  ++pause_.in_vain;
  ++port.in_vain;
  ++counts_.given_back;
  port.given_back = fmt::format(
      "is not set yet: new pods get it again until {}, or until no program uses it, after it was kept from "
      "them "
      "for {}: {}{}",
      pause_.until_text, DurationText(timings.patience), next.why, Holders(port, next.in_use));
  Tell(true, kLosslessPortInUse, port, port.given_back);
  Log(port, port.given_back);
  Open(port);
  port.waiting = port.given_back;
}

std::string QosLoop::Holders(const Port& port, bool in_use) {
  static constexpr std::ptrdiff_t kNamed = 4;  // of each kind: a report's reason has 512 characters
  const auto list = [](std::string_view what, const std::vector<std::string>& names) {
    if (names.empty()) return std::string();
    const auto end = names.begin() + std::min(kNamed, std::ptrdiff_t(names.size()));
    std::string text = fmt::format("; {} {}", what, fmt::join(names.begin(), end, ", "));
    if (end != names.end()) text += fmt::format(" and {} more", names.end() - end);
    return text;
  };
  std::string holders = list("pods that were given it:", gate_.Holders(port.port.name)) +
                        list("processes:", io_.QueuePairHolders(port.port));
  if (!holders.empty() || !in_use) return holders;
  return "; which those are is not seen from here: `rdma resource show qp` and `rdma resource show pd` on "
         "the node tell";
}

bool QosLoop::Keep(Port& port) {
  if (port.record == port.kept) return true;
  if (const auto kept = journal_.Put(port.record); !kept) {
    Log(port, fmt::format("could not be written down: {}", kept.error().message));
    return false;
  }
  port.kept = port.record;
  return true;
}

}  // namespace heddle::nodeagent
