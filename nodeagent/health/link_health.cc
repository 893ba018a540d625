#include "nodeagent/health/link_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "crds/cable_evidence.h"
#include "crds/port_name.h"
#include "nodeagent/health/leaf_end.h"

namespace heddle::nodeagent {
namespace {

using base::MonotonicTime;
using topology::LinkFault;
using topology::LinkState;

constexpr auto kForget = std::chrono::hours(1);
constexpr auto kUncounted = 2 * kQuiet;   // longer than any look leaves a counter out
constexpr std::size_t kMaxStates = 1024;  // a node has at most 128 NICs of 8 ports

// What a counter did between two looks.
struct Difference {
  std::uint64_t count = 0;
  bool at_least = false;
};

Difference Between(std::uint64_t before, std::uint64_t now, Width width) {
  // Larger than it can be: the driver has the extended counters under the old names.
  if (std::max(before, now) > width.max()) width = Width{};
  if (now >= before) return {now - before, width.saturates && now == width.max() && now > before};
  const std::uint64_t quarter = width.max() / 4;
  const bool wrapped = !width.saturates && before > width.max() - quarter && now < quarter;
  // Else somebody cleared it, or loaded the driver anew: what it counts from now on is known, and no more.
  return wrapped ? Difference{width.max() - before + 1 + now, false} : Difference{};
}

std::string Duration(std::chrono::seconds time) {
  const auto count = time.count();
  if (count % 3600 == 0) return fmt::format("{} h", count / 3600);
  return count % 60 == 0 ? fmt::format("{} min", count / 60) : fmt::format("{} s", count);
}

std::string Evidence(const LinkRule& rule, int priority, std::uint64_t count, bool at_least,
                     base::WallTime since) {
  std::string text;
  if (rule.counter == Counter::kPauseReceivedTime || rule.counter == Counter::kPauseSentTime) {
    const auto percent = count / std::uint64_t(rule.window.count()) / 10'000;
    text = fmt::format(
        "{} pause for {} % of {}",
        rule.counter == Counter::kPauseReceivedTime ? "stopped by received" : "stops its leaf by sent",
        std::min<std::uint64_t>(percent, 100), Duration(rule.window));
  } else {
    text = fmt::format("{}{} {} in {}", at_least ? "at least " : "", count, rule.what, Duration(rule.window));
  }
  if (priority >= 0) text += fmt::format(" (priority {})", priority);
  if (rule.fault == LinkFault::kNone) return text;  // of congestion the time stands beside the sentence
  return fmt::format("{}, since {}", text, base::FormatTime(since));
}

// Which of two faults a port is called by.
int Weight(LinkFault fault) {
  switch (fault) {
    case LinkFault::kFlapping:
      return 4;
    case LinkFault::kPauseStorm:
      return 3;
    case LinkFault::kErrors:
      return 2;
    case LinkFault::kPathLoss:
      return 1;
    case LinkFault::kNotLossless:
    case LinkFault::kNone:
      return 0;
  }
  return 0;
}

Verdict VerdictOf(LinkState state, LinkFault fault) {
  if (state == LinkState::kUnknown) return Verdict::kUnknown;
  if (fault == LinkFault::kFlapping) return Verdict::kFlapping;
  if (state == LinkState::kDown) return Verdict::kDown;
  return fault == LinkFault::kNone ? Verdict::kHealthy : Verdict::kDegraded;
}

// Of a time that is longer than the window, the window's share.
std::uint64_t ShareOf(std::uint64_t count, std::chrono::nanoseconds gap, std::chrono::seconds window) {
  if (gap <= window) return count;
  constexpr std::uint64_t kMost = std::uint64_t(1) << 36;  // so that the product fits
  const auto gap_ms = std::uint64_t(std::chrono::duration_cast<std::chrono::milliseconds>(gap).count());
  const auto window_ms = std::uint64_t(std::chrono::duration_cast<std::chrono::milliseconds>(window).count());
  return std::min(count, kMost) * window_ms / gap_ms;
}

}  // namespace

std::string NameOf(const WatchedPort& port, std::string_view leaf) {
  return fmt::format("{} port {}{}", port.nic, port.number,
                     leaf.empty() ? std::string() : fmt::format(" ({})", leaf));
}

// One look at one port.
class LinkHealth::Step {
 public:
  // `own`: null = the agent did nothing to the link.
  Step(State& state, Own* own, const PortReading& reading, MonotonicTime now, base::WallTime wall)
      : state_(state),
        own_(own),
        reading_(reading),
        now_(now),
        wall_(std::chrono::floor<std::chrono::seconds>(wall)) {}

