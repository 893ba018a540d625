#include "topology/suspect_storms.h"

#include <algorithm>

#include "topology/suspect_gangs.h"

namespace heddle::topology {
namespace {

constexpr std::size_t kMostSeeds = 8;
constexpr End kEnds[] = {kNear, kFar};

// Who stops whom, by both ends of every link.
class Pauses {
 public:
  explicit Pauses(const SuspectLinks& all)
      : all_(all), by_link_(all.links.size()), stopped_(all.devices.size()) {
    for (std::size_t link = 0; link < all.links.size(); ++link) {
      const SeenOfLink* seen = all.SeenOf(int(link));
      if (seen == nullptr) continue;
      for (const End end : kEnds) {
        if (!seen->Has(Symptom::kPauseStorm, Other(end))) continue;
        by_link_[link] |= BitOf(end);
        any_ = true;
        const int device = all.DeviceOf(int(link), Other(end));
        if (device != kNobody) stopped_[std::size_t(device)] = true;
      }
    }
  }

  bool any() const { return any_; }
  bool Has(int link, End end) const { return (by_link_[std::size_t(link)] & BitOf(end)) != 0; }
  // Whether nothing that stops it would explain why the end stops the other.
  bool IsRoot(int link, End end) const {
    const int device = all_.DeviceOf(link, end);
    return device == kNobody || all_.IsHost(device) || !stopped_[std::size_t(device)];
  }

