#include "topology/suspect_cover.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <tuple>

namespace heddle::topology {
namespace {

constexpr int kLeastOfSwitch = 3;
constexpr int kLeastOfHost = 2;
constexpr int kLeastStopped = 2;
// What a link with a cause speaks for whom it hangs on, by gravity, and a sound one against. No figure is measured;
// what counts is their order: three with errors outweigh three sound ones.
constexpr int kForFlaps = 10;
constexpr int kForPause = 9;
constexpr int kForPauseOfStopped = 5;  // a host that stops its leaf and is stopped itself
constexpr int kForErrors = 6;
constexpr int kAgainst = 3;

std::uint8_t PauseBy(End end) {
  return end == kNear ? kNearStops : kFarStops;
}

// What of a link a device at one end can be the cause of: pause only when that end sent it.
std::uint8_t MaskOf(End end) {
  return std::uint8_t(kFlaps | kBroken | PauseBy(end));
}

class Greedy {
 public:
  Greedy(const SuspectLinks& all, const Storms& storms) : all_(all), left_(all.links.size()) {
    for (std::size_t link = 0; link < all.links.size(); ++link) {
      if (const SeenOfLink* seen = all.SeenOf(int(link)); seen != nullptr) {
        if (seen->Has(Symptom::kFlap)) left_[link] |= kFlaps;
        if (seen->Has(Symptom::kErrors)) left_[link] |= kBroken;
      }
      if (!storms.any()) continue;
      if ((storms.sources[link] & BitOf(kNear)) != 0) left_[link] |= kNearStops;
      if ((storms.sources[link] & BitOf(kFar)) != 0) left_[link] |= kFarStops;
    }
  }

  std::vector<Explanation> Run() && {
    for (std::size_t device = 0; device < all_.devices.size(); ++device) Enter(int(device));
    while (!candidates_.empty()) {
      const Candidate first = candidates_.top();
      candidates_.pop();
      const Gain gain = GainOf(first.device);
      if (gain.value == first.value) {
        Take(first.device, gain);
      } else {
        Enter(first.device);  // another one has explained some of its links: it can be worth less, never more
      }
    }
    for (std::size_t link = 0; link < left_.size(); ++link) {
      if (left_[link] != 0) explanations_.push_back({kNobody, {{int(link), left_[link]}}, 1});
    }
    return std::move(explanations_);
  }

 private:
  struct Gain {
    int value = 0;            // 0 = it explains nothing
    bool only_pause = false;  // and nothing else
  };
  struct Candidate {
    int value = 0;
    SuspectKind kind = SuspectKind::kCable;
    std::string_view name;
    int device = 0;
    // The top of a queue is its greatest.
    bool operator<(const Candidate& other) const {
      return std::tuple(value, RankOf(other.kind), other.name) < std::tuple(other.value, RankOf(kind), name);
    }
    static int RankOf(SuspectKind of) {
      return of == SuspectKind::kLeaf ? 0 : of == SuspectKind::kSpine ? 1 : 2;
    }
  };

  End EndAt(int link, int device) const { return all_.DeviceOf(link, kNear) == device ? kNear : kFar; }

  int Weight(int link, std::uint8_t causes) const {
    if ((causes & kFlaps) != 0) return kForFlaps;
    if ((causes & (kNearStops | kFarStops)) != 0) {
      const SeenOfLink* seen = all_.SeenOf(link);
      const bool stopped =
          (causes & kNearStops) != 0 && seen != nullptr && seen->Has(Symptom::kPauseStorm, kNear);
      return stopped ? kForPauseOfStopped : kForPause;
    }
    return causes != 0 ? kForErrors : 0;
  }

  Gain GainOf(int device) const {
    const SuspectDevice& of = all_.devices[std::size_t(device)];
    int caused = 0, sound = 0, others = 0, value = 0, stopped = 0, stopped_value = 0;
    std::vector<int> leaves;
    std::uint8_t gravities = 0;
    for (const int link : of.links) {
      const End end = EndAt(link, device);
      const std::uint8_t causes = left_[std::size_t(link)] & MaskOf(end);
      if (causes == 0) {
        // What was seen of it and is no cause, as loss, speaks neither for nor against.
        if (all_.SeenOf(link) == nullptr)
          ++sound;
        else if (!IsTaken(link))
          ++others;
        continue;
      }
      ++caused;
      gravities |= std::uint8_t(1U << GravityOf(causes));
      value += Weight(link, causes);
      if (of.is_host) leaves.push_back(all_.DeviceOf(link, kFar));
      if ((causes & PauseBy(end)) != 0) {
        ++stopped;
        stopped_value += Weight(link, PauseBy(end));
      }
    }
    const bool half = caused >= sound + others;
    std::sort(leaves.begin(), leaves.end());
    const auto different = std::unique(leaves.begin(), leaves.end()) - leaves.begin();
    // Two links that fail in two ways are two faults.
    const bool alike = caused > kLeastOfHost || std::has_single_bit(gravities);
    const bool enough = of.is_host ? different >= kLeastOfHost && alike : caused >= kLeastOfSwitch;
    if (half && enough) return {std::max(value - kAgainst * sound, 1), false};
    if (!of.is_host && stopped >= kLeastStopped) return {stopped_value, true};
    return {};
  }

  // Whether all that was against it is explained by another.
  bool IsTaken(int link) const { return !taken_.empty() && taken_[std::size_t(link)]; }

  void Enter(int device) {
    const Gain gain = GainOf(device);
    if (gain.value == 0) return;
    const SuspectDevice& of = all_.devices[std::size_t(device)];
    candidates_.push({gain.value, of.kind(), of.name, device});
  }

  void Take(int device, const Gain& gain) {
    const auto& links = all_.devices[std::size_t(device)].links;
    Explanation explanation{device, {}, int(links.size())};
    taken_.resize(left_.size());
    for (const int link : links) {
      const End end = EndAt(link, device);
      const std::uint8_t mask = gain.only_pause ? PauseBy(end) : MaskOf(end);
      const std::uint8_t causes = left_[std::size_t(link)] & mask;
      if (causes == 0) continue;
      explanation.links.push_back({link, causes});
      left_[std::size_t(link)] &= std::uint8_t(~causes);
      taken_[std::size_t(link)] = left_[std::size_t(link)] == 0;
    }
    explanations_.push_back(std::move(explanation));
  }

  const SuspectLinks& all_;
  std::vector<std::uint8_t> left_;  // by link: causes that nobody explains yet
  std::vector<bool> taken_;
  std::priority_queue<Candidate> candidates_;
  std::vector<Explanation> explanations_;
};

}  // namespace

int GravityOf(std::uint8_t causes) {
  return (causes & kFlaps) != 0 ? 3 : (causes & (kNearStops | kFarStops)) != 0 ? 2 : int(causes != 0);
}

Symptom GravestOf(std::uint8_t causes) {
  const int gravity = GravityOf(causes);
  return gravity == 3 ? Symptom::kFlap : gravity == 2 ? Symptom::kPauseStorm : Symptom::kErrors;
}

Symptom GravestOf(const Explanation& of) {
  std::uint8_t causes = 0;
  for (const ExplainedLink& one : of.links) causes |= one.causes;
  return GravestOf(causes);
}

std::vector<Explanation> ExplainCauses(const SuspectLinks& all, const Storms& storms) {
  return Greedy(all, storms).Run();
}

}  // namespace heddle::topology
