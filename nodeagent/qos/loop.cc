#include "nodeagent/qos/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lossless/compare.h"

namespace heddle::nodeagent {
namespace {

using base::MonotonicTime;
using crds::LosslessMode;
using crds::LosslessReport;
using crds::LosslessState;

const std::string kKey = "pass";
const std::string kMayNotSettle =
    "is half set, and this agent may set nothing: it is gone on with once agent.lossless.enabled is on "
    "again, and "
    "given back at once where what was there before is set by hand";

bool Sets(const std::optional<crds::LosslessWish>& wish) {
  return wish && wish->settings && wish->mode == LosslessMode::kApply && wish->not_understood.empty();
}

}  // namespace

QosLoop::QosLoop(PortIo& io, PortGate& gate, Journal& journal, base::Clock& clock, QosLoopOptions options,
                 QosCallbacks callbacks)
    : io_(io),
      gate_(gate),
      journal_(journal),
      clock_(clock),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      queue_(clock) {
  queue_.Add(kKey);
}

void QosLoop::Want(std::vector<crds::LosslessWish> wishes) {
  {
    const std::lock_guard lock(mutex_);
    new_wishes_ = std::move(wishes);
  }
  queue_.Add(kKey);
}

void QosLoop::Have(std::vector<QosPort> ports) {
  {
    const std::lock_guard lock(mutex_);
    if (new_ports_ == ports) return;
    new_ports_ = std::move(ports);
  }
  queue_.Add(kKey);
}

void QosLoop::Restore(std::vector<LosslessReport> published, const std::string& boot) {
  if (!boot.empty() && !options_.boot.empty() && boot != options_.boot) return;
  const std::lock_guard lock(mutex_);
  new_published_ = std::move(published);
}

void QosLoop::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  queue_.AddAfter(kKey, options_.wake_settle);
}

void QosLoop::Run(std::stop_token stop) {
  while (queue_.Get(stop)) {
    Pass();
    queue_.Done(kKey);
  }
}

bool QosLoop::RunOnce() {
  if (!queue_.TryGet()) return false;
  Pass();
  queue_.Done(kKey);
  return true;
}

void QosLoop::Pass() {
  const MonotonicTime started = clock_.Now();
  if (!std::exchange(loaded_, true)) {
    hear_until_ = started + options_.timings.hear;
    Load();
  }
  bool all = started >= next_look_;
  TakeInputs(all);
  if (all) next_look_ = started + options_.interval;
  for (auto& [name, port] : ports_) {
    if (all || port.progress.stage != ApplyStage::kIdle || !port.waiting.empty()) Look(port);
  }
  Forget();
  MonotonicTime when = next_look_;
  freed_ = false;
  for (Port* port : Turns()) {
    // Who comes first in turn has been passed over already: the next pass, which is at once, gives the turn.
    if (freed_ && port->progress.stage == ApplyStage::kIdle) {
      when = started;
    } else {
      Work(*port, when);
    }
  }
  Publish();
  const MonotonicTime ended = clock_.Now();
  if (callbacks_.on_pass) callbacks_.on_pass(counts_, ended - started);
  queue_.AddAfter(kKey, std::max(when - ended, std::chrono::nanoseconds(0)));
}

void QosLoop::Load() {
  Journal::Loaded loaded = journal_.Load();
  for (const std::string& problem : loaded.problems) {
    problems_.push_back(Plain(problem));
    if (callbacks_.log) callbacks_.log(fmt::format("Could not read the journal why=\"{}\"", problem));
  }
  for (PortRecord& record : loaded.records) Resume(std::move(record));
}

