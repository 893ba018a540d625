#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::topology {

// Of links with something against them: which cable, port, leaf or host explains best what was seen, the worst first.
// NCCL routes around no link that flaps, so one cable slows every gang that crosses it, and a person would bisect.

// What an end of a link saw of it. The first three are causes; the last two may come from anywhere on the way.
enum class Symptom : std::uint8_t {
  kFlap,        // it goes down and comes back
  kErrors,      // what arrived was broken: symbols, checksums, what forward error correction could not mend
  kPauseStorm,  // the lossless class was stopped by pause for long, or a watchdog had to drop it
  kLoss,        // packets had to be asked for again
  kDrops,       // packets of the lossless class were dropped in a queue
};
std::string_view SymptomName(Symptom symptom);  // "Flap", "Errors", "PauseStorm", "Loss", "Drops"
std::optional<Symptom> ParseSymptom(std::string_view name);

struct Sighting {
  Symptom symptom = Symptom::kFlap;
  // Who saw it: the far end is the switch's, or of a link between switches the upper one's. Of errors this is the end
  // that received them. Of a storm it is the end that was stopped, whoever says so (the other end counts the pause that
  // it sends), so that its source is at the other or beyond it.
  bool by_far_end = false;
  std::string evidence;  // "41 flaps in 10 min", without names; empty = no more is known
  friend bool operator==(const Sighting&, const Sighting&) = default;
};

// One cable that somebody watches, whether or not anything was seen of it: sound ones are what speaks for a leaf. An
// empty name is one that nobody knows, and nothing is laid to its charge. Links of equal names are one cable: what they
// say is put together, so that each end may say its part by itself.
struct WatchedLink {
  std::string node;       // the host; of a link between switches the lower one
  std::string port;       // "mlx5_3:1", or as that switch names it
  std::string leaf;       // the switch at the far end
  std::string leaf_port;  // as it names it
  bool between_switches = false;
  std::vector<Sighting> sightings;
  friend bool operator==(const WatchedLink&, const WatchedLink&) = default;
};

// Who runs where, to say whom a link slows.
struct GangOnLinks {
  std::string name;  // "team-a/llama"
  // That its traffic leaves its hosts by: positions among the links. What is out of range is left out; what stands
  // twice counts once.
  std::vector<std::size_t> links;
  friend bool operator==(const GangOnLinks&, const GangOnLinks&) = default;
};

// What can be repaired or drained.
enum class SuspectKind : std::uint8_t { kCable, kHost, kLeaf, kSpine };
std::string_view SuspectKindName(SuspectKind kind);  // "Cable", "Host", "Leaf", "Spine"
std::optional<SuspectKind> ParseSuspectKind(std::string_view name);

struct Suspect {
  SuspectKind kind = SuspectKind::kCable;
  std::string name;  // "leaf su1-r3 port Ethernet48 <-> gpu-017 mlx5_3:1", "leaf su1-r3", "host gpu-017"
  std::string node, port;            // of a cable its near end, of a host `node`; else empty
  std::string leaf, leaf_port;       // of a cable its far end, of a leaf or spine `leaf`; else empty
  Symptom symptom = Symptom::kFlap;  // the gravest that it explains
  int links =
      1;  // with something against them that it explains; of a storm also those that it stops from afar
  int gangs = 0;         // that cross one of these
  int score = 0;         // 1 to 1000: how much speaks for it; ranks, and means nothing else
  std::string evidence;  // "41 flaps in 10 min, seen from both ends"
  std::string next;      // what to do: "drain or reseat it"
  friend bool operator==(const Suspect&, const Suspect&) = default;
};
inline constexpr std::size_t kMaxSuspects = 16;

// The worst first, at most `most`; those of equal score by name. Nothing is named twice: links that a leaf or a host
// explains are not suspects of their own, and links that a storm stops are none at all.
//
// A leaf or a spine explains its links when three and half of those that are watched flap or have errors; a host when
// two on different leaves and half do, and two alone fail alike; who explains more with fewer sound links goes first
// (suspect_cover.h). Pause is followed to who stops others and is not stopped (suspect_storms.h). Loss and drops are
// effects: what a gang loses that crosses a suspect is explained; else the leaf, spine or host that those who lose
// share and the others of their gangs do not, or a host that says nothing while all who work with it lose
// (suspect_loss.h).
//
// Flaps rank before storms of as much weight, both before errors, these before loss; then count gangs, then links. A
// gang crosses a link above a leaf when one of its hosts hangs on that leaf and another does not; which gangs cross a
// link between a spine and what is above it nobody knows, and so none is counted there.
//
// Pure and total; equal for every order of its input. About O(sightings + gangs' links): 16,384 links and 2,000 gangs
// of 1,024 links each take about 10 ms (bench/suspects_bench.cc).
std::vector<Suspect> RankSuspects(std::span<const WatchedLink> links, std::span<const GangOnLinks> gangs,
                                  std::size_t most = kMaxSuspects);

// Whom it may cost, behind the evidence: ", 3 gangs cross it". That they are slower nobody has measured, and a flap a
// minute ago may have met none of them; only where packets were lost on the way they are told to be slowed. Empty where
// no gang crosses it.
std::string GangsText(int gangs, Symptom symptom);

// One line for people: "leaf su1-r3 port Ethernet48 <-> gpu-017 mlx5_3:1: 41 flaps in 10 min, 3 gangs cross it; drain
// or reseat it".
std::string SentenceOf(const Suspect& suspect);

}  // namespace heddle::topology
