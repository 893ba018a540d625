#include "topology/suspect_gangs.h"

#include <algorithm>
#include <array>
#include <utility>

namespace heddle::topology {
namespace {

class GangCount {
 public:
  GangCount(const SuspectLinks& all, const std::vector<std::vector<int>>& links_of,
            const std::vector<bool>& lossy)
      : all_(all),
        marks_(all.links.size()),
        first_(all.links.size() + 1),
        counts_(links_of.size()),
        last_gang_(links_of.size(), kNobody) {
    std::vector<std::vector<int>> above(all.devices.size());
    for (const auto& links : links_of) {
      for (const int link : links) ++first_[std::size_t(link) + 1];
    }
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    suspects_.resize(std::size_t(first_.back()));
    std::vector<int> next(first_.begin(), first_.end() - 1);
    for (std::size_t suspect = 0; suspect < links_of.size(); ++suspect) {
      for (const int link : links_of[suspect]) {
        suspects_[std::size_t(next[std::size_t(link)]++)] = int(suspect);
        marks_[std::size_t(link)] |= kSuspected;
        const int lower = all.DeviceOf(link, kNear);
        if (!all.links[std::size_t(link)].said->between_switches || lower == kNobody) continue;
        auto& of = above[std::size_t(lower)];
        if (of.empty() || of.back() != int(suspect)) of.push_back(int(suspect));
        any_above_ = true;
      }
    }
    for (std::size_t link = 0; link < lossy.size(); ++link) {
      if (lossy[link]) marks_[link] |= kLossy;
    }
    marks_at_ = MarksByPosition(all, marks_);
    if (!any_above_) return;
    above_ = std::move(above);
    FindPairs();
    device_seen_.assign(all.devices.size(), kNobody);
    hosts_on_.assign(all.devices.size(), 0);
  }

  void Take(const GangOnLinks& gang, int number, std::vector<bool>& explained) {
    lossy_.clear();
    bool crosses = false;
    ForEachMarked(all_, gang, marks_at_, [&](int link) {
      const std::uint8_t mark = marks_[std::size_t(link)];
      if ((mark & kLossy) != 0) lossy_.push_back(link);
      if ((mark & kSuspected) == 0) return;
      crosses = true;
      for (int i = first_[std::size_t(link)]; i < first_[std::size_t(link) + 1]; ++i)
        Count(suspects_[std::size_t(i)], number);
    });
    if (any_above_) crosses = CountAbove(gang, number) || crosses;
    if (!crosses) return;
    for (const int link : lossy_) explained[std::size_t(link)] = true;
  }

  std::vector<int> counts() && { return std::move(counts_); }

 private:
  static constexpr std::uint8_t kSuspected = 1, kLossy = 2;

  void Count(int suspect, int number) {
    if (last_gang_[std::size_t(suspect)] == number) return;
    last_gang_[std::size_t(suspect)] = number;
    ++counts_[std::size_t(suspect)];
  }

  // Numbers the links so that those of one host to one leaf have one.
  void FindPairs() {
    std::vector<std::pair<std::array<int, 2>, int>> ends;
    for (std::size_t link = 0; link < all_.links.size(); ++link)
      ends.emplace_back(all_.links[link].device, int(link));
    std::sort(ends.begin(), ends.end());
    pair_of_.resize(all_.links.size());
    int pair = kNobody;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (i == 0 || ends[i].first != ends[i - 1].first) ++pair;
      pair_of_[std::size_t(ends[i].second)] = pair;
    }
    pair_seen_.assign(std::size_t(pair) + 1, kNobody);
  }

  bool CountAbove(const GangOnLinks& gang, int number) {
    int hosts = 0;
    leaves_.clear();
    ForEachLink(all_, gang, [&](int link) {
      const SuspectLink& of = all_.links[std::size_t(link)];
      const auto& [host, leaf] = of.device;
      if (!all_.IsHost(host)) return;
      if (std::exchange(device_seen_[std::size_t(host)], number) != number) ++hosts;
      if (leaf == kNobody ||
          std::exchange(pair_seen_[std::size_t(pair_of_[std::size_t(link)])], number) == number)
        return;
      if (std::exchange(device_seen_[std::size_t(leaf)], number) != number) {
        hosts_on_[std::size_t(leaf)] = 0;
        leaves_.push_back(leaf);
      }
      ++hosts_on_[std::size_t(leaf)];
    });
    bool crosses = false;
    for (const int leaf : leaves_) {
      if (hosts_on_[std::size_t(leaf)] >= hosts) continue;
      for (const int suspect : above_[std::size_t(leaf)]) {
        Count(suspect, number);
        crosses = true;
      }
    }
    return crosses;
  }

  const SuspectLinks& all_;
  std::vector<std::uint8_t> marks_, marks_at_;  // by link, by position
  std::vector<int> first_, suspects_;           // by link
  std::vector<int> counts_, last_gang_;         // by suspect
  std::vector<std::vector<int>> above_;         // by leaf: suspects of its uplinks
  bool any_above_ = false;
  std::vector<int> pair_of_;  // by link
  std::vector<int> pair_seen_, device_seen_, hosts_on_, leaves_, lossy_;
};

}  // namespace

std::vector<std::uint8_t> MarksByPosition(const SuspectLinks& all, const std::vector<std::uint8_t>& by_link) {
  std::vector<std::uint8_t> marks(all.of_position.size());
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (const int link = all.of_position[i]; link != kNobody) marks[i] = by_link[std::size_t(link)];
  }
  return marks;
}

std::vector<int> CountGangs(const SuspectLinks& all, std::span<const GangOnLinks> gangs,
                            const std::vector<std::vector<int>>& links_of, const std::vector<bool>& lossy,
                            std::vector<bool>& explained) {
  if (links_of.empty()) return {};
  GangCount count(all, links_of, lossy);
  for (std::size_t i = 0; i < gangs.size(); ++i) count.Take(gangs[i], int(i), explained);
  return std::move(count).counts();
}

}  // namespace heddle::topology
