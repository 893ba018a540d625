#include "topology/suspect_loss.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "topology/suspect_gangs.h"
#include "topology/suspect_words.h"

namespace heddle::topology {
namespace {

constexpr int kLeastOfSwitch = 3;
constexpr int kLeastOfHost = 2;
constexpr int kLeastPeers = 3;  // of two that lose, it can be what is between them
constexpr int kMostRounds = int(kMaxSuspects);

struct Counts {
  int lossy = 0;
  int sound = 0;
};

class Loss {
 public:
  Loss(const SuspectLinks& all, std::span<const GangOnLinks> gangs, std::vector<bool> lossy)
      : all_(all),
        gangs_(gangs),
        lossy_(std::move(lossy)),
        works_(all.links.size(), gangs.empty()),
        scope_(all.links.size(), gangs.empty()),
        named_(all.devices.size()) {
    FindScope();
  }

  std::vector<LossSuspect> Run() && {
    FindAlone();
    FindSilent();
    for (int round = 0; round < kMostRounds && FindShared(); ++round) {
    }
    for (std::size_t link = 0; link < lossy_.size(); ++link) {
      const bool drops = lossy_[link] && all_.SeenOf(int(link))->Has(Symptom::kDrops);
      if (drops || (lossy_[link] && alone_[link])) Take(NamedCable(all_, int(link)), {int(link)}, 1);
    }
    return std::move(found_);
  }

 private:
  bool Between(int link) const { return all_.links[std::size_t(link)].said->between_switches; }
  bool IsSound(int link) const { return works_[std::size_t(link)] && all_.SeenOf(link) == nullptr; }

  // Links between switches work for all; of hosts' links those of gangs, and those in scope whose gangs lose something.
  void FindScope() {
    const std::vector<std::uint8_t> marks = MarksByPosition(all_, {lossy_.begin(), lossy_.end()});
    std::vector<bool> works(all_.of_position.size());
    for (std::size_t i = 0; i < gangs_.size(); ++i) {
      const GangOnLinks& gang = gangs_[i];
      int count = 0;
      ForEachMarked(all_, gang, marks, [&](int) { ++count; });
      if (count > 0) losing_.push_back({&gang, count});
      if (count > 0) ForEachLink(all_, gang, [&](int link) { scope_[std::size_t(link)] = true; });
      for (const std::size_t position : gang.links) {
        if (position < works.size()) works[position] = true;
      }
    }
    for (std::size_t i = 0; i < works.size(); ++i) {
      if (works[i] && all_.of_position[i] != kNobody) works_[std::size_t(all_.of_position[i])] = true;
    }
    for (std::size_t link = 0; link < lossy_.size(); ++link) {
      if (!Between(int(link)) && !lossy_[link]) continue;
      works_[link] = scope_[link] = true;
    }
  }

  // Links that lose while nothing else in any of their gangs does.
  void FindAlone() {
    alone_.assign(lossy_.size(), false);
    std::vector<bool> beside(lossy_.size());
    for (const auto& [gang, count] : losing_) {
      const bool single = count == 1 && gang->links.size() >= std::size_t(kLeastPeers);
      ForEachLink(all_, *gang, [&](int link) {
        if (lossy_[std::size_t(link)]) (single ? alone_ : beside)[std::size_t(link)] = true;
      });
    }
    for (std::size_t link = 0; link < lossy_.size(); ++link) {
      if (beside[link]) alone_[link] = false;
    }
  }

  struct Silence {
    int gangs = 0, said = 0;  // that the host is in beside others, and of these where it alone is silent
    int peers = 0;
    std::set<int> links;
  };

  std::vector<int> HostsOf(const GangOnLinks& gang) const {
    std::vector<int> hosts;
    ForEachLink(all_, gang, [&](int link) {
      const int host = all_.DeviceOf(link, kNear);
      if (all_.IsHost(host) && (hosts.empty() || hosts.back() != host)) hosts.push_back(host);
    });
    std::sort(hosts.begin(), hosts.end());
    hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
    return hosts;
  }