void QosLoop::Resume(PortRecord record) {
  Port& port = ports_[record.port];
  port.port.name = record.port;
  port.record = port.kept = std::move(record);
  auto& unsettled = port.record.unsettled;
  if (!unsettled) return;
  port.port = unsettled->port;
  if (!options_.boot.empty() && port.record.boot != options_.boot) {
    // The driver has its own settings again: there is nothing to go on with, and nothing to take back.
    ++port.record.crashes;
    unsettled.reset();
    port.record.applied = port.record.pause_off = false;
    port.record.boot = options_.boot;
    if (port.record.crashes >= kMaxCrashes) {
      port.record.failed = fmt::format(
          "the machine was restarted {} times in the middle of setting it: nothing more is tried until the "
          "policy "
          "changes; look at what the kernel said before it stopped",
          port.record.crashes);
    }
    Log(port, "was being set when the machine restarted");
  } else {
    if (options_.may_write) ++unsettled->starts;
    port.resumed = true;
    if (unsettled->interrupts) gate_.Withdraw(port.port.name, "it was being set when the agent stopped");
    port.progress.stage = unsettled->back ? ApplyStage::kRollingBack : ApplyStage::kWriting;
    port.progress.since = clock_.Now();
    Log(port, unsettled->back ? "was being taken back when the agent stopped"
                              : "was being set when the agent stopped");
  }
  Keep(port);
}

void QosLoop::TakeInputs(bool& all) {
  std::optional<std::vector<crds::LosslessWish>> wishes;
  std::optional<std::vector<QosPort>> machine;
  {
    const std::lock_guard lock(mutex_);
    wishes = std::exchange(new_wishes_, std::nullopt);
    machine = new_ports_;
    if (new_published_) published_ = *std::exchange(new_published_, std::nullopt);
    all = std::exchange(woken_, false) || all;
  }
  if (wishes && (!wished_ || *wishes != wishes_)) {
    all = wished_ = true;
    wishes_ = *std::move(wishes);
    for (auto& [name, port] : ports_) port.wish.reset();
    for (const crds::LosslessWish& wish : wishes_) {
      for (const std::string& name : wish.ports) {
        Port& port = ports_[name];
        port.port.name = name;
        port.wish = wish;
      }
    }
  }
  if (!machine) return;
  const bool first = !std::exchange(seen_, true);
  all = first || all;
  for (auto& [name, port] : ports_) {
    const auto found = std::find_if(machine->begin(), machine->end(),
                                    [&key = name](const QosPort& one) { return one.name == key; });
    const bool known = found != machine->end();
    all = all || known != port.known || (known && port.port != *found);
    // The operator tells nothing to a NIC that is not published, and tells it anew once it is.
    if (known && !port.known && !first) port.hear_until = clock_.Now() + options_.timings.hear;
    port.known = known;
    if (known) port.port = *found;
  }
}

void QosLoop::Look(Port& port) {
  port.judged.reset();
  // Before the first look at the machine only a write that the journal knows can be gone on with.
  if (!seen_ && !port.record.unsettled) return;
  port.reading = QosReading();
  port.reading.gone = port.port.netdev.empty() || (seen_ && !port.known);
  const bool matters = port.record.unsettled || (port.wish && port.wish->settings);
  if (!port.reading.gone && matters) port.reading = io_.Read(port.port);
  if (!port.wish) return;
  QosFacts facts;
  facts.port = port.port;
  facts.wish = &*port.wish;
  facts.reading = port.reading;
  facts.may_write = options_.may_write;
  facts.boot = options_.boot;
  const LosslessReport* before =
      port.shown.ports.empty() ? ReportOf(published_, port.port.name) : &port.shown;
  if (port.wish->settings && !port.reading.gone) {
    const lossless::PortSettings want = lossless::WithWhatFollows(*port.wish->settings);
    for (const auto& drift : lossless::Compare(want, port.reading.have).drifts) {
      const bool told = before != nullptr &&
                        std::any_of(before->drift.begin(), before->drift.end(), [&drift](const auto& known) {
                          return known.drift.setting == drift.setting;
                        });
      if (!told) facts.writers[drift.setting] = Plain(io_.LikelyWriter(port.port, drift.setting));
    }
    std::erase_if(facts.writers, [](const auto& writer) { return writer.second.empty(); });
  }
  port.judged = Judge(facts, port.record, before, clock_.WallNow());
  // Another policy, or another NIC, is worth another try.
  const std::string about = AboutOf(port.judged->record);
  if (std::exchange(port.about, about) != about) pause_ = NodePause();
  port.record = port.judged->record;
  if (Sets(port.wish) && options_.may_write) Keep(port);
}

