#include "nodeagent/qos/apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nodeagent/qos/link_evidence.h"

namespace heddle::nodeagent {
namespace {

using base::MonotonicTime;

long Seconds(std::chrono::nanoseconds time) {
  return long(std::chrono::duration_cast<std::chrono::seconds>(time).count());
}

bool IsWanted(const StepFacts& facts) {
  return facts.judged != nullptr && facts.wanted && !facts.judged->to_set.empty();
}

bool TakesAway(const StepFacts& facts) {
  const auto& to_set = facts.judged->to_set;
  return std::any_of(to_set.begin(), to_set.end(), Interrupts);
}

// How often the time before the write goes into `since`, rounded up.
std::uint64_t Times(const UnsettledWrite& write, std::chrono::nanoseconds since) {
  const std::chrono::seconds before(write.noise_seconds);
  if (before.count() <= 0 || since <= before) return 1;
  return std::uint64_t((since + before - std::chrono::nanoseconds(1)) / before);
}

class Choosing {
 public:
  Choosing(const StepFacts& facts, MonotonicTime now) : facts_(facts), timings_(facts.timings), now_(now) {
    next_.progress = facts.progress;
  }

  NextApplyStep Run() {
    // That it is gone is said at once.
    if (facts_.progress.not_before > now_ && !facts_.gone) return WaitUntil(facts_.progress.not_before, {});
    switch (facts_.progress.stage) {
      case ApplyStage::kIdle:
        Idle();
        break;
      case ApplyStage::kDraining:
        Draining();
        break;
      case ApplyStage::kWriting:
        Writing();
        break;
      case ApplyStage::kSettling:
        Settling();
        break;
      case ApplyStage::kRollingBack:
        RollingBack();
        break;
    }
    return std::move(next_);
  }

 private:
  NextApplyStep WaitUntil(MonotonicTime when, std::string reason) {
    next_.step = ApplyStep::kNothing;
    next_.when = when;
    next_.reason = std::move(reason);
    return next_;
  }
  void Do(ApplyStep step, ApplyStage stage) {
    next_.step = step;
    if (next_.progress.stage != stage) next_.progress.since = now_;
    next_.progress.stage = stage;
    next_.when = now_;
  }

  void Idle() {
    if (!IsWanted(facts_) || facts_.gone) return;
    if (!TakesAway(facts_)) return Do(ApplyStep::kWrite, ApplyStage::kWriting);
    if (!facts_.before_it.empty()) {
      WaitUntil(now_ + timings_.poll,
                fmt::format("waits for its turn: {} is being set, and one port of a node is at a time",
                            facts_.before_it));
      return;
    }
    const bool pauses = now_ < facts_.pause.until;
    const auto& pairs = facts_.asked.queue_pairs;
    if (pauses && (!pairs || !*pairs || **pairs > 0)) {
      WaitUntil(facts_.pause.until, PauseReason());
      return;
    }
    Do(ApplyStep::kWithdraw, ApplyStage::kDraining);
    next_.progress.at.reset();
    next_.progress.withdrawn = now_;
    next_.progress.idle_moment = pauses;
    next_.reason = DrainReason();
  }

  std::string PauseReason() const {
    if (!facts_.given_back.empty()) return facts_.given_back;
    return fmt::format(
        "waits with all ports in use until {}, as {} was waited for in vain: one that nobody uses is set at "
        "once",
        facts_.pause.until_text, facts_.pause.port);
  }

  std::string DrainReason() const {
    return fmt::format("was taken away from new pods and is set when nobody uses it{}{}",
                       facts_.leak.empty() ? "" : "; ", facts_.leak);
  }

  // A pod that has just begun makes its queue pairs when its image is loaded and its ranks have met.
  std::string GrantedReason() const {
    return fmt::format(
        "was taken away from new pods and waits for pods that were given it, though no program uses it yet: "
        "it is set when they have ended{}",
        timings_.patience > std::chrono::nanoseconds(0)
            ? fmt::format(", or have had it for {} and do not use it", DurationText(timings_.patience))
            : std::string());
  }

