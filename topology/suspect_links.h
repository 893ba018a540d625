#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/suspects.h"

namespace heddle::topology {

// Inside of RankSuspects: links and what was seen of them, by number.

enum End : std::uint8_t { kNear = 0, kFar = 1 };
constexpr End Other(End end) {
  return end == kNear ? kFar : kNear;
}
inline constexpr int kNobody = -1;
inline constexpr std::size_t kSymptomCount = 5;

// What both ends of a link said: of each symptom the text of its evidence, null where that end saw none. Of several
// texts the first in order of the alphabet, so that no order of the input matters.
struct SeenOfLink {
  std::array<std::array<const std::string*, 2>, kSymptomCount> text{};

  bool Has(Symptom symptom, End end) const { return text[std::size_t(symptom)][end] != nullptr; }
  bool Has(Symptom symptom) const { return Has(symptom, kNear) || Has(symptom, kFar); }
};

// A host or a switch. Those that have no name are none: nothing is laid to their charge.
struct SuspectDevice {
  std::string_view name;
  bool is_host = false;
  bool has_hosts = false;  // of a switch: a host hangs on it
  bool is_upper = false;   // of a switch: another one hangs on it
  std::vector<int> links;

  SuspectKind kind() const {
    if (is_host) return SuspectKind::kHost;
    return is_upper && !has_hosts ? SuspectKind::kSpine : SuspectKind::kLeaf;
  }
};

struct SuspectLink {
  const WatchedLink* said = nullptr;
  std::array<int, 2> device{kNobody, kNobody};  // by End; positions in SuspectLinks::devices
  int seen = kNobody;                           // position in SuspectLinks::seen; kNobody = it is sound
};

struct SuspectLinks {
  std::vector<SuspectLink> links;  // each cable once, however often it was said
  std::vector<SuspectDevice> devices;
  std::vector<SeenOfLink> seen;
  std::vector<int> of_position;  // the link of each that was given; kNobody = neither end has a name

  const SeenOfLink* SeenOf(int link) const {
    const int at = links[std::size_t(link)].seen;
    return at == kNobody ? nullptr : &seen[std::size_t(at)];
  }
  int DeviceOf(int link, End end) const { return links[std::size_t(link)].device[end]; }
  bool IsHost(int device) const { return device != kNobody && devices[std::size_t(device)].is_host; }
};

// Borrows `links`.
SuspectLinks ReadSuspectLinks(std::span<const WatchedLink> links);

// The port of an end; empty also where nobody knows of what.
std::string_view PortAt(const WatchedLink& link, End end);
// By the names of its ends, for those of equal weight.
bool NamedBefore(const WatchedLink& a, const WatchedLink& b);

}  // namespace heddle::topology