  // A peer that died makes all lose who work with it, and says nothing itself.
  void FindSilent() {
    std::vector<bool> seen(all_.devices.size());
    for (std::size_t link = 0; link < all_.links.size(); ++link) {
      const int host = all_.DeviceOf(int(link), kNear);
      if (host != kNobody && all_.SeenOf(int(link)) != nullptr) seen[std::size_t(host)] = true;
    }
    std::map<int, Silence> silences;
    for (const auto& [gang, count] : losing_) {
      if (count < kLeastPeers) continue;
      const std::vector<int> hosts = HostsOf(*gang);
      std::set<int> losing;
      std::vector<int> links;
      ForEachLink(all_, *gang, [&](int link) {
        if (!lossy_[std::size_t(link)]) return;
        links.push_back(link);
        if (const int host = all_.DeviceOf(link, kNear); all_.IsHost(host)) losing.insert(host);
      });
      if (int(losing.size()) < kLeastPeers || losing.size() + 1 != hosts.size()) continue;
      const int silent =
          *std::find_if(hosts.begin(), hosts.end(), [&](int host) { return !losing.contains(host); });
      if (seen[std::size_t(silent)]) continue;
      Silence& silence = silences[silent];
      ++silence.said;
      silence.peers = std::max(silence.peers, int(losing.size()));
      silence.links.insert(links.begin(), links.end());
    }
    if (silences.empty()) return;
    for (const GangOnLinks& gang : gangs_) {
      const std::vector<int> hosts = HostsOf(gang);
      for (auto& [host, silence] : silences) {
        if (hosts.size() > 1 && std::binary_search(hosts.begin(), hosts.end(), host)) ++silence.gangs;
      }
    }
    TakeSilent(silences);
  }

  void TakeSilent(const std::map<int, Silence>& silences) {
    std::vector<std::pair<int, const Silence*>> hosts;
    for (const auto& [host, silence] : silences) {
      if (silence.said > 0 && silence.said == silence.gangs) hosts.emplace_back(host, &silence);
    }
    std::sort(hosts.begin(), hosts.end(), [&](const auto& a, const auto& b) {
      return std::tuple(b.second->links.size(), NameOf(a.first)) <
             std::tuple(a.second->links.size(), NameOf(b.first));
    });
    for (const auto& [host, silence] : hosts) {
      std::vector<int> links;
      for (const int link : silence->links) {
        if (lossy_[std::size_t(link)]) links.push_back(link);
      }
      if (links.empty()) continue;
      LossSuspect found{NamedDevice(all_, host), std::move(links), 1};
      DescribeSilent(silence->peers, found.suspect);
      for (const int link : found.links) lossy_[std::size_t(link)] = false;
      found_.push_back(std::move(found));
    }
  }

  std::string_view NameOf(int device) const { return all_.devices[std::size_t(device)].name; }

  // What a device has to do with, of one class of links.
  struct Candidate {
    int device = kNobody;
    bool beneath = false;  // a spine with the hosts' links of the leaves that hang on it
    bool between = false;
    int value = 0;
    Counts in;
    std::vector<int> leaves;  // of `beneath`: those that lose
  };

  // Whether those who lose share it and the others of their gangs do not.
  bool Tells(const Counts& in, const Counts& in_scope, bool between) const {
    const Counts& total = total_[between ? 1 : 0];
    const std::int64_t lossy = total.lossy - in.lossy, sound = total.sound - in_scope.sound;
    return in.lossy >= in.sound && sound > 0 &&
           in.lossy * (lossy + sound) >= 2 * lossy * (in.lossy + in.sound);
  }

  Counts CountOf(int device, bool between, bool only_scope, std::set<int>& others) const {
    Counts counts;
    for (const int link : all_.devices[std::size_t(device)].links) {
      if (Between(link) != between || (only_scope && !scope_[std::size_t(link)])) continue;
      if (lossy_[std::size_t(link)]) {
        ++counts.lossy;
        others.insert(all_.DeviceOf(link, all_.DeviceOf(link, kNear) == device ? kFar : kNear));
      } else if (IsSound(link)) {
        ++counts.sound;
      }
    }
    return counts;
  }

  void Consider(int device, bool between, std::vector<Candidate>& candidates) const {
    std::set<int> others;
    const Counts in = CountOf(device, between, false, others), scope = CountOf(device, between, true, others);
    const int least = all_.IsHost(device) ? kLeastOfHost : kLeastOfSwitch;
    if (in.lossy < least || others.size() < 2 || !Tells(in, scope, between)) return;
    candidates.push_back({device, false, between, 4 * in.lossy - 2 * in.sound, in, {}});
  }