void QosLoop::Forget() {
  if (!wished_) return;
  for (auto port = ports_.begin(); port != ports_.end();) {
    Port& one = port->second;
    // That a NIC is not published takes its wish away as the end of its policy does; and without the record what failed
    // would be tried again as soon as it is back.
    const bool failed = !one.record.failed.empty() || !one.record.conflict.empty();
    const bool heard = seen_ && one.known && clock_.Now() >= std::max(hear_until_, one.hear_until);
    if (one.wish || one.record.unsettled || one.progress.stage != ApplyStage::kIdle || (failed && !heard)) {
      ++port;
      continue;
    }
    if (!one.kept.port.empty()) {
      if (const auto removed = journal_.Remove(one.kept.port); !removed) Log(one, removed.error().message);
    }
    port = ports_.erase(port);
  }
}

std::string QosLoop::Before(const Port& port) const {
  for (const auto& [name, other] : ports_) {
    // One that vanished in the middle may never be back, or be back by another name: nobody waits for it.
    if (&other == &port || other.progress.stage == ApplyStage::kIdle || other.reading.gone) continue;
    if (!other.record.unsettled || other.record.unsettled->interrupts) return name;
  }
  return {};
}

std::vector<QosLoop::Port*> QosLoop::Turns() {
  std::vector<Port*> turns;
  for (auto& [name, port] : ports_) turns.push_back(&port);
  std::stable_sort(turns.begin(), turns.end(),
                   [](const Port* a, const Port* b) { return a->in_vain < b->in_vain; });
  return turns;
}

bool QosLoop::MayNotSettle(const Port& port) const {
  const auto& unsettled = port.record.unsettled;
  if (options_.may_write || !unsettled) return false;
  return port.reading.gone || !NotBack(*unsettled, port.reading).empty();
}

void QosLoop::KnowPods(Port& port) {
  const MonotonicTime now = clock_.Now();
  std::map<std::string, MonotonicTime> pods;
  for (const std::string& pod : gate_.Holders(port.port.name)) {
    const auto known = port.pods.find(pod);
    pods.emplace(pod, known == port.pods.end() ? now : known->second);
  }
  port.pods = std::move(pods);
}

// Kubelets go on listing pods that have ended, and some pods never use what they have: without an end to it each port
// of the node in its turn would wait for those.
bool QosLoop::GrantedOfLate(const Port& port) const {
  const std::chrono::nanoseconds patience = options_.timings.patience;
  return std::any_of(port.pods.begin(), port.pods.end(), [&](const auto& pod) {
    return patience <= std::chrono::nanoseconds(0) || clock_.Now() < pod.second + patience;
  });
}

void QosLoop::Work(Port& port, MonotonicTime& when) {
  KnowPods(port);
  if (MayNotSettle(port)) {
    if (std::exchange(port.waiting, kMayNotSettle) != kMayNotSettle) Log(port, kMayNotSettle);
    return;
  }
  const MonotonicTime now = clock_.Now();
  const MonotonicTime hear_until = !wished_ ? hear_until_ : !port.wish ? port.hear_until : MonotonicTime{};
  if (now < hear_until && port.record.unsettled && !port.record.unsettled->back) {
    when = std::min(when, hear_until);
    return;
  }
  StepFacts facts;
  facts.timings = options_.timings;
  facts.judged = port.judged ? &*port.judged : nullptr;
  // The API server may be away: what was begun is gone on with until the spec is known.
  facts.wanted = options_.may_write && (wished_ ? Sets(port.wish) : port.record.unsettled.has_value());
  facts.gone = port.reading.gone;
  facts.record = &port.record;
  facts.progress = port.progress;
  facts.before_it = Before(port);
  facts.leak = gate_.Leak();
  facts.pause = pause_;
  if (pause_.port == port.port.name) facts.given_back = port.given_back;
  if (AsksQueuePairs(facts, now)) {
    facts.asked.queue_pairs = io_.UserQueuePairs(port.port);
    facts.granted = facts.progress.stage == ApplyStage::kDraining && GrantedOfLate(port);
  }
  if (AsksLink(facts, now)) facts.asked.link = io_.Link(port.port);
  const bool backed_off = port.progress.not_before > now && !facts.gone;
  const ApplyStage before = port.progress.stage;
  const NextApplyStep next = NextStepOf(facts, now);
  port.progress = next.progress;
  if (!backed_off) port.waiting = next.reason;
  if (next.undone && port.record.unsettled && !port.record.unsettled->back) {
    ++port.record.unsettled->undone;
    Log(port, "what was written is gone: the interface vanished");
    Keep(port);
  }
  if (next.step == ApplyStep::kNothing) {
    if (next.when != MonotonicTime{}) when = std::min(when, next.when);
    return;
  }
  if (next.step == ApplyStep::kWrite && !port.record.unsettled && before == ApplyStage::kDraining &&
      facts.asked.link && *facts.asked.link) {
    port.link = **facts.asked.link;
  }
  Do(port, next);
  Look(port);
  when = now;
}

