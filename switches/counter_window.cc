#include "switches/counter_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "lossless/pause.h"

namespace heddle::switches {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using topology::Symptom;

// A port that no sample has had for so long is forgotten.
constexpr std::chrono::nanoseconds kForget = hours(1);
// As nodeagent's: longer than any look leaves a counter out.
constexpr std::chrono::nanoseconds kUncounted = 2 * kSwitchQuiet;
constexpr std::chrono::nanoseconds kQuiet = kSwitchQuiet;
// What moves at once on one port; more would say no more, and takes memory.
constexpr std::size_t kMostJudgements = 16;
// Beside SwitchCount: what pause is held against, and states of a port that samples saw.
constexpr std::uint8_t kInPackets = 17, kOutPackets = 18, kSeenStates = 19;
constexpr std::array<std::string_view, 20> kNames{"state changes",     "in_errors",
                                                  "uncorrected",       "in_discards",
                                                  "PFC received",      "PFC sent",
                                                  "queue drops",       "watchdog storms",
                                                  "out_discards",      "marked packets",
                                                  "link downs",        "symbol errors",
                                                  "link recoveries",   "local link integrity errors",
                                                  "buffer overruns",   "ticks without credit",
                                                  "FEC symbol errors", "packets in",
                                                  "packets out",       "states seen"};

constexpr auto kRules = std::to_array<SwitchRule>({
    // Two downs: down, up, down are three changes. One is what a boot of either end looks like.
    {SwitchCount::kStateChanges, Symptom::kFlap, true, minutes(10), 3, 0},
    // NVSentinel: over 10 a second.
    {SwitchCount::kInErrors, Symptom::kErrors, true, minutes(1), 601, 300},
    // NVSentinel: over 120 an hour. Each is a frame that was lost, or several.
    {SwitchCount::kUncorrected, Symptom::kErrors, true, hours(1), 121, 120},
    // NVSentinel, of what is sent: over 100 a second. Discards are of all classes, so a few are everyday.
    {SwitchCount::kInDiscards, Symptom::kDrops, true, minutes(1), 6'001, 600},
    {SwitchCount::kPauseReceived, Symptom::kPauseStorm, true, seconds(30), 0, 0},
    {SwitchCount::kPauseSent, Symptom::kPauseStorm, false, seconds(30), 0, 0},
    // A class that PFC keeps loses nothing; ours.
    {SwitchCount::kQueueDrops, Symptom::kDrops, true, minutes(10), 1, 0},
    // SONiC's watchdog: one is a queue that was stopped for its whole detection time, 200 ms by default.
    {SwitchCount::kStorms, Symptom::kPauseStorm, true, minutes(10), 1, 0},
    // As what comes in. Which queue it was a port does not say, so only where queues say nothing themselves.
    {SwitchCount::kOutDiscards, Symptom::kDrops, true, minutes(1), 6'001, 600},
    // Told beside the others, and never alone.
    {SwitchCount::kMarks, Symptom::kDrops, true, minutes(10), 1, 0},
    // InfiniBand, as hosts judge their own end (nodeagent/health/link_rules.cc, with the sources). A switch that boots
    // takes each of its links down once: two are a flap.
    {SwitchCount::kLinkDowns, Symptom::kFlap, true, minutes(10), 2, 0},
    {SwitchCount::kSymbolErrors, Symptom::kErrors, true, hours(1), 121, 120},
    {SwitchCount::kLinkRecoveries, Symptom::kErrors, true, minutes(1), 6, 2},
    {SwitchCount::kIntegrityErrors, Symptom::kErrors, true, minutes(10), 1, 0},
    {SwitchCount::kBufferOverruns, Symptom::kErrors, true, minutes(10), 1, 0},
    {SwitchCount::kWaitTicks, Symptom::kErrors, true, minutes(10), 1, 0},
    // By speed. 32 bits of a bucket hold what 20 s of 800 Gb/s count; what does not fit errs towards silence.
    {SwitchCount::kFecSymbols, Symptom::kErrors, true, minutes(1), 0, 0},
});
// Told beside the others, and never alone.
constexpr bool IsBeside(SwitchCount count) {
  return count == SwitchCount::kMarks || count == SwitchCount::kWaitTicks;
}
// Whoever sets these back sets back all of a port: a boot, or a port that is made anew.
constexpr bool TellsAReset(std::uint8_t count) {
  return count == kInPackets || count == kOutPackets || count == std::uint8_t(SwitchCount::kStateChanges);
}
// They come on every busy port, and must not take the room of what is wrong.
constexpr std::size_t kMostWithMarks = kMostJudgements / 2;

std::int64_t Ticks(base::MonotonicTime time) {
  return time.time_since_epoch().count();
}

std::uint32_t Stamp(std::int64_t ticks) {
  return std::uint32_t(ticks / 1'000'000);
}

std::int64_t TicksSince(std::uint32_t stamp, std::int64_t now) {
  return std::int64_t(std::uint32_t(Stamp(now) - stamp)) * 1'000'000;
}

// Of a time that is longer than the window, the window's share.
std::uint64_t ShareOf(std::uint64_t count, std::int64_t gap, seconds window) {
  const std::int64_t most = std::chrono::nanoseconds(window).count();
  if (gap <= most) return count;
  return std::uint64_t(double(count) * (double(most) / double(gap)));
}

std::string WindowText(seconds window) {
  if (window.count() % 3600 == 0) return fmt::format("{} h", window.count() / 3600);
  return window.count() % 60 == 0 ? fmt::format("{} min", window.count() / 60)
                                  : fmt::format("{} s", window.count());
}

std::string EvidenceOf(const SwitchRule& rule, int index, std::uint64_t count) {
  const std::string in = WindowText(rule.window);
  switch (rule.count) {
    case SwitchCount::kStateChanges:
      return fmt::format("{} flaps in {}", (count + 1) / 2, in);
    case SwitchCount::kInErrors:
      return fmt::format("{} broken packets in {}", count, in);
    case SwitchCount::kUncorrected:
      return fmt::format("{} uncorrected code words in {}", count, in);
    case SwitchCount::kInDiscards:
      return fmt::format("{} packets discarded in {}", count, in);
    case SwitchCount::kPauseReceived:
    case SwitchCount::kPauseSent:
      return fmt::format("{} pause frames in {} (priority {})", count, in, index);
    case SwitchCount::kQueueDrops:
      return fmt::format("{} packets dropped in {} (queue {})", count, in, index);
    case SwitchCount::kOutDiscards:
      return fmt::format("{} packets discarded on the way out in {}", count, in);
    case SwitchCount::kMarks:
      return fmt::format("{} packets marked in {} (queue {})", count, in, index);
    case SwitchCount::kLinkDowns:
      return fmt::format("{} link downs in {}", count, in);
    case SwitchCount::kSymbolErrors:
      return fmt::format("{} symbol errors in {}", count, in);
    case SwitchCount::kLinkRecoveries:
      return fmt::format("{} link recoveries in {}", count, in);
    case SwitchCount::kIntegrityErrors:
      return fmt::format("{} local link integrity errors in {}", count, in);
    case SwitchCount::kBufferOverruns:
      return fmt::format("{} buffer overruns in {}", count, in);
    case SwitchCount::kWaitTicks:
      return fmt::format("{} ticks without credit in {}", count, in);
    case SwitchCount::kFecSymbols:
      return fmt::format("{} FEC symbol errors in {}, more than IEEE 802.3 allows", count, in);
    case SwitchCount::kStorms:
      return fmt::format("{} storm{} found by the watchdog in {} (queue {})", count, count == 1 ? "" : "s",
                         in, index);
  }
  return {};
}

}  // namespace

std::span<const SwitchRule> SwitchRules() {
  return kRules;
}

std::uint64_t PauseThreshold(const std::optional<int>& speed_mbps, seconds window) {
  constexpr int kUnknownMbps = 400'000;
  return lossless::FullPausePerSecond(speed_mbps.value_or(kUnknownMbps) / 1000) *
         std::uint64_t(window.count()) / 2;
}

std::uint64_t LeastPauseOfAStorm(const std::optional<int>& speed_mbps) {
  return std::max<std::uint64_t>(PauseThreshold(speed_mbps, seconds(1)) / 5, 1);
}

std::uint64_t FecSymbolThreshold(const std::optional<int>& speed_mbps, seconds window) {
  constexpr std::uint64_t kUnknownMbps = 800'000;
  // 2.4e-4 x 544/514 x 257/256 = 255 in a million.
  constexpr std::uint64_t kInAMillion = 255;
  const std::uint64_t mbps = speed_mbps ? std::uint64_t(*speed_mbps) : kUnknownMbps;
  return mbps * kInAMillion * std::uint64_t(window.count());
}

// One sample of one port.
class CounterWindow::Step {
 public:
  Step(Port& port, const PortCounters& said, std::int64_t now) : port_(port), said_(said), now_(now) {}

  void Run() {
    port_.seen = now_;
    if (said_.speed_mbps) port_.speed_mbps = said_.speed_mbps;
    const std::size_t before = port_.known.size();
    const Moved in = Look({kInPackets, 0}, said_.in_packets), out = Look({kOutPackets, 0}, said_.out_packets);
    TakeState();
    Take(SwitchCount::kInErrors, 0, said_.in_errors);
    Take(SwitchCount::kUncorrected, 0, said_.uncorrected);
    Take(SwitchCount::kInDiscards, 0, said_.in_discards);
    Take(SwitchCount::kLinkDowns, 0, said_.link_downs);
    Take(SwitchCount::kSymbolErrors, 0, said_.symbol_errors);
    Take(SwitchCount::kLinkRecoveries, 0, said_.link_recoveries);
    Take(SwitchCount::kIntegrityErrors, 0, said_.integrity_errors);
    Take(SwitchCount::kBufferOverruns, 0, said_.buffer_overruns);
    Take(SwitchCount::kWaitTicks, 0, said_.wait_ticks);
    Take(SwitchCount::kFecSymbols, 0, said_.fec_symbols);
    for (int i = 0; i < kCountedPriorities; ++i) {
      TakePause(SwitchCount::kPauseReceived, i, said_.pfc_received[std::size_t(i)], out);
      TakePause(SwitchCount::kPauseSent, i, said_.pfc_sent[std::size_t(i)], in);
    }
    for (const auto& [queue, count] : said_.queue_drops) TakeLossless(SwitchCount::kQueueDrops, queue, count);
    for (const auto& [queue, count] : said_.ecn_marked) TakeLossless(SwitchCount::kMarks, queue, count);
    TakeOutDiscards();
    for (const auto& [queue, count] : said_.storms) {
      if (queue >= 0 && queue < kCountedPriorities) Take(SwitchCount::kStorms, queue, count);
    }
    // One that goes on is no second one, but no quiet either.
    for (const int queue : said_.storming) {
      if (queue >= 0 && queue < kCountedPriorities) Judge(SwitchCount::kStorms, queue, {}, true);
    }
    std::erase_if(port_.judgements, [&](const Judgement& one) { return IsOver(one); });
    // Pause of what is not lossless any more, for instance: nobody asks for it again.
    std::erase_if(port_.known,
                  [&](const Known& one) { return TicksSince(one.at, now_) > kUncounted.count(); });
    if (port_.known.size() != before) port_.known.shrink_to_fit();
  }

  std::uint64_t discards() const { return discards_; }
  std::uint64_t pause() const { return pause_; }

 private:
  struct Moved {
    std::optional<std::uint64_t>
        by;  // since it was last said; nothing the first time, and where it went back
    std::int64_t gap = 0;
  };

  Known* Find(Key key) {
    const auto found = std::find_if(port_.known.begin(), port_.known.end(),
                                    [key](const Known& one) { return one.key == key; });
    return found == port_.known.end() ? nullptr : &*found;
  }

  Moved Look(Key key, const std::optional<std::uint64_t>& said) {
    if (!said) return {};
    Known* known = Find(key);
    if (known == nullptr) {
      port_.known.push_back({*said, Stamp(now_), key});
      return {};
    }
    Moved moved{std::nullopt, TicksSince(known->at, now_)};
    // Counters of switches have 64 bits, so what goes back was set back, but for one that has come to their end.
    constexpr std::uint64_t kQuarter = std::numeric_limits<std::uint64_t>::max() / 4;
    const bool wrapped = known->raw > 3 * kQuarter && *said < kQuarter;
    if (*said >= known->raw || wrapped) {
      if (!IsBeforeReset(moved.gap)) moved.by = *said - known->raw;
    } else {
      if (TellsAReset(key.count)) port_.reset_at = now_;
      port_.went_back = key;
      port_.went_back_at = now_;
      port_.went_back_from = known->raw;
      port_.went_back_to = *said;
    }
    known->raw = *said;
    known->at = Stamp(now_);
    return moved;
  }

  // Whether what was said so long ago was said before the port was reset. Stamps are of milliseconds.
  bool IsBeforeReset(std::int64_t gap) const { return now_ - gap + 1'000'000 < port_.reset_at; }

  void Take(SwitchCount count, int index, const std::optional<std::uint64_t>& said) {
    if (said) Judge(count, index, Look({std::uint8_t(count), std::uint8_t(index)}, said));
  }

  // A counter sees each change, also those between two samples; of a port without one the states that samples saw.
  void TakeState() {
    if (said_.state_changes) return Take(SwitchCount::kStateChanges, 0, said_.state_changes);
    // One that was said lately goes on when it is said again, and has then counted what a state would tell now.
    if (!said_.up || Find({std::uint8_t(SwitchCount::kStateChanges), 0}) != nullptr) return;
    // Counted so that the lowest bit is the state: it moves by one with each change.
    const Key key{kSeenStates, 0};
    const Known* known = Find(key);
    const std::uint64_t before = known == nullptr ? 0 : known->raw;
    const bool was_up = before % 2 == 1;
    Judge(SwitchCount::kStateChanges, 0, Look(key, was_up == *said_.up ? before : before + 1));
  }

  // Whoever sends more packets than it gets pause frames is slow, and not stopped: frames come in twos, stop and go.
  void TakePause(SwitchCount count, int index, const std::optional<std::uint64_t>& said,
                 const Moved& packets) {
    if (!said) return;
    Moved moved = Look({std::uint8_t(count), std::uint8_t(index)}, said);
    // Not held against packets: the watchdog looks at a tenth of a second of what may be ten.
    if (count == SwitchCount::kPauseReceived && moved.by.value_or(0) >= LeastPauseOfAStorm(port_.speed_mbps))
      pause_ = std::max(pause_, *moved.by);
    // Without packets of the same time it is not known.
    const bool same = packets.by && packets.gap == moved.gap;
    if (moved.by && (!same || *packets.by >= *moved.by)) moved.by = 0;
    Judge(count, index, moved);
  }

  // Which queues are lossless a counter does not say; but only such a class has ever sent or got pause.
  bool IsPaused(int queue) {
    const auto moved = [&](SwitchCount count) {
      const Known* known = Find({std::uint8_t(count), std::uint8_t(queue)});
      return known != nullptr && known->raw > 0;
    };
    return moved(SwitchCount::kPauseReceived) || moved(SwitchCount::kPauseSent);
  }

  void TakeLossless(SwitchCount count, int queue, std::uint64_t said) {
    if (queue < 0 || queue >= kCountedPriorities) return;
    const Moved moved = Look({std::uint8_t(count), std::uint8_t(queue)}, said);
    if (IsPaused(queue)) Judge(count, queue, moved);
  }

  void TakeOutDiscards() {
    if (!said_.out_discards) return;
    const Moved moved = Look({std::uint8_t(SwitchCount::kOutDiscards), 0}, said_.out_discards);
    bool lossless = false, told = false;
    for (int queue = 0; queue < kCountedPriorities; ++queue) {
      if (!IsPaused(queue)) continue;
      lossless = true;
      told = told || Find({std::uint8_t(SwitchCount::kQueueDrops), std::uint8_t(queue)}) != nullptr;
    }
    if (!lossless) return;
    discards_ = moved.by.value_or(0);
    Judge(SwitchCount::kOutDiscards, 0, told ? Moved{0, moved.gap} : moved);
  }

  void Judge(SwitchCount count, int index, const Moved& moved, bool goes_on = false) {
    for (std::size_t i = 0; i < kRules.size(); ++i) {
      if (kRules[i].count == count) JudgeBy(std::uint8_t(i), std::uint8_t(index), moved, goes_on);
    }
  }

  void JudgeBy(std::uint8_t number, std::uint8_t index, const Moved& moved, bool goes_on) {
    const SwitchRule& rule = kRules[number];
    const std::uint64_t count = moved.by ? ShareOf(*moved.by, moved.gap, rule.window) : 0;
    auto found = std::find_if(port_.judgements.begin(), port_.judgements.end(),
                              [&](const Judgement& one) { return one.rule == number && one.index == index; });
    if (found == port_.judgements.end()) {
      // A few pauses come and go on every port.
      const bool moves = count > 0 && count >= ThresholdOf(rule) / 1000;
      const std::size_t most = IsBeside(rule.count) ? kMostWithMarks : kMostJudgements;
      if ((!moves && !goes_on) || port_.judgements.size() >= most) return;
      Judgement fresh;
      fresh.rule = number;
      fresh.index = index;
      fresh.newest = BucketOf(rule);
      port_.judgements.push_back(fresh);
      found = port_.judgements.end() - 1;
    }
    Decide(rule, *found, std::max<std::uint64_t>(Fill(rule, *found, count), goes_on ? 1 : 0));
  }

  std::uint64_t ThresholdOf(const SwitchRule& rule) const {
    if (rule.threshold > 0) return rule.threshold;
    const std::uint64_t by_speed = rule.count == SwitchCount::kFecSymbols
                                       ? FecSymbolThreshold(port_.speed_mbps, rule.window)
                                       : PauseThreshold(port_.speed_mbps, rule.window);
    return std::max<std::uint64_t>(by_speed, 1);
  }
  std::uint64_t CalmOf(const SwitchRule& rule) const {
    return rule.threshold > 0 ? rule.calm : ThresholdOf(rule) / 5;
  }

  std::int64_t BucketOf(const SwitchRule& rule) const {
    return now_ / (std::chrono::nanoseconds(rule.window).count() / kBuckets);
  }

  static std::size_t At(std::int64_t bucket) {
    return std::size_t((bucket % kBuckets + kBuckets) % kBuckets);
  }

  // The sum over the window, this included.
  std::uint64_t Fill(const SwitchRule& rule, Judgement& state, std::uint64_t count) const {
    const std::int64_t number = BucketOf(rule);
    for (std::int64_t past = state.newest + 1; past <= number && past <= state.newest + kBuckets; ++past)
      state.buckets[At(past)] = 0;
    state.newest = number;
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t& bucket = state.buckets[At(number)];
    bucket = std::uint32_t(std::min(bucket + std::min(count, kMost), kMost));
    std::uint64_t sum = 0;
    for (const std::uint32_t one : state.buckets) sum += one;
    return sum;
  }

  void Decide(const SwitchRule& rule, Judgement& state, std::uint64_t sum) const {
    state.told = now_;
    const std::uint64_t threshold = ThresholdOf(rule);
    if (sum >= threshold && (state.reported == 0 || sum / 2 >= state.reported)) state.reported = sum;
    if (state.reported == 0) return;
    if (sum > CalmOf(rule)) {
      state.quiet_since = -1;
    } else if (state.quiet_since < 0) {
      state.quiet_since = now_;
    } else if (now_ - state.quiet_since >= kQuiet.count()) {
      state.reported = 0;
      state.quiet_since = -1;
    }
  }

  // Nothing in it that would be missed.
  bool IsOver(const Judgement& one) const {
    if (now_ - one.told > kUncounted.count()) return true;
    const bool empty =
        std::all_of(one.buckets.begin(), one.buckets.end(), [](std::uint32_t b) { return b == 0; });
    return one.reported == 0 && empty;
  }

  Port& port_;
  const PortCounters& said_;
  const std::int64_t now_;
  std::uint64_t discards_ = 0, pause_ = 0;  // of QueueHint
};

std::vector<QueueHint> CounterWindow::Add(const CounterSample& sample) {
  if (last_ && sample.at < *last_) return {};
  std::vector<QueueHint> hints;
  if (last_ && sample.at - *last_ > kForget) ports_.clear();  // before stamps could come round
  last_ = sample.at;
  const std::int64_t now = Ticks(sample.at);
  for (const auto& [name, counters] : sample.ports) {
    auto found = ports_.find(name);
    if (found == ports_.end()) {
      if (ports_.size() >= kMaxCountedPorts) continue;
      found = ports_.try_emplace(name).first;
    }
    Step step(found->second, counters, now);
    step.Run();
    if (step.discards() > 0 || step.pause() > 0) hints.push_back({name, step.discards(), step.pause()});
  }
  std::erase_if(ports_, [now](const auto& entry) { return now - entry.second.seen > kForget.count(); });
  return hints;
}

std::vector<PortSightings> CounterWindow::Sightings(base::MonotonicTime now) const {
  const std::int64_t ticks = Ticks(now);
  std::vector<PortSightings> all;
  for (const auto& [name, port] : ports_) {
    PortSightings one{name, {}, ""};
    std::vector<const Judgement*> judgements;
    for (const Judgement& state : port.judgements) {
      if (state.reported > 0 && ticks - state.told <= kUncounted.count()) judgements.push_back(&state);
    }
    std::sort(judgements.begin(), judgements.end(), [](const Judgement* a, const Judgement* b) {
      return std::tie(a->rule, a->index) < std::tie(b->rule, b->index);
    });
    std::string marks, waits;
    for (const Judgement* state : judgements) {
      const SwitchRule& rule = kRules[state->rule];
      std::string evidence = EvidenceOf(rule, state->index, state->reported);
      if (rule.count == SwitchCount::kMarks) {
        marks += "; " + evidence;
      } else if (rule.count == SwitchCount::kWaitTicks) {
        waits += "; " + evidence;
      } else {
        one.sightings.push_back({rule.symptom, rule.by_far_end, std::move(evidence)});
      }
    }
    for (topology::Sighting& sighting : one.sightings) {
      if (sighting.symptom == Symptom::kPauseStorm || sighting.symptom == Symptom::kDrops)
        sighting.evidence += marks;
      sighting.evidence += waits;
    }
    if (port.went_back_at >= 0 && ticks - port.went_back_at <= kQuiet.count()) {
      one.note = fmt::format("{} went back from {} to {}: what it counted meanwhile is not known",
                             kNames[port.went_back.count], port.went_back_from, port.went_back_to);
    }
    if (!one.sightings.empty() || !one.note.empty()) all.push_back(std::move(one));
  }
  return all;
}

std::size_t CounterWindow::bytes() const {
  constexpr std::size_t kMapNode = 4 * sizeof(void*);
  std::size_t sum = sizeof(*this);
  for (const auto& [name, port] : ports_) {
    sum += kMapNode + sizeof(std::pair<const std::string, Port>) +
           (name.capacity() > 15 ? name.capacity() : 0) + port.known.capacity() * sizeof(Known) +
           port.judgements.capacity() * sizeof(Judgement);
  }
  return sum;
}

}  // namespace heddle::switches
