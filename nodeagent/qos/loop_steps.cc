// The steps of QosLoop: what is done to one port when its turn has come.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "lossless/compare.h"
#include "nodeagent/qos/loop.h"

namespace heddle::nodeagent {
namespace {

using base::Code;
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
  }
}

bool QosLoop::Begin(Port& port) {
  const Judgement& judged = *port.judged;
  UnsettledWrite write;
  write.port = port.port;
  write.settings = judged.to_set;
  write.want = Only(judged.to_set, judged.want);
  write.before = Only(judged.to_set, port.reading.have);
  write.interrupts = std::any_of(judged.to_set.begin(), judged.to_set.end(), Interrupts);
  write.about = AboutOf(port.record);
  if (write.interrupts) {
    write.link = port.link;
    if (port.progress.at) write.noise = Growth(*port.progress.at, port.link);
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
  port.waiting =
      "cannot be set: what is there now cannot be written down first; see whether --state-dir is a folder "
      "that the agent may write, with space in it";
  return false;
}

void QosLoop::Write(Port& port) {
  std::map<Setting, int> wrote;
  bool alone = false;
  // Each round writes something for the first or second time, or finds a setting that cannot be written.
  for (int round = 0; round < 4 * lossless::kHostSettings; ++round) {
    port.reading = io_.Read(port.port);
    if (port.reading.gone) return;
    const UnsettledWrite& write = *port.record.unsettled;
    std::vector<Setting> left = Differing(write.settings, write.want, port.reading.have);
    if (left.empty()) {
      port.progress = ApplyProgress();
      port.progress.since = clock_.Now();
      port.progress.stage = ApplyStage::kSettling;
      if (!write.interrupts) Settle(port);
      return;
    }
    if (std::any_of(left.begin(), left.end(), [&wrote](Setting setting) { return wrote[setting] > 1; }))
      return NotKept(port, left);
    // Firmware that keeps the say would write over all that follows.
    if (left.front() == Setting::kDcbx || alone) left.resize(1);
    ++counts_.writes;
    const auto status = io_.Write(port.port, left, write.want);
    for (const Setting setting : left) ++wrote[setting];
    if (status) {
      Log(port, fmt::format("wrote {}", Names(left)));
      continue;
    }
    ++counts_.failed_writes;
    Log(port, fmt::format("could not write {}: {}", Names(left), status.error().message));
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
        fmt::format("the NIC's firmware has the say in DCB settings and does not give it up: {}; turn "
                    "its DCBX off (mlxconfig LLDP_NB_DCBX_P1=0, or the switch's DCBX)",
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
    std::vector<Setting> left = Differing(write.settings, write.before, port.reading.have);
    std::erase_if(
        left, [&](Setting setting) { return std::find(lost.begin(), lost.end(), setting) != lost.end(); });
    if (left.empty()) break;
    if (written == 2) {
      lost.insert(lost.end(), left.begin(), left.end());
      break;
    }
    ++counts_.writes;
    const auto status = io_.Write(port.port, left, write.before);
    if (status) {
      ++written;
      continue;
    }
    ++counts_.failed_writes;
    const auto named = left.size() == 1 ? left.front() : NamedIn(status.error().message, left);
    if (status.error().code == Code::kUnimplemented && named) {
      lost.push_back(*named);
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
  record.crashes = 0;
  record.unsettled.reset();
  ++counts_.applied;
  if (!write.settings.empty()) {
    Tell(false, kLosslessApplied, port,
         fmt::format("{} {} set{}", Names(write.settings), write.settings.size() == 1 ? "is" : "are",
                     port.resumed ? ", as was begun before the agent restarted" : ""));
  }
  Open(port);
}

void QosLoop::Open(Port& port) {
  // The journal first: a crash between the two leaves a port that is shut, and the next start opens it.
  Keep(port);
  gate_.Restore(port.port.name);
  port.progress = ApplyProgress();
  port.waiting.clear();
  port.resumed = false;
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
