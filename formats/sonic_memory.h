#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/sonic_tables.h"

// Of the writer of SONiC's patches, and included by nobody else.
namespace heddle::formats::sonic {

// Whether what the lossless priority groups of all ports reserve has room in the chip's memory, where a person sizes it
// (buffer_model other than dynamic). Of NVIDIA's chips alone, whose accounting is published:
//
//   memory = ingress pools + shared headroom pool + Σ over ports and groups of what a group reserves
//
//   memory                what egress_lossless_pool has as `size` (NVIDIA, SONiC 202012, QoS and Buffers, BUFFER_POOL:
//                         "always the maximum available memory"; sonic-swss, cfgmgr/buffer_pool_mellanox.lua)
//   ingress pools         their `size`, which is what the reservations leave (the same; sonic-net/SONiC,
//                         doc/qos/reclaim-reserved-buffer.md), so that headroom is never taken from them
//   shared headroom pool  `xoff` of ingress_lossless_pool (SAI, saibuffer.h: SAI_BUFFER_POOL_ATTR_XOFF_SIZE)
//   what a group reserves `size` of its profile: xon and xoff, or xon alone with a shared headroom pool (SAI:
//                         SAI_BUFFER_PROFILE_ATTR_RESERVED_BUFFER_SIZE)
//
// That the sum is more than ingress_lossless_pool says nothing: SONiC's own ACS-MSN2700 for leaves, 16 ports of
// 100 Gb/s over 40 m and 16 over 300 m with the groups 3 and 4, reserves 5,832,704 bytes beside a pool of 3,302,912
// (sonic-buildimage, buffers_defaults_t1.j2 and pg_profile_lookup.ini), and has room for them.
// What lossy groups, management and mirrors reserve no configuration says, and is left out: what has no room by this
// has none on the switch either.

// So many ports have so many lossless groups each that reserve so much.
struct Reservation {
  int ports = 0;
  int groups = 0;          // of one port
  std::int64_t bytes = 0;  // of one group
  std::int64_t sum() const { return bytes * groups * ports; }
  friend bool operator==(const Reservation&, const Reservation&) = default;
};

// All in bytes.
struct Memory {
  std::vector<Reservation> reservations;  // the largest sum first
  std::int64_t reserved = 0;              // their sum
  std::int64_t ingress = 0;               // of ingress pools, with what they share as headroom
  std::int64_t all = 0;                   // of the chip; more than `ingress`
  bool shares_headroom = false;
  std::int64_t left() const { return all - ingress; }
  std::int64_t missing() const { return reserved - left(); }  // 0 or less: there is room
  friend bool operator==(const Memory&, const Memory&) = default;
};

// Nothing where the switch sizes buffers itself, where a size is not said, or where the pools are not as NVIDIA's
// templates have them (egress_lossless_pool of mode dynamic, and larger than what is ingress): Broadcom's egress pool
// is no measure of its memory. A port that is not up reserves nothing by what SONiC made itself, and a group whose rows
// do not agree the least of them. Pure, and total.
std::optional<Memory> MemoryOf(const Json& root);

// What a person should know before a configuration becomes `wanted`; `now`: what it is. Empty where there is room.
std::string NoteOf(const Memory& wanted, const std::optional<Memory>& now);

}  // namespace heddle::formats::sonic