  PortHealth Run() {
    health_.port = reading_.port;
    if (!reading_.state_unread.empty()) unread_.push_back(reading_.state_unread);
    for (const CounterSample& sample : reading_.samples) TakeOfPort(sample);
    if (reading_.leaf) TakeLeaf(*reading_.leaf);
    for (const UnreadCounter& unread : reading_.unread) Miss(unread);
    for (const CounterSample& sample : reading_.samples) JudgePauseFrames(sample);
    JudgePublished(state_.published);
    JudgePublished(state_.congestion);
    Conclude();
    return std::move(health_);
  }

 private:
  std::int64_t BucketNow(std::chrono::seconds window) const {
    return now_.time_since_epoch() / (std::chrono::nanoseconds(window) / kBuckets);
  }

  std::uint64_t Add(std::vector<Bucket>& buckets, std::chrono::seconds window, std::uint64_t count) const {
    const std::int64_t number = BucketNow(window);
    std::erase_if(buckets, [number](const Bucket& bucket) { return bucket.number <= number - kBuckets; });
    if (count > 0) {
      if (buckets.empty() || buckets.back().number != number) buckets.push_back({number, 0});
      buckets.back().count +=
          std::min(count, std::numeric_limits<std::uint64_t>::max() - buckets.back().count);
    }
    std::uint64_t sum = 0;
    for (const Bucket& bucket : buckets)
      sum += std::min(bucket.count, std::numeric_limits<std::uint64_t>::max() - sum);
    return sum;
  }

  void TakeOfPort(const CounterSample& sample) {
    std::chrono::nanoseconds gap{};
    const Difference difference = Take(state_.host, sample, gap);
    health_.totals[sample.id] = state_.host.counters[sample.id].total;
    const bool stuck = IsStuck(sample) && difference.count == 0;
    if (stuck && IsJudged(sample.id.counter)) {
      blind_ = true;
      unread_.push_back(fmt::format("{} stands at {} and counts no further: clear it with perfquery -R",
                                    CounterName(sample.id.counter), sample.value));
    }
    if (sample.id.counter == Counter::kPacketsSent && !stuck)
      packets_ = Add(state_.packets, kPauseWindow, ShareOf(difference.count, gap, kPauseWindow));
    if (sample.id.counter == Counter::kPauseReceived) {
      frames_[sample.id.priority] = Add(state_.pause_frames[sample.id.priority], kPauseWindow,
                                        ShareOf(difference.count, gap, kPauseWindow));
    }
  }

  // What the other end of the cable counted, by the same rules. That it cannot be asked holds up its own troubles for a
  // while (EndUncounted), and nothing of the port's: most who may not ask a leaf never may.
  void TakeLeaf(const LeafEnd& leaf) {
    if (leaf.who != state_.leaf_who && !leaf.samples.empty()) {
      state_.leaf = End();
      state_.leaf_who = leaf.who;
    }
    if (!leaf.name.empty()) state_.leaf_name = leaf.name;
    if (!leaf.samples.empty() || !leaf.unread.empty() || !state_.leaf_unread)
      state_.leaf_unread = WhyLeafUnread(leaf);
    for (const CounterSample& sample : leaf.samples) {
      std::chrono::nanoseconds gap{};
      Take(state_.leaf, sample, gap);
    }
    if (leaf.unread.empty()) return;
    for (auto& [key, rule] : state_.leaf.rules) rule.quiet_since.reset();
  }

