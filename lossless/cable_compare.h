#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lossless/lint.h"
#include "lossless/port_settings.h"
#include "topology/fact.h"

namespace heddle::lossless {

// Whether one cable loses no RDMA packets, from what both of its ends are set to. The rules are those of the linter,
// for each end and for both (lint_one.cc, lint_two.cc), and what only a link has: speed, FEC, frames.

// The worst first.
enum class LosslessVerdict : std::uint8_t {
  kContradiction,  // the ends do not go together, or one of them is lossy by itself
  kUnproved,       // something that it takes is not known, or no longer
  kLossless,
};
std::string_view LosslessVerdictName(LosslessVerdict verdict);  // "Contradiction", "Unproved", "Lossless"
std::optional<LosslessVerdict> ParseLosslessVerdict(std::string_view name);
inline LosslessVerdict Worst(LosslessVerdict a, LosslessVerdict b) {
  return a < b ? a : b;
}

// Forward error correction of a link (IEEE 802.3): both ends code alike, or neither understands a frame.
enum class Fec : std::uint8_t { kNone, kFireCode, kReedSolomon };
std::string_view FecName(Fec fec);                   // "none", "fc", "rs", as SONiC has them
std::optional<Fec> ParseFec(std::string_view name);  // also ethtool's "off", "baser", "rs"

// Settings that many ports share, each kept once, so that cables compare two numbers. Many of a fleet's ports are
// alike: a leaf's host ports, a model's NICs. Thread rule: one owner.
class SettingsPool {
 public:
  // The number of these settings; equal settings have one number.
  int Intern(const PortSettings& settings);
  const PortSettings& operator[](int number) const { return all_[std::size_t(number)]; }
  std::size_t size() const { return all_.size(); }

 private:
  std::vector<PortSettings> all_;
  std::multimap<std::uint64_t, int> by_hash_;
};

// Around an IP packet: addresses and type, checksum (IEEE 802.3). With DSCP no VLAN tag is needed.
inline constexpr int kFrameAround = 14 + 4;

// One end of a cable as it was last known.
struct CableEnd {
  topology::Fact<int> settings;   // number in a SettingsPool; kUnknown, kStale, …
  std::optional<int> speed_mbps;  // that the link trained to, or that the switch has
  std::optional<Fec> fec;         // nothing: not known, or left to negotiation
  std::optional<bool> link_up;
  // With kFrameAround, at most: of a switch that does not say whether its MTU is that of IP packets.
  std::optional<int> max_frame_bytes;
  bool has_no_watchdog = false;  // the NIC has none, so nobody asks for it
  // The switch's port: whatever it is set to, the link has one speed once it is up, for which its headroom may be
  // too small.
  bool negotiates = false;
  // Of a port whose settings nobody can read, though the switch answers: "cannot be read (...)". Else empty.
  std::string why_unknown;
  friend bool operator==(const CableEnd&, const CableEnd&) = default;
};

struct Cable {
  CableEnd host;
  CableEnd leaf;
  int rail = kNotSaid;
};

// One thing that does not go together, or that is not known.
struct CableFinding {
  LosslessVerdict weight = LosslessVerdict::kContradiction;  // kLossless: to know, and no harm to the cable
  std::string rule;     // of the linter, or "link-speed", "link-fec", "link-frame", "not-known"
  std::string setting;  // as our resources call it, or "speed", "fec", "frame"
  std::string host;     // its value there; "not known"
  std::string leaf;
  std::string sentence;
  std::string next;  // what to do, a sentence
  friend bool operator==(const CableFinding&, const CableFinding&) = default;
};

// What is true of every cable with the same two ends.
struct CableOutcome {
  LosslessVerdict verdict = LosslessVerdict::kUnproved;
  std::vector<CableFinding> findings;  // the worst first, of these what both ends disagree on
  friend bool operator==(const CableOutcome&, const CableOutcome&) = default;
};

struct CableComparison {
  std::vector<CableOutcome> outcomes;  // each pair of ends once
  std::vector<int> of_cable;           // for each cable, in their order: which of these
  const CableOutcome& Of(std::size_t cable) const { return outcomes[std::size_t(of_cable[cable])]; }
};

// Pure and total. What cables have in common is looked at once: see bench/lossless_bench.cc.
CableComparison CompareCables(const SettingsPool& pool, std::span<const Cable> cables);
CableOutcome CompareCable(const SettingsPool& pool, const Cable& cable);

// What to do, a sentence, where a switch's watchdog is on and nobody says which priorities it looks at.
inline constexpr const char* kSayWatched =
    "set pfcwd_sw_enable in PORT_QOS_MAP to what pfc_enable has: without it no queue is watched from SONiC "
    "202205 on";

// What a switch's port is set to by which it loses packets whoever stands at its other end. Of the findings `leaf` is
// the port's value and `host` is "-".
std::vector<CableFinding> FindLossySettings(const PortSettings& port);

// A rail is as good as the worst of its cables. Cables of no rail are left out.
std::map<int, LosslessVerdict> VerdictByRail(std::span<const Cable> cables,
                                             const CableComparison& comparison);

}  // namespace heddle::lossless
