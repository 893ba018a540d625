#include "topology/suspects.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/names.h"
#include "topology/suspect_cover.h"
#include "topology/suspect_gangs.h"
#include "topology/suspect_links.h"
#include "topology/suspect_loss.h"
#include "topology/suspect_storms.h"
#include "topology/suspect_words.h"

namespace heddle::topology {
namespace {

constexpr std::array<std::string_view, 5> kSymptoms{"Flap", "Errors", "PauseStorm", "Loss", "Drops"};
constexpr std::array<std::string_view, 4> kKinds{"Cable", "Host", "Leaf", "Spine"};

// A score is a band by gravity, and what speaks for it within the band. A flap goes before a storm of as many gangs and
// links; neither is ever outdone by errors, nor these by loss.
constexpr std::array<int, kSymptomCount> kBands{700, 400, 680, 110, 100};  // by Symptom
constexpr int kForGangs = 130;
constexpr int kForLinks = 100;
constexpr int kForProof = 39;

// From 0 at `none` on, half of `most` at `half` more, never all of it.
int Rising(int most, int count, int none, int half) {
  const std::int64_t more = std::max(count - none, 0);
  return int(most * more / (more + half));
}

int ScoreOf(Symptom symptom, int gangs, int links, int proof_percent) {
  return kBands[std::size_t(symptom)] + Rising(kForGangs, gangs, 0, 6) + Rising(kForLinks, links, 1, 5) +
         kForProof * proof_percent / 100;
}

// How much of what can speak for a cause does: both ends of a cable, all links of a device.
int ProofOf(const SuspectLinks& all, const Explanation& of) {
  if (of.device != kNobody) return int(100 * of.links.size() / std::size_t(of.watched));
  const auto& [link, causes] = of.links.front();
  const SeenOfLink& seen = *all.SeenOf(link);
  const Symptom symptom = (causes & kFlaps) != 0 ? Symptom::kFlap : Symptom::kErrors;
  if ((causes & (kFlaps | kBroken)) != 0)
    return seen.Has(symptom, kNear) && seen.Has(symptom, kFar) ? 100 : 50;
  // Who stops others and is stopped itself may be a victim after all.
  return seen.Has(Symptom::kPauseStorm, kNear) && seen.Has(Symptom::kPauseStorm, kFar) ? 50 : 100;
}

Suspect Named(const SuspectLinks& all, const Explanation& of) {
  return of.device == kNobody ? NamedCable(all, of.links.front().link) : NamedDevice(all, of.device);
}

// The same for every order of the input.
void SortByName(const SuspectLinks& all, std::vector<Explanation>& explanations) {
  const auto name = [&](const Explanation& of) {
    return of.device == kNobody ? std::string_view() : all.devices[std::size_t(of.device)].name;
  };
  std::sort(explanations.begin(), explanations.end(), [&](const Explanation& a, const Explanation& b) {
    if (a.device != kNobody || b.device != kNobody) {
      const bool host_a = all.IsHost(a.device), host_b = all.IsHost(b.device);
      return std::tuple(name(a), host_a) < std::tuple(name(b), host_b);
    }
    return NamedBefore(*all.links[std::size_t(a.links.front().link)].said,
                       *all.links[std::size_t(b.links.front().link)].said);
  });
}

// What the causes do not explain of loss: links that no suspect has, and whose gangs cross none.
std::vector<bool> LossyLinks(const SuspectLinks& all) {
  std::vector<bool> lossy(all.links.size());
  for (std::size_t link = 0; link < lossy.size(); ++link) {
    const SeenOfLink* seen = all.SeenOf(int(link));
    lossy[link] = seen != nullptr && (seen->Has(Symptom::kLoss) || seen->Has(Symptom::kDrops));
  }
  return lossy;
}

class Ranking {
 public:
  Ranking(std::span<const WatchedLink> links, std::span<const GangOnLinks> gangs)
      : all_(ReadSuspectLinks(links)), gangs_(gangs), lossy_(LossyLinks(all_)) {}

  std::vector<Suspect> Run(std::size_t most) && {
    AddCauses();
    AddLoss();
    std::vector<std::pair<Suspect, const Draft*>> best;
    for (const Draft* draft : BestDrafts(most)) {
      Suspect suspect = draft->explanation >= 0 ? Named(all_, explanations_[std::size_t(draft->explanation)])
                                                : loss_[std::size_t(draft->loss)].suspect;
      suspect.symptom = draft->symptom;
      suspect.links = draft->links;
      suspect.gangs = draft->gangs;
      suspect.score = draft->score;
      best.emplace_back(std::move(suspect), draft);
    }
    const auto order = [](const auto& a, const auto& b) {
      const Suspect &x = a.first, &y = b.first;
      return std::tie(y.score, x.name, x.kind, x.node, x.port, x.leaf, x.leaf_port) <
             std::tie(x.score, y.name, y.kind, y.node, y.port, y.leaf, y.leaf_port);
    };
    const std::size_t count = std::min(most, best.size());
    std::partial_sort(best.begin(), best.begin() + std::ptrdiff_t(count), best.end(), order);
    std::vector<Suspect> suspects;
    for (std::size_t i = 0; i < count; ++i) {
      auto& [suspect, draft] = best[i];
      if (draft->explanation >= 0)
        DescribeCauses(all_, explanations_[std::size_t(draft->explanation)], draft->stopped, suspect);
      suspects.push_back(std::move(suspect));
    }
    return suspects;
  }

 private:
  // A suspect without its words: of thousands a few are told.
  struct Draft {
    int explanation = -1;  // position in explanations_; -1 = it is one of loss_
    int loss = -1;
    Symptom symptom = Symptom::kFlap;
    int links = 0, gangs = 0, stopped = 0, score = 0;
  };