  void Draining() {
    if (!IsWanted(facts_) || facts_.gone) return Do(ApplyStep::kAbandon, ApplyStage::kIdle);
    const auto& link = facts_.asked.link;
    if (!next_.progress.at && link && *link) Begin(**link);
    const MonotonicTime drained = facts_.progress.since + timings_.drain;
    if (now_ < drained) {
      WaitUntil(drained, DrainReason());
      return;
    }
    if (const auto& pairs = facts_.asked.queue_pairs; !pairs || !*pairs) {
      if (link && *link) Begin(**link);
      const std::string why =
          fmt::format("whether programs use it is not known, and a change of a port in use breaks them: {}",
                      pairs ? Plain(pairs->error().message) : "nobody was asked");
      WaitOrGiveBack("cannot be set: " + why, why);
    } else if (**pairs > 0) {
      if (link && *link) Begin(**link);
      next_.in_use = true;
      WaitOrGiveBack(
          "was taken away from new pods and waits for programs that use it: it is set when they have ended",
          "programs use it");
    } else if (!link || !*link) {
      const std::string why = fmt::format("the state of its link cannot be read: {}",
                                          link ? Plain(link->error().message) : "nobody asked");
      WaitOrGiveBack("cannot be set: " + why, why);
    } else if (facts_.granted && facts_.progress.idle_moment) {
      GiveBack("pods were given it, which may use it at any time");
    } else if (facts_.granted && !Late()) {
      Begin(**link);
      WaitUntil(now_ + timings_.poll, GrantedReason());
    } else if (facts_.progress.busy > 0 && Late()) {
      GiveBack(std::string(kCannotKeep));
    } else {
      Do(ApplyStep::kWrite, ApplyStage::kWriting);
    }
  }

  // What is counted from now on: the errors of hours would hide those of a write.
  void Begin(const LinkEvidence& seen) {
    next_.progress.at = seen;
    next_.progress.at_time = now_;
  }

  // Of a port that pods do not get.
  bool Late() const {
    if (facts_.progress.idle_moment) return true;
    if (timings_.patience <= std::chrono::nanoseconds(0)) return false;
    return now_ >= facts_.progress.withdrawn + timings_.drain + timings_.patience;
  }
  void WaitOrGiveBack(std::string reason, std::string why) {
    if (Late()) return GiveBack(std::move(why));
    WaitUntil(now_ + timings_.poll, std::move(reason));
  }
  void GiveBack(std::string why) {
    Do(ApplyStep::kGiveBack, ApplyStage::kIdle);
    next_.why = std::move(why);
  }

  // Whether to go on is asked of the journal's write, not of what differs just now: half of it may be there.
  void Writing() {
    if (Vanished()) return;
    if (GaveUp()) return;
    Do(ApplyStep::kWrite, ApplyStage::kWriting);
  }

  // A driver that comes back has its own settings again.
  bool Vanished() {
    if (!facts_.gone) {
      next_.progress.seen = true;
      return false;
    }
    next_.undone = std::exchange(next_.progress.seen, false);
    WaitUntil(now_ + timings_.poll,
              "the interface vanished in the middle of being set: it is gone on with when it is back, and "
              "stays away "
              "from new pods until then");
    return true;
  }

  bool GaveUp() {
    const auto& unsettled = facts_.record->unsettled;
    if (!unsettled) {
      Do(ApplyStep::kAbandon, ApplyStage::kIdle);
      return true;
    }
    if (unsettled->starts > kMaxStarts) {
      next_.why = fmt::format("the agent was stopped {} times in the middle of setting it", kMaxStarts);
    } else if (unsettled->undone >= kMaxUndone) {
      next_.why = fmt::format(
          "what was written was gone again {} times before it had settled: the NIC is reset, by that or by "
          "somebody; see the kernel's log",
          kMaxUndone);
    } else if (facts_.wanted) {
      return false;
    }
    Do(ApplyStep::kRollBack, ApplyStage::kRollingBack);
    return true;
  }

  // What was watched may be there no more: it is compared anew, and written where it is not.
  void Resume() {
    next_.progress.stage = ApplyStage::kWriting;
    next_.progress.since = now_;
  }