 private:
  const SuspectLinks& all_;
  std::vector<std::uint8_t> by_link_;
  std::vector<bool> stopped_;  // by device
  bool any_ = false;
};

// The end of a link at which a device is.
End EndOf(const SuspectLinks& all, int link, int device) {
  return all.DeviceOf(link, kNear) == device ? kNear : kFar;
}

// Goes from `level`, switches that are stopped, to all that they stop, by name, so that who comes first does not hang
// on the order of the input. `each(device, link, end)`: that device, at that end, stops the other.
template <class Stops, class Each>
void Walk(const SuspectLinks& all, std::vector<int> level, std::vector<bool>& reached, Stops stops,
          Each each) {
  while (!level.empty()) {
    std::sort(level.begin(), level.end(), [&](int a, int b) {
      return all.devices[std::size_t(a)].name < all.devices[std::size_t(b)].name;
    });
    std::vector<int> next_level;
    for (const int device : level) {
      for (const int link : all.devices[std::size_t(device)].links) {
        const End end = EndOf(all, link, device);
        if (!stops(link, end)) continue;
        each(device, link, end);
        const int next = all.DeviceOf(link, Other(end));
        if (next == kNobody || all.IsHost(next) || reached[std::size_t(next)]) continue;
        reached[std::size_t(next)] = true;
        next_level.push_back(next);
      }
    }
    level = std::move(next_level);
  }
}

bool HasUplinks(const SuspectLinks& all, int device) {
  const auto& links = all.devices[std::size_t(device)].links;
  return std::any_of(links.begin(), links.end(),
                     [&](int link) { return all.links[std::size_t(link)].said->between_switches; });
}

// A leaf of whose uplinks nobody says anything may be stopped by them.
void FindBeyond(const SuspectLinks& all, std::span<const GangOnLinks> gangs, Storms& storms) {
  constexpr std::uint8_t kSource = 1, kBlind = 2;
  std::vector<std::uint8_t> kinds(all.links.size());
  bool sources = false, blind = false;
  for (std::size_t link = 0; link < all.links.size(); ++link) {
    const int near = all.DeviceOf(int(link), kNear), far = all.DeviceOf(int(link), kFar);
    if (storms.sources[link] == 0 || !all.IsHost(near)) continue;
    if ((storms.sources[link] & BitOf(kNear)) != 0) {
      kinds[link] = kSource;
      sources = true;
    } else if (far != kNobody && !HasUplinks(all, far)) {
      kinds[link] = kBlind;
      blind = true;
    }
  }
  if (!sources || !blind) return;
  std::vector<int> source_of(all.links.size(), kNobody);
  const auto before = [&](int a, int b) {
    return NamedBefore(*all.links[std::size_t(a)].said, *all.links[std::size_t(b)].said);
  };
  const std::vector<std::uint8_t> marks = MarksByPosition(all, kinds);
  std::vector<int> stopped;
  for (const GangOnLinks& gang : gangs) {
    int source = kNobody;
    stopped.clear();
    ForEachMarked(all, gang, marks, [&](int link) {
      if (kinds[std::size_t(link)] == kBlind) {
        stopped.push_back(link);
      } else if (source == kNobody || before(link, source)) {
        source = link;
      }
    });
    if (source == kNobody) continue;
    for (const int link : stopped) {
      int& known = source_of[std::size_t(link)];
      if (known == kNobody || before(source, known)) known = source;
    }
  }
  for (std::size_t link = 0; link < source_of.size(); ++link) {
    if (source_of[link] == kNobody) continue;
    storms.sources[link] = 0;
    storms.victims[link] = BitOf(kFar);
    storms.beyond.emplace_back(int(link), source_of[link]);
  }
}

}  // namespace

Storms FindStorms(const SuspectLinks& all, std::span<const GangOnLinks> gangs) {
  const Pauses pauses(all);
  Storms storms;
  if (!pauses.any()) return storms;
  storms.sources.resize(all.links.size());
  storms.victims.resize(all.links.size());
  std::vector<bool> reached(all.devices.size());
  std::vector<int> queue;
  for (std::size_t link = 0; link < all.links.size(); ++link) {
    for (const End end : kEnds) {
      if (!pauses.Has(int(link), end) || !pauses.IsRoot(int(link), end)) continue;
      storms.sources[link] |= BitOf(end);
      const int stopped = all.DeviceOf(int(link), Other(end));
      if (stopped == kNobody || all.IsHost(stopped) || reached[std::size_t(stopped)]) continue;
      reached[std::size_t(stopped)] = true;
      queue.push_back(stopped);
    }
  }
  const auto stops = [&](int link, End end) { return pauses.Has(link, end); };
  Walk(all, std::move(queue), reached, stops, [](int, int, End) {});
  for (std::size_t link = 0; link < all.links.size(); ++link) {
    for (const End end : kEnds) {
      if (!pauses.Has(int(link), end) || pauses.IsRoot(int(link), end)) continue;
      const int device = all.DeviceOf(int(link), end);
      (reached[std::size_t(device)] ? storms.victims : storms.sources)[link] |= BitOf(end);
    }
  }
  FindBeyond(all, gangs, storms);
  return storms;
}

void SpreadStorms(const SuspectLinks& all, const Storms& storms,
                  const std::function<int(int link, End end)>& suspect_of,
                  const std::function<void(int suspect, int link)>& give) {
  if (!storms.any()) return;
  std::vector<std::vector<int>> seeds(all.devices.size());  // by switch: who stops it
  std::vector<int> queue;
  for (std::size_t link = 0; link < all.links.size(); ++link) {
    for (const End end : kEnds) {
      const int stopped = all.DeviceOf(int(link), Other(end));
      if ((storms.sources[link] & BitOf(end)) == 0 || stopped == kNobody || all.IsHost(stopped)) continue;
      const int suspect = suspect_of(int(link), end);
      auto& of = seeds[std::size_t(stopped)];
      if (suspect == kNobody || std::find(of.begin(), of.end(), suspect) != of.end()) continue;
      if (of.empty()) queue.push_back(stopped);
      of.push_back(suspect);
    }
  }
  std::vector<bool> reached(all.devices.size());
  for (const int device : queue) {
    reached[std::size_t(device)] = true;
    auto& of = seeds[std::size_t(device)];
    std::sort(of.begin(), of.end());
    if (of.size() > kMostSeeds) of.resize(kMostSeeds);
  }
  const auto stops = [&](int link, End end) { return (storms.victims[std::size_t(link)] & BitOf(end)) != 0; };
  Walk(all, std::move(queue), reached, stops, [&](int device, int link, End end) {
    const auto& of = seeds[std::size_t(device)];
    for (const int suspect : of) give(suspect, link);
    const int next = all.DeviceOf(link, Other(end));
    if (next != kNobody && !all.IsHost(next) && !reached[std::size_t(next)]) seeds[std::size_t(next)] = of;
  });
  for (const auto& [link, source] : storms.beyond) give(suspect_of(source, kNear), link);
}

}  // namespace heddle::topology