  // Several spines over the same leaves cannot be told apart, and a spine over all leaves is shared by all.
  void ConsiderSpines(std::vector<Candidate>& candidates) const {
    std::map<std::vector<int>, std::vector<Candidate>> by_leaves;
    for (std::size_t device = 0; device < all_.devices.size(); ++device) {
      if (!all_.devices[device].is_upper || named_[device]) continue;
      std::set<int> leaves, others;
      for (const int link : all_.devices[device].links) {
        const int lower = all_.DeviceOf(link, kNear);
        if (Between(link) && lower != kNobody && lower != int(device)) leaves.insert(lower);
      }
      Candidate candidate{int(device), true, false, 0, {}, {}};
      Counts scope;
      for (const int leaf : leaves) {
        const Counts in = CountOf(leaf, false, false, others), in_scope = CountOf(leaf, false, true, others);
        candidate.in.lossy += in.lossy;
        candidate.in.sound += in.sound;
        scope.sound += in_scope.sound;
        if (in.lossy > 0) candidate.leaves.push_back(leaf);
      }
      if (candidate.leaves.size() < 2) continue;
      candidate.value = 4 * candidate.in.lossy - 2 * candidate.in.sound - 1;
      const bool tells =
          candidate.in.lossy >= kLeastOfSwitch && others.size() >= 2 && Tells(candidate.in, scope, false);
      if (!tells) candidate.value = 0;
      by_leaves[candidate.leaves].push_back(std::move(candidate));
    }
    for (auto& [leaves, same] : by_leaves) {
      if (same.size() == 1 && same.front().value > 0) candidates.push_back(std::move(same.front()));
    }
  }

  bool FindShared() {
    total_[0] = total_[1] = {};
    for (std::size_t link = 0; link < lossy_.size(); ++link) {
      if (!scope_[link]) continue;
      Counts& total = total_[Between(int(link)) ? 1 : 0];
      if (lossy_[link])
        ++total.lossy;
      else if (IsSound(int(link)))
        ++total.sound;
    }
    if (total_[0].lossy + total_[1].lossy < kLeastOfHost) return false;
    std::vector<Candidate> candidates;
    for (std::size_t device = 0; device < all_.devices.size(); ++device) {
      if (named_[device]) continue;
      Consider(int(device), false, candidates);
      if (!all_.IsHost(int(device))) Consider(int(device), true, candidates);
    }
    ConsiderSpines(candidates);
    if (candidates.empty()) return false;
    const auto rank = [&](const Candidate& one) {
      return std::tuple(-one.value, all_.IsHost(one.device), NameOf(one.device), one.between);
    };
    const Candidate& best =
        *std::min_element(candidates.begin(), candidates.end(),
                          [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    std::vector<int> links;
    const auto collect = [&](int device, bool between) {
      for (const int link : all_.devices[std::size_t(device)].links) {
        if (lossy_[std::size_t(link)] && Between(link) == between) links.push_back(link);
      }
    };
    if (best.beneath) {
      for (const int leaf : best.leaves) collect(leaf, false);
    } else {
      collect(best.device, best.between);
    }
    named_[std::size_t(best.device)] = true;
    Take(NamedDevice(all_, best.device), std::move(links), best.in.lossy + best.in.sound);
    return true;
  }

  void Take(Suspect suspect, std::vector<int> links, int watched) {
    DescribeLoss(all_, links, watched, suspect);
    for (const int link : links) lossy_[std::size_t(link)] = false;
    found_.push_back({std::move(suspect), std::move(links), watched});
  }

  const SuspectLinks& all_;
  const std::span<const GangOnLinks> gangs_;
  std::vector<bool> lossy_;
  std::vector<bool> works_;  // by link: somebody sends over it
  std::vector<bool> scope_;  // by link: of a gang that loses something
  std::vector<std::pair<const GangOnLinks*, int>>
      losing_;  // gangs that lose something, and on how many links
  std::vector<bool> alone_;
  std::vector<bool> named_;  // by device: it is a suspect already
  Counts total_[2];          // in scope: of hosts' links, of links between switches
  std::vector<LossSuspect> found_;
};

}  // namespace

std::vector<LossSuspect> ExplainLoss(const SuspectLinks& all, std::span<const GangOnLinks> gangs,
                                     std::vector<bool> lossy) {
  if (std::find(lossy.begin(), lossy.end(), true) == lossy.end()) return {};
  return Loss(all, gangs, std::move(lossy)).Run();
}

}  // namespace heddle::topology