  // What the counter of one end did, after each rule that speaks of it has heard.
  Difference Take(End& end, const CounterSample& sample, std::chrono::nanoseconds& gap) {
    const auto [at, first] = end.counters.try_emplace(sample.id, Known{sample.value, 0, now_});
    Known& known = at->second;
    Difference difference;
    if (!first) {
      difference = Between(known.raw, sample.value, sample.width);
      gap = now_ - known.at;
      known.raw = sample.value;
      known.total += difference.count;
      if (&end == &state_.host) difference.count -= TakeOwn(sample.id.counter, difference.count, known.at);
      known.at = now_;
    }
    const bool stuck = IsStuck(sample) && difference.count == 0;
    for (std::size_t i = 0; i < LinkRules().size(); ++i) {
      if (LinkRules()[i].counter == sample.id.counter)
        Judge(end, {i, sample.id.priority}, difference, gap, stuck);
    }
    return difference;
  }

  // How much of what a link counter did since `before` the agent did.
  std::uint64_t TakeOwn(Counter counter, std::uint64_t count, MonotonicTime before) {
    const bool of_link = counter == Counter::kCarrierChanges || counter == Counter::kLinkDowned;
    if (own_ == nullptr || !of_link || count == 0) return 0;
    const OwnLinkChanges& changes = own_->changes;
    if (now_ < changes.from || before > changes.until) return 0;
    const std::uint64_t most = counter == Counter::kLinkDowned ? (changes.most + 1) / 2 : changes.most;
    std::uint64_t& taken = own_->taken[counter];
    const std::uint64_t here = std::min(count, most - std::min(most, taken));
    taken += here;
    return here;
  }

  // `stuck`: it could have counted more and did not, so nothing is known and no time is quiet.
  void Judge(End& end, const std::pair<std::size_t, int>& key, const Difference& difference,
             std::chrono::nanoseconds gap, bool stuck) {
    const LinkRule& rule = LinkRules()[key.first];
    RuleState& state = end.rules[key];
    const std::uint64_t sum = Add(state.buckets, rule.window, ShareOf(difference.count, gap, rule.window));
    state.at_least = difference.at_least || (state.at_least && sum > 0);
    Decide(rule, state, key.second, sum, stuck, &end == &state_.leaf);
  }

  void Decide(const LinkRule& rule, RuleState& state, int priority, std::uint64_t sum, bool stuck,
              bool at_leaf = false) {
    state.told = now_;
    if (sum > rule.calm) busy_[rule.fault] = true;
    if (!state.in_trouble && sum >= rule.threshold) {
      state.in_trouble = true;
      state.reported = 0;
      state.since = wall_;
    }
    if (!state.in_trouble) return;
    // Congestion comes and goes with the jobs of a whole fabric: it is told when it begins, and not each time that it
    // has doubled.
    const bool again = state.reported == 0 || rule.fault != LinkFault::kNone;
    if (again && sum >= rule.threshold && sum / 2 >= state.reported) {
      state.reported = sum;
      state.evidence = Evidence(rule, priority, sum, state.at_least, state.since);
      if (at_leaf) state.evidence = crds::SaidByLeaf(state_.leaf_name, state.evidence);
    }
    if (sum > rule.calm || stuck) {
      state.quiet_since.reset();
    } else if (!state.quiet_since) {
      state.quiet_since = now_;
    } else if (now_ - *state.quiet_since >= rule.quiet) {
      state.in_trouble = false;
      state.quiet_since.reset();
    }
  }

  // A counter that cannot be read now may be counting: its trouble stays, and its quiet time begins anew.
  void Miss(const UnreadCounter& unread) {
    bool judged = false;
    for (std::size_t i = 0; i < LinkRules().size(); ++i) {
      if (LinkRules()[i].counter != unread.id.counter || LinkRules()[i].fault == LinkFault::kNone) continue;
      judged = true;
      const auto state = state_.host.rules.find({i, unread.id.priority});
      if (state == state_.host.rules.end()) continue;
      state->second.quiet_since.reset();
      state->second.told = now_;
    }
    if (!judged) return;
    blind_ = true;
    unread_.push_back(unread.reason);
  }

