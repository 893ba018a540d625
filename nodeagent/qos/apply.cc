#include "nodeagent/qos/apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace heddle::nodeagent {
namespace {

using base::MonotonicTime;

long Seconds(std::chrono::nanoseconds time) {
  return long(std::chrono::duration_cast<std::chrono::seconds>(time).count());
}

class Choosing {
 public:
  Choosing(const StepFacts& facts, MonotonicTime now) : facts_(facts), timings_(facts.timings), now_(now) {
    next_.progress = facts.progress;
  }

  NextApplyStep Run() {
    if (facts_.progress.not_before > now_) return WaitUntil(facts_.progress.not_before, {});
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
  bool Wanted() const { return facts_.judged != nullptr && facts_.wanted && !facts_.judged->to_set.empty(); }

  void Idle() {
    if (!Wanted() || facts_.gone) return;
    const auto& to_set = facts_.judged->to_set;
    if (std::none_of(to_set.begin(), to_set.end(), Interrupts))
      return Do(ApplyStep::kWrite, ApplyStage::kWriting);
    if (!facts_.before_it.empty()) {
      WaitUntil(now_ + timings_.poll,
                fmt::format("waits for its turn: {} is being set, and one port of a node is at a time",
                            facts_.before_it));
      return;
    }
    Do(ApplyStep::kWithdraw, ApplyStage::kDraining);
    next_.progress.at.reset();
    next_.reason = DrainReason();
  }

  std::string DrainReason() const {
    return fmt::format("was taken away from new pods and is set when nobody uses it{}{}",
                       facts_.leak.empty() ? "" : "; ", facts_.leak);
  }

  void Draining() {
    if (!Wanted() || facts_.gone) return Do(ApplyStep::kAbandon, ApplyStage::kIdle);
    const auto& link = facts_.asked.link;
    if (!next_.progress.at && link && *link) next_.progress.at = **link;
    const MonotonicTime drained = facts_.progress.since + timings_.drain;
    if (now_ < drained) {
      WaitUntil(drained, DrainReason());
      return;
    }
    const MonotonicTime again = now_ + timings_.poll;
    if (const auto& pairs = facts_.asked.queue_pairs; !pairs || !*pairs) {
      WaitUntil(
          again,
          fmt::format("cannot be set: whether programs use it is not known, and a change of a port in use "
                      "breaks them: {}",
                      pairs ? Plain(pairs->error().message) : "nobody was asked"));
    } else if (**pairs > 0) {
      // The errors of hours would hide those of a write.
      if (link && *link) next_.progress.at = **link;
      WaitUntil(again,
                "was taken away from new pods and waits for programs that have queue pairs on it: it is set "
                "when they have ended");
    } else if (!link || !*link) {
      WaitUntil(again, fmt::format("cannot be set: the state of its link cannot be read: {}",
                                   link ? Plain(link->error().message) : "nobody asked"));
    } else {
      Do(ApplyStep::kWrite, ApplyStage::kWriting);
    }
  }

  // Whether to go on is asked of the journal's write, not of what differs just now: half of it may be there.
  void Writing() {
    if (Vanished()) return;
    if (GaveUp()) return;
    Do(ApplyStep::kWrite, ApplyStage::kWriting);
  }

  bool Vanished() {
    if (!facts_.gone) return false;
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
    } else if (facts_.wanted) {
      return false;
    }
    Do(ApplyStep::kRollBack, ApplyStage::kRollingBack);
    return true;
  }

  void Settling() {
    if (Vanished()) return;
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
    if (!next_.progress.at) {
      next_.progress.at = seen;
      next_.progress.at_time = now_;
    }
    const MonotonicTime calm = next_.progress.at_time + timings_.settle;
    if (std::string worse = Worse(*next_.progress.at, seen, unsettled->noise); !worse.empty())
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

bool AsksQueuePairs(const ApplyProgress& progress, const QosTimings& timings, MonotonicTime now) {
  return progress.stage == ApplyStage::kDraining && now >= progress.not_before &&
         now >= progress.since + timings.drain;
}

bool AsksLink(const ApplyProgress& progress, const QosTimings&, MonotonicTime now) {
  return (progress.stage == ApplyStage::kDraining || progress.stage == ApplyStage::kSettling) &&
         now >= progress.not_before;
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

std::string Worse(const LinkEvidence& calm, const LinkEvidence& now,
                  const std::map<std::string, std::uint64_t>& noise) {
  for (const auto& [name, grew] : Growth(calm, now)) {
    const auto usual = noise.find(name);
    const std::uint64_t before = usual == noise.end() ? 0 : usual->second;
    if (grew > kTolerated + 2 * before)
      return fmt::format("{} grew by {} after the write, and by {} in the time before it", Plain(name), grew,
                         before);
  }
  return {};
}

}  // namespace heddle::nodeagent