  void Settling() {
    if (Vanished()) return Resume();
    const auto& unsettled = facts_.record->unsettled;
    if (!unsettled) return Do(ApplyStep::kAbandon, ApplyStage::kIdle);
    const auto& link = facts_.asked.link;
    const MonotonicTime again = now_ + timings_.settle_poll;
    const bool late = now_ - facts_.progress.since >= timings_.carrier;
    const std::string watched = "is set; its link is watched before pods get it again";
    if (!link || !*link) {
      if (late)
        return Regressed(fmt::format("the state of its link cannot be read any more: {}",
                                     link ? Plain(link->error().message) : "nobody asked"));
      WaitUntil(again, watched);
      return;
    }
    const LinkEvidence& seen = **link;
    if (seen.carrier_changes > unsettled->link.carrier_changes + 2 * kMaxBounces)
      return Regressed(fmt::format("the link went up and down {} times after the write",
                                   (seen.carrier_changes - unsettled->link.carrier_changes) / 2));
    if (unsettled->link.carrier && !seen.carrier) {
      next_.progress.at.reset();
      if (late)
        return Regressed(fmt::format("the link had no carrier {} s after the write, and had one before",
                                     Seconds(timings_.carrier)));
      WaitUntil(again, watched);
      return;
    }
    // A bounce that no look saw makes errors as one that was seen does.
    if (!next_.progress.at || next_.progress.at->carrier_changes != seen.carrier_changes) Begin(seen);
    // What the write did to the link may be heard of a moment later.
    const bool heard = now_ >= facts_.progress.since + timings_.settle_poll;
    if (!next_.progress.back && heard) next_.progress.back = seen.carrier_changes;
    if (next_.progress.back && unsettled->link.carrier && seen.carrier_changes > *next_.progress.back) {
      if (std::string worse = WorseBy(kCarrierCount, seen.carrier_changes - *next_.progress.back,
                                      unsettled->noise, Times(*unsettled, now_ - facts_.progress.since));
          !worse.empty())
        return Regressed(std::move(worse));
    }
    const MonotonicTime calm = next_.progress.at_time + timings_.settle;
    if (std::string worse = Worse(*next_.progress.at, seen, unsettled->noise,
                                  Times(*unsettled, now_ - next_.progress.at_time));
        !worse.empty())
      return Regressed(std::move(worse));
    if (now_ < calm) {
      WaitUntil(std::min(calm, again), watched);
      return;
    }
    Do(ApplyStep::kSettle, ApplyStage::kIdle);
  }

  void Regressed(std::string why) {
    next_.why = std::move(why);
    Do(ApplyStep::kRollBack, ApplyStage::kRollingBack);
  }

  void RollingBack() {
    if (Vanished()) return;
    if (!facts_.record->unsettled) return Do(ApplyStep::kAbandon, ApplyStage::kIdle);
    Do(ApplyStep::kRollBack, ApplyStage::kRollingBack);
  }

  const StepFacts& facts_;
  const QosTimings& timings_;
  const MonotonicTime now_;
  NextApplyStep next_;
};

}  // namespace

bool AsksQueuePairs(const StepFacts& facts, MonotonicTime now) {
  const ApplyProgress& progress = facts.progress;
  if (facts.gone || now < progress.not_before) return false;
  if (progress.stage == ApplyStage::kDraining) return now >= progress.since + facts.timings.drain;
  return progress.stage == ApplyStage::kIdle && now < facts.pause.until &&
         now >= facts.pause.not_idle_before && facts.before_it.empty() && IsWanted(facts) && TakesAway(facts);
}

bool AsksLink(const StepFacts& facts, MonotonicTime now) {
  const ApplyStage stage = facts.progress.stage;
  return !facts.gone && now >= facts.progress.not_before &&
         (stage == ApplyStage::kDraining || stage == ApplyStage::kSettling);
}

std::string DurationText(std::chrono::nanoseconds time) {
  const long seconds = Seconds(time);
  if (seconds > 0 && seconds % 3600 == 0) return fmt::format("{} h", seconds / 3600);
  return seconds > 0 && seconds % 60 == 0 ? fmt::format("{} min", seconds / 60)
                                          : fmt::format("{} s", seconds);
}

NextApplyStep NextStepOf(const StepFacts& facts, MonotonicTime now) {
  return Choosing(facts, now).Run();
}

std::map<std::string, std::uint64_t> Growth(const LinkEvidence& before, const LinkEvidence& now) {
  std::map<std::string, std::uint64_t> growth;
  for (const auto& [name, count] : now.errors) {
    const auto known = before.errors.find(name);
    // One that was not there before says nothing of what the write did.
    if (known == before.errors.end()) continue;
    const std::uint64_t grew = count >= known->second ? count - known->second : count;
    if (grew > 0) growth[name] = grew;
  }
  return growth;
}

std::string WorseBy(std::string_view counter, std::uint64_t grew,
                    const std::map<std::string, std::uint64_t>& noise, std::uint64_t times) {
  const auto usual = noise.find(std::string(counter));
  const std::uint64_t before = usual == noise.end() ? 0 : usual->second;
  if (grew <= ToleratedOf(counter) + 2 * before * times) return {};
  return fmt::format("{} grew by {} after the write, and by {} in the time before it", Plain(counter), grew,
                     before);
}

std::string Worse(const LinkEvidence& calm, const LinkEvidence& now,
                  const std::map<std::string, std::uint64_t>& noise, std::uint64_t times) {
  for (const auto& [name, grew] : Growth(calm, now)) {
    if (std::string worse = WorseBy(name, grew, noise, times); !worse.empty()) return worse;
  }
  return {};
}

}  // namespace heddle::nodeagent