void QosLoop::Tell(bool warning, std::string_view reason, const Port& port, std::string note) {
  events_.push_back({warning, reason, port.port.name, std::move(note)});
}

void QosLoop::Log(const Port& port, std::string_view what) const {
  if (callbacks_.log) callbacks_.log(fmt::format("Lossless port={} what=\"{}\"", port.port.name, what));
}

LosslessReport QosLoop::Shown(const Port& port) const {
  LosslessReport report = port.judged->report;
  const auto& unsettled = port.record.unsettled;
  if (port.progress.stage == ApplyStage::kIdle && port.waiting.empty()) return report;
  report.state = LosslessState::kPending;
  if (!port.waiting.empty()) report.reason = port.waiting;
  if (port.waiting.empty()) report.reason = "is being set";
  if (port.reading.gone) report.state = LosslessState::kUnknown;
  if (MayNotSettle(port)) return report;
  if (unsettled && unsettled->back && !unsettled->why.empty()) {
    report.state = LosslessState::kFailed;
    report.reason = fmt::format("{}: what was there before is being set again{}{}", unsettled->why,
                                port.waiting.empty() ? "" : "; ", port.waiting);
  } else if (port.resumed) {
    report.reason += "; it was begun before the agent restarted";
  }
  return report;
}

LosslessReport QosLoop::Vanished(const Port& port) const {
  LosslessReport report;
  report.ports = {port.port.name};
  report.edition = port.record.edition;
  report.state = LosslessState::kUnknown;
  report.reason = port.waiting;
  return report;
}

void QosLoop::Publish() {
  LosslessReadings readings;
  readings.problems = problems_;
  for (const auto& [name, port] : ports_) {
    if (gate_.Withdrawn(name))
      readings.withdrawn[name] = port.record.unsettled && port.record.unsettled->back
                                     ? "its lossless settings are being taken back"
                                     : "its lossless settings are being changed";
  }
  if (wished_ && seen_) {
    std::vector<LosslessReport> reports;
    for (auto& [name, port] : ports_) {
      if (!port.judged) {
        if (port.reading.gone && port.record.unsettled) reports.push_back(port.shown = Vanished(port));
        continue;
      }
      LosslessReport now = Shown(port);
      const LosslessReport* before = port.shown.ports.empty() ? ReportOf(published_, name) : &port.shown;
      for (QosEvent& event : EventsOf(before, now)) {
        if (event.reason == kLosslessDrift) ++counts_.drifts;
        if (event.reason == kLosslessConflict) ++counts_.conflicts;
        events_.push_back(std::move(event));
      }
      port.shown = now;
      reports.push_back(std::move(now));
    }
    readings.reports = GroupReports(std::move(reports));
    // From here on this agent knows better: a port that is told anew, as its NIC or its policy is back, does not
    // stand as it did before this agent started.
    published_.clear();
  }
  if (!events_.empty()) {
    const std::vector<QosEvent> events = JoinEvents(std::exchange(events_, {}));
    if (callbacks_.on_events) callbacks_.on_events(events);
  }
  if (told_ == readings) return;
  told_ = readings;
  if (callbacks_.on_readings) callbacks_.on_readings(readings);
}

std::chrono::nanoseconds QosLoop::BackOff(int tries) const {
  std::chrono::nanoseconds wait = options_.timings.back_off;
  for (int i = 1; i < tries && wait < options_.timings.max_back_off; ++i) wait *= 2;
  return std::min(wait, options_.timings.max_back_off);
}

}  // namespace heddle::nodeagent
