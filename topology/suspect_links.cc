#include "topology/suspect_links.h"

#include <functional>
#include <tuple>
#include <unordered_map>

namespace heddle::topology {
namespace {

// The four names of a cable.
struct Ends {
  bool between = false;
  int near = kNobody, far = kNobody;
  std::string_view port, leaf_port;
  friend bool operator==(const Ends&, const Ends&) = default;
};

struct EndsHash {
  std::size_t operator()(const Ends& ends) const {
    const std::hash<std::string_view> hash;
    std::size_t sum = std::size_t(ends.near) * 0x9e3779b97f4a7c15U + std::size_t(ends.far);
    for (const std::string_view name : {ends.port, ends.leaf_port}) sum = sum * 0x100000001b3U + hash(name);
    return sum;
  }
};

// Hosts and switches by name: a host may be called as a switch is.
class DeviceNames {
 public:
  explicit DeviceNames(std::vector<SuspectDevice>& devices) : devices_(devices) {}

  int Intern(std::string_view name, bool is_host) {
    if (name.empty()) return kNobody;
    const auto [at, fresh] = (is_host ? hosts_ : switches_).try_emplace(name, int(devices_.size()));
    if (fresh) {
      devices_.emplace_back();
      devices_.back().name = name;
      devices_.back().is_host = is_host;
    }
    return at->second;
  }

 private:
  std::vector<SuspectDevice>& devices_;
  std::unordered_map<std::string_view, int> hosts_, switches_;  // only looked up
};

void Note(const WatchedLink& said, int link, SuspectLinks& all) {
  if (said.sightings.empty()) return;
  int& at = all.links[std::size_t(link)].seen;
  if (at == kNobody) {
    at = int(all.seen.size());
    all.seen.emplace_back();
  }
  for (const Sighting& sighting : said.sightings) {
    const auto symptom = std::size_t(sighting.symptom);
    if (symptom >= kSymptomCount) continue;
    const std::string*& text = all.seen[std::size_t(at)].text[symptom][sighting.by_far_end ? kFar : kNear];
    if (text == nullptr || sighting.evidence < *text) text = &sighting.evidence;
  }
}

void HangOnDevices(SuspectLinks& all) {
  for (std::size_t link = 0; link < all.links.size(); ++link) {
    const auto& [near, far] = all.links[link].device;
    const bool between = all.links[link].said->between_switches;
    if (near != kNobody) all.devices[std::size_t(near)].links.push_back(int(link));
    if (far == kNobody) continue;
    SuspectDevice& upper = all.devices[std::size_t(far)];
    if (far != near) upper.links.push_back(int(link));
    (between ? upper.is_upper : upper.has_hosts) = true;
  }
}

}  // namespace

std::string_view PortAt(const WatchedLink& link, End end) {
  if (end == kNear) return link.node.empty() ? std::string_view() : link.port;
  return link.leaf.empty() ? std::string_view() : link.leaf_port;
}

bool NamedBefore(const WatchedLink& a, const WatchedLink& b) {
  const auto names = [](const WatchedLink& link) {
    return std::tuple<std::string_view, std::string_view, std::string_view, std::string_view, bool>(
        link.leaf, PortAt(link, kFar), link.node, PortAt(link, kNear), link.between_switches);
  };
  return names(a) < names(b);
}

SuspectLinks ReadSuspectLinks(std::span<const WatchedLink> links) {
  SuspectLinks all;
  DeviceNames names(all.devices);
  std::unordered_map<Ends, int, EndsHash> known;  // only looked up
  known.reserve(links.size());
  all.links.reserve(links.size());
  all.of_position.reserve(links.size());
  for (const WatchedLink& said : links) {
    const Ends ends{said.between_switches, names.Intern(said.node, !said.between_switches),
                    names.Intern(said.leaf, false), PortAt(said, kNear), PortAt(said, kFar)};
    if (ends.near == kNobody && ends.far == kNobody) {
      all.of_position.push_back(kNobody);
      continue;
    }
    const auto [at, fresh] = known.try_emplace(ends, int(all.links.size()));
    if (fresh) all.links.push_back({&said, {ends.near, ends.far}, kNobody});
    Note(said, at->second, all);
    all.of_position.push_back(at->second);
  }
  HangOnDevices(all);
  return all;
}

}  // namespace heddle::topology
