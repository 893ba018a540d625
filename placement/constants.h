#pragma once

#include <cstdint>

namespace heddle::placement {

// NCCL 2.30's tuner (src/graph/tuning.cc and topo.h, commit 5067397c; performance anchors 2.1), protocol
// Simple, which carries the large messages that decide a training step. Latencies in tenths of a microsecond.
inline constexpr std::int32_t kRingBaseTenths = 84;    // per collective
inline constexpr std::int32_t kNvlinkStepTenths = 34;  // one ring step over NVLink
inline constexpr std::int32_t kPcieStepTenths = 57;    // … over PCIe
inline constexpr std::int32_t kNetStepTenths = 140;    // … over the network
// What NCCL counts per NVLink (20, 20.6, 40.1 GB/s) of what the link signals (25, 25, 50 GB/s).
inline constexpr int kNvlink3Percent = 80;
inline constexpr int kNvlink4Percent = 82;
inline constexpr int kNvlink5Percent = 80;
// 48.5 of 50 GB/s per NIC: the ceiling in the public multi-node measurements of anchors 2.4.
inline constexpr int kNetPercent = 97;
// Twice NCCL's 12 GB/s for PCIe 3 x16: no GPU of this decade sits on generation 3.
inline constexpr std::int32_t kPcieGbps = 192;

// Arnold (arXiv 2509.15940, anchors 1): crossing a leaf costs collectives up to 17 % and point-to-point up to
// 70 %.
inline constexpr int kCrossingCollectivePercent = 83;
inline constexpr int kCrossingSendPercent = 30;

// NVLink bridges join two H100 PCIe or four A100 and H200 NVL GPUs; larger domains have NVSwitches.
inline constexpr int kMostBridged = 4;

// Our own assumptions, each on the careful side.
inline constexpr std::int32_t kSwitchHopTenths = 5;       // one more switch and its cable: half a microsecond
inline constexpr std::int32_t kUnknownNvlinkGbps = 2400;  // NVLink of an A100, the slowest with NVSwitch
inline constexpr std::int32_t kNoNicGbps = 10;            // a machine whose NICs nobody knows
inline constexpr std::int64_t kNoWayMbps = 1;             // so dear that any other place wins
inline constexpr int kMaxLeafKinds = 512;                 // 256 KiB of hop table

}  // namespace heddle::placement