  void JudgePauseFrames(const CounterSample& sample) {
    if (sample.id.counter != Counter::kPauseReceived || !packets_) return;
    const CounterId time{Counter::kPauseReceivedTime, sample.id.priority};
    if (state_.host.counters.contains(time)) return;
    const std::uint64_t frames = frames_[sample.id.priority];
    const std::uint64_t full =
        FullPausePerSecond(reading_.port.rate_gbps) * std::uint64_t(kPauseWindow.count());
    const LinkRule rule{LinkFault::kPauseStorm,
                        Counter::kPauseReceived,
                        "pause frames received and next to no packet sent",
                        kPauseWindow,
                        full,
                        full / 4,
                        kQuiet};
    RuleState& state = state_.host.rules[{LinkRules().size(), sample.id.priority}];
    // Whoever sends more packets than it gets pause frames is slow, and not stopped.
    Decide(rule, state, sample.id.priority, *packets_ < frames ? frames : 0, false);
  }

  void JudgePublished(Published& published) {
    const bool fault = published.fault != LinkFault::kNone;
    if (!fault && published.evidence.empty()) return;
    const bool unseen = fault && (blind_ || !reading_.state_unread.empty());
    if (!published.quiet_since || unseen || busy_[published.fault]) {
      published.quiet_since = now_;
    } else if (now_ - *published.quiet_since >= kQuiet) {
      published = Published{};
    }
  }

  // A counter that is gone, as PFC's are where somebody turns it off, would hold its fault for ever.
  void EndUncounted() {
    for (End* end : {&state_.host, &state_.leaf}) {
      for (auto& [key, state] : end->rules) {
        if (state.in_trouble && now_ - state.told > kUncounted) state = RuleState{};
      }
    }
  }

  struct Worst {
    LinkFault fault = LinkFault::kNone;
    std::string evidence;
  };
  Worst WorstOf(const End& end) {
    Worst worst;
    for (const auto& [key, state] : end.rules) {
      if (!state.in_trouble) continue;
      const bool frames = key.first == LinkRules().size();
      const LinkFault one = frames ? LinkFault::kPauseStorm : LinkRules()[key.first].fault;
      if (one == LinkFault::kNone) AddCongestion(state);
      if (Weight(one) > Weight(worst.fault)) worst = {one, state.evidence};
    }
    return worst;
  }

  void AddCongestion(const RuleState& state) {
    if (!health_.congestion) {
      health_.congestion = Congestion{state.since, state.evidence};
      return;
    }
    health_.congestion->since = std::min(health_.congestion->since, state.since);
    health_.congestion->evidence += "; " + state.evidence;
  }

  void Conclude() {
    EndUncounted();
    // One cable has one fault, the worse of what its ends count, and both are named.
    const Worst host = WorstOf(state_.host), leaf = WorstOf(state_.leaf);
    const bool by_leaf = Weight(leaf.fault) > Weight(host.fault);
    const LinkFault fault = by_leaf ? leaf.fault : host.fault;
    health_.fault = fault;
    health_.evidence = by_leaf ? leaf.evidence : host.evidence;
    const Worst& other = by_leaf ? host : leaf;
    if (other.fault != LinkFault::kNone) health_.evidence = crds::BothEnds(health_.evidence, other.evidence);
    health_.leaf_unread = state_.leaf_unread;
    for (const auto& [id, known] : state_.leaf.counters) health_.leaf_totals[id] = known.total;
    // What was published is older, so it is the time since when the port is in trouble.
    if (state_.published.fault != LinkFault::kNone && Weight(state_.published.fault) >= Weight(fault)) {
      health_.fault = state_.published.fault;
      health_.evidence = state_.published.evidence;
    }
    if (!state_.congestion.evidence.empty())
      health_.congestion = Congestion{state_.congestion.since, state_.congestion.evidence};
    const LinkState state = reading_.state_unread.empty() ? reading_.state : LinkState::kUnknown;
    health_.verdict = VerdictOf(state, health_.fault);
    if (health_.verdict == Verdict::kUnknown && reading_.state_unread.empty())
      unread_.insert(unread_.begin(),
                     "the port is neither up nor down: it waits for a subnet manager or trains");
    SayOwn();
    health_.state = state;
    health_.state_unread = !reading_.state_unread.empty();
    health_.unread = fmt::format("{}", fmt::join(unread_, "; "));
  }

