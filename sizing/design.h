#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sizing/catalogue.h"
#include "sizing/request.h"
#include "sizing/tree.h"

namespace heddle::sizing {

// A fabric on paper. Counts are of the whole fabric, all planes together. Pure: equal requests give equal designs.

// One tier's switches as they stand in a full unit or pod.
struct SwitchTier {
  std::string_view name;  // "leaf", "spine", "core"
  std::int64_t switches = 0;
  int down = 0, up = 0, free = 0;  // ports of one; free counts those that were asked to stay free
  friend bool operator==(const SwitchTier&, const SwitchTier&) = default;
};

enum class Segment : std::uint8_t { kNodeLeaf, kLeafSpine, kSpineCore };
std::string_view SegmentName(Segment segment);  // "node to leaf", …

// Links of one segment that are made alike.
struct CableRun {
  Segment segment = Segment::kNodeLeaf;
  Medium medium = Medium::kDac;
  std::int64_t cables = 0;
  int shortest = 0, longest = 0;  // metres
  friend bool operator==(const CableRun&, const CableRun&) = default;
};

struct Floor {
  int nodes_per_rack = 0;
  std::int64_t node_racks = 0;
  std::int64_t network_racks = 0;
  int racks_per_row = 0;
  std::int64_t rows = 0;
  friend bool operator==(const Floor&, const Floor&) = default;
};

// The network to storage, beside the one between GPUs: as many alike as `blocks` says.
struct StorageFabric {
  const SwitchType* type = nullptr;
  int link_gbps = 0;
  double read_gbs = 0;  // that all nodes together should reach
  std::int64_t node_ports = 0, storage_ports = 0;
  std::int64_t blocks = 1;
  std::int64_t leaves = 0, spines = 0;  // of all blocks; no spines: two leaves joined to each other
  std::int64_t leaf_cables = 0;         // between switches
  friend bool operator==(const StorageFabric&, const StorageFabric&) = default;
};

struct Design {
  Request request;
  const MachineType* machine = nullptr;
  const SwitchType* type = nullptr;  // null: a radix alone was given
  std::int64_t nodes = 0;
  int rails = 0;
  int link_gbps = 0;  // of every link: a NIC's rate over its planes
  int radix = 0;      // ports of a switch at that rate
  Tree tree;          // of one plane
  std::vector<SwitchTier> tiers;
  std::vector<CableRun> cables;  // by segment, then medium
  Floor floor;
  StorageFabric storage;
  std::int64_t injection_gbps = 0;  // of all NICs, one direction
  std::int64_t bisection_gbps = 0;  // between any two halves of the GPUs, one direction; rail-only has none
  std::int64_t most_gpus = 0;       // that this wiring holds with these switches and tiers

  std::int64_t switches() const;
  std::int64_t cable_count(Segment segment) const;
  std::int64_t cable_count() const;
  std::int64_t optical_cables() const;
  std::int64_t transceivers() const;  // two for each cable that takes them
  friend bool operator==(const Design&, const Design&) = default;
};

// Why no fabric was sized: data that a person can act on, never an Error.
enum class RefusalReason : std::uint8_t {
  kBadRequest,     // the request contradicts itself, or a word of it is unknown
  kNotWhole,       // the GPUs are no whole number of nodes or racks
  kTooSmallRadix,  // no unit fits on these switches
  kTooLarge,       // more GPUs than so many tiers of these switches hold
  kOutOfReach,     // the hall is longer than any cable
};
std::string_view RefusalReasonName(RefusalReason reason);  // "BadRequest", …
struct Refusal {
  RefusalReason reason = RefusalReason::kBadRequest;
  std::string sentence;  // what is wrong, and what to write instead
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

std::variant<Design, Refusal> DesignFabric(const Request& request);

// Broken invariants, as sentences: ports at both ends of every segment, no switch over its radix, no bisection beyond
// what NICs send. Empty = sound.
std::vector<std::string> Check(const Design& design);

}  // namespace heddle::sizing