  // All that score as much as the last that is wanted.
  std::vector<const Draft*> BestDrafts(std::size_t most) const {
    std::vector<int> scores;
    for (const Draft& draft : drafts_) scores.push_back(draft.score);
    int least = 0;
    if (most > 0 && most < scores.size()) {
      std::nth_element(scores.begin(), scores.begin() + std::ptrdiff_t(most - 1), scores.end(),
                       std::greater<>());
      least = scores[most - 1];
    }
    std::vector<const Draft*> best;
    for (const Draft& draft : drafts_) {
      if (most > 0 && draft.score >= least) best.push_back(&draft);
    }
    return best;
  }

  void AddCauses() {
    const Storms storms = FindStorms(all_, gangs_);
    explanations_ = ExplainCauses(all_, storms);
    if (storms.any()) SortByName(all_, explanations_);
    std::vector<std::vector<int>> links;
    for (const Explanation& of : explanations_) {
      links.emplace_back();
      for (const ExplainedLink& one : of.links) links.back().push_back(one.link);
    }
    const std::vector<int> stopped = AddStopped(storms, explanations_, links);
    std::vector<bool> explained(all_.links.size());
    const std::vector<int> gangs = CountGangs(all_, gangs_, links, lossy_, explained);
    for (std::size_t i = 0; i < explanations_.size(); ++i) {
      const Explanation& of = explanations_[i];
      Excuse(of, links[i], explained);
      Draft draft{int(i), -1, GravestOf(of), int(links[i].size()), gangs[i], stopped[i], 0};
      draft.score = ScoreOf(draft.symptom, draft.gangs, draft.links, ProofOf(all_, of));
      drafts_.push_back(draft);
    }
    for (std::size_t link = 0; link < lossy_.size(); ++link) {
      if (explained[link]) lossy_[link] = false;
    }
  }

  // Gives each suspect the links that its pause stops from afar; how many these are, by suspect.
  std::vector<int> AddStopped(const Storms& storms, const std::vector<Explanation>& explanations,
                              std::vector<std::vector<int>>& links) const {
    std::vector<int> stopped(explanations.size());
    if (!storms.any()) return stopped;
    std::vector<std::array<int, 2>> suspect_of(all_.links.size(), {kNobody, kNobody});
    for (std::size_t i = 0; i < explanations.size(); ++i) {
      for (const auto& [link, causes] : explanations[i].links) {
        if ((causes & kNearStops) != 0) suspect_of[std::size_t(link)][kNear] = int(i);
        if ((causes & kFarStops) != 0) suspect_of[std::size_t(link)][kFar] = int(i);
      }
    }
    const std::vector<std::vector<int>> own = links;
    SpreadStorms(
        all_, storms, [&](int link, End end) { return suspect_of[std::size_t(link)][end]; },
        [&](int suspect, int link) {
          const auto& mine = own[std::size_t(suspect)];
          if (std::find(mine.begin(), mine.end(), link) != mine.end()) return;
          links[std::size_t(suspect)].push_back(link);
        });
    for (std::size_t i = 0; i < links.size(); ++i) {
      std::sort(links[i].begin(), links[i].end());
      links[i].erase(std::unique(links[i].begin(), links[i].end()), links[i].end());
      stopped[i] = int(links[i].size() - own[i].size());
    }
    return stopped;
  }

  // What a suspect has its hands on lost nothing by itself.
  void Excuse(const Explanation& of, const std::vector<int>& links, std::vector<bool>& explained) const {
    for (const int link : links) explained[std::size_t(link)] = true;
    if (of.device == kNobody) return;
    for (const int link : all_.devices[std::size_t(of.device)].links) explained[std::size_t(link)] = true;
  }

  void AddLoss() {
    loss_ = ExplainLoss(all_, gangs_, lossy_);
    std::vector<std::vector<int>> links;
    for (const LossSuspect& one : loss_) links.push_back(one.links);
    std::vector<bool> explained(all_.links.size());
    const std::vector<int> gangs = CountGangs(all_, gangs_, links, lossy_, explained);
    for (std::size_t i = 0; i < loss_.size(); ++i) {
      Draft draft{-1, int(i), loss_[i].suspect.symptom, int(links[i].size()), gangs[i], 0, 0};
      const int proof = std::min(100, 100 * draft.links / std::max(loss_[i].watched, 1));
      draft.score = ScoreOf(draft.symptom, draft.gangs, draft.links, proof);
      drafts_.push_back(draft);
    }
  }

  const SuspectLinks all_;
  const std::span<const GangOnLinks> gangs_;
  std::vector<bool> lossy_;  // by link: it lost something that nothing explains yet
  std::vector<Explanation> explanations_;
  std::vector<LossSuspect> loss_;
  std::vector<Draft> drafts_;
};

}  // namespace

std::string_view SymptomName(Symptom symptom) {
  return kSymptoms[std::size_t(symptom)];
}
std::optional<Symptom> ParseSymptom(std::string_view name) {
  return base::ValueNamed<Symptom>(kSymptoms, name);
}

std::string_view SuspectKindName(SuspectKind kind) {
  return kKinds[std::size_t(kind)];
}
std::optional<SuspectKind> ParseSuspectKind(std::string_view name) {
  return base::ValueNamed<SuspectKind>(kKinds, name);
}

std::vector<Suspect> RankSuspects(std::span<const WatchedLink> links, std::span<const GangOnLinks> gangs,
                                  std::size_t most) {
  return Ranking(links, gangs).Run(most);
}

}  // namespace heddle::topology