  void SayOwn() {
    if (own_ == nullptr) return;
    std::uint64_t downs = 0, changes = 0;
    for (const auto& [counter, taken] : own_->taken)
      (counter == Counter::kLinkDowned ? downs : changes) = taken;
    if (downs + changes == 0) return;
    health_.own = fmt::format(
        "{} by setting its lossless settings are not counted",
        changes > 0 ? fmt::format("{} link changes", changes) : fmt::format("{} link downs", downs));
  }

  State& state_;
  Own* const own_;
  const PortReading& reading_;
  const MonotonicTime now_;
  const base::WallTime wall_;
  PortHealth health_;
  std::vector<std::string> unread_;
  bool blind_ = false;              // a counter that speaks of faults tells nothing now
  std::map<LinkFault, bool> busy_;  // a rule of that fault is not calm
  std::map<int, std::uint64_t> frames_;
  std::optional<std::uint64_t> packets_;
};

std::string_view VerdictName(Verdict verdict) {
  constexpr std::array<std::string_view, 5> kNames{"Healthy", "Degraded", "Flapping", "Down", "Unknown"};
  const auto index = std::size_t(verdict);
  return index < kNames.size() ? kNames[index] : kNames.back();
}

int UsableGbps(int rate_gbps, LinkFault fault) {
  return int(std::int64_t(std::max(rate_gbps, 0)) * UsablePercent(fault) / 100);
}

void LinkHealth::Restore(const topology::Node& published, std::span<const crds::CongestedPort> congestion) {
  for (const topology::Nic& nic : published.nics) {
    for (const topology::NicPort& port : nic.ports) {
      if (states_.size() >= kMaxStates) return;
      State& state = states_[PortKey(nic, port.number)];
      state.verdict = VerdictOf(port.state, port.fault);
      if (port.fault != LinkFault::kNone) state.published = {port.fault, port.reason, {}, std::nullopt};
      const auto congested = std::find_if(congestion.begin(), congestion.end(), [&](const auto& one) {
        return one.nic == nic.name && one.port == port.number;
      });
      if (congested != congestion.end())
        state.congestion = {LinkFault::kNone, congested->evidence, congested->since, std::nullopt};
    }
  }
}

void LinkHealth::Expect(const OwnLinkChanges& changes) {
  Own& own = own_[changes.port];
  if (own.changes.from != changes.from) own.taken.clear();
  own.changes = changes;
}

std::vector<HealthChange> LinkHealth::Look(const CounterReadings& readings, MonotonicTime now,
                                           base::WallTime wall) {
  std::vector<HealthChange> changes;
  ports_.clear();
  for (const PortReading& reading : readings.ports) {
    State& state = states_[reading.port.key];
    state.seen = now;
    const auto found = own_.find(crds::PortName(reading.port.nic, reading.port.number));
    Own* own = found == own_.end() ? nullptr : &found->second;
    PortHealth health = Step(state, own, reading, now, wall).Run();
    const Verdict before = std::exchange(state.verdict, health.verdict).value_or(health.verdict);
    if (before != health.verdict) {
      std::string why = health.verdict == Verdict::kUnknown ? health.unread : health.evidence;
      if (why.empty() && health.verdict == Verdict::kDown && own != nullptr && now <= own->changes.until)
        why = "its lossless settings are being set";
      std::string what = fmt::format("{}{}{}", VerdictName(health.verdict), why.empty() ? "" : ": ", why);
      std::string sentence = fmt::format("{}: {}", NameOf(health.port, health.port.leaf), what);
      changes.push_back({health.port, before, health.verdict, std::move(sentence), std::move(what)});
    }
    ports_.push_back(std::move(health));
  }
  for (auto& [key, state] : states_) {
    if (!state.seen) state.seen = now;
  }
  std::erase_if(own_, [now](const auto& entry) { return now - entry.second.changes.until > kForget; });
  std::erase_if(states_, [now](const auto& entry) { return now - *entry.second.seen > kForget; });
  return changes;
}

}  // namespace heddle::nodeagent
