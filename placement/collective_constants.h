#pragma once

#include <array>

namespace heddle::placement::tuner {

// The constants of NCCL 2.30's tuner (src/graph/tuning.cc, commit 5067397c, June 2026), by protocol LL, LL128,
// Simple; microseconds. A latency of the network is one way and holds for InfiniBand.
using ByProtocol = std::array<double, 3>;

inline constexpr ByProtocol kTreeBase{6.8, 14, 8.4};
inline constexpr ByProtocol kRingBase{6.6, 14, 8.4};
inline constexpr ByProtocol kTreeNvlink{0.6, 1.25, 4};
inline constexpr ByProtocol kRingNvlink{0.6, 1.9, 3.4};
inline constexpr ByProtocol kTreePcie{1, 1.9, 4};
inline constexpr ByProtocol kRingPcie{1, 2.5, 5.7};
inline constexpr ByProtocol kTreeNet{5, 8.5, 14};
inline constexpr ByProtocol kRingNet{2.7, 4, 14};
inline constexpr double kNvlsNvlink = 25;
inline constexpr double kNvlsTreeNet = 20.9;
inline constexpr double kCollNetDirectNvlink = 3.7;
inline constexpr double kCollNetDirectNet = 31;
inline constexpr double kCollNetChainNvlink = 2.8;
inline constexpr double kCollNetChainNet = 30;
inline constexpr double kArity = 0.4;  // each further peer that a GPU talks to at once
inline constexpr double kNetPost = 1;  // posting one message, Intel; thrice for Simple
inline constexpr double kRingPlateau =
    1.4;  // Simple all-reduce over the network, Ampere and later (1.9 before)
inline constexpr double kRingPlateauBytes = 64;  // per channel and rank, from which it holds
inline constexpr double kChannels = 16;          // what H100 and later use; only the plateau needs it

// GB/s of LL in one domain, by NVLink generation 3, 4, 5; and over the network with two domains or more (Intel).
inline constexpr std::array<double, 3> kLlMax{87.7, 141, 282};
inline constexpr double kLlMaxTwo = 39, kLlMaxMore = 20.4;
inline constexpr double kRingLlShare = 0.5, kRingLl128Share = 0.92;
inline constexpr double kTreeShare = 0.92, kTreeLlShare = 1 / 3.8;
inline constexpr double kTreeLl128One = 7.0 / 9, kTreeLl128More = 120.0 / 128;

// GB/s that a channel carries over the network at most, by NVLink generation 3, 4, 5; with two domains or more.
inline constexpr std::array<double, 3> kTreeChannelTwo{23.6, 41.4, 42.8}, kTreeChannelMore{17.8, 36, 24};
inline constexpr std::array<double, 3> kTreeLl128ChannelTwo{20, 36.7, 31.67},
    kTreeLl128ChannelMore{20, 29, 20};
// Channels over the network (src/graph/search.cc): one a network device; from Hopper on so few are doubled.
inline constexpr int kMostChannels = 16, kFewChannels = 4;
// A peer's channels (src/graph/paths.cc): one for each so many GB/s of the NIC, and so many peers in a round.
inline constexpr double kPeerChannelNic = 14;
inline constexpr int kLeastPeerChannels = 4;
inline constexpr int kPeersAtOnce = 8;

// How far a tree falls short of its model by size, 64 B … 256 MiB in powers of two; from 512 MiB not at all.
inline constexpr std::array<std::array<double, 24>, 3> kTreeCorrection{{
    {1.0, 1.0, 1.0, 1.0, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1.0, 1.0, 1.0, 1.0, 1.0},
    {1.0, 1.0, 1.0, 1.0, 1.0, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1.0, 1.0, 1.0},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, 1.0},
}};

// What the measurements say where the tuner only ranks algorithms (docs/cost-model.md, "Measured shares"): shares
// of the links' rate, fitted to systems under tests/fixtures/busbw that say `use fit`.
inline constexpr std::array<double, 3> kRingShare{0.97, 0.965, 0.93};  // of NVLink, generation 3, 4, 5
inline constexpr double kRingNetShare = 0.97;                          // of the network's payload rate
// The same where a ring leaves the domain: twenty NVL72 racks reach 426 of 722 GB/s.
inline constexpr std::array<double, 3> kRingShareNet{0.97, 0.965, 0.6};
inline constexpr double kPcieShare = 0.85;
inline constexpr std::array<double, 3> kNvlsShare{0, 0.745, 0.667};   // bytes a GPU reduces per NVLink byte
inline constexpr std::array<double, 3> kNvlsTreeTwo{0, 0.94, 0.87};   // of NVLS, two domains
inline constexpr std::array<double, 3> kNvlsTreeMore{0, 0.70, 0.45};  // … more
// NCCL's caps of a channel of a tree over those of an NVLSTree (41.4 of 57.7, 36 of 45.5; 42.8 of 96, 24 of 80).
inline constexpr std::array<double, 3> kTreeOfNvlsTreeTwo{1, 0.72, 0.446};
inline constexpr std::array<double, 3> kTreeOfNvlsTreeMore{1, 0.79, 0.3};
inline constexpr double kTreeNetShare = 0.985;
inline constexpr double kPairwiseShare = 0.93;     // of NVLink
inline constexpr double kPairwiseNetShare = 0.88;  // of the network's payload rate
// GB/s that a rank sends over the network for each channel that a peer is given: to one peer, and to many at once.
inline constexpr double kSendChannelGbs = 9.8, kAllToAllChannelGbs = 22.6;

// What filling the pipeline costs beyond the tuner's latency: `slope` microseconds times the root of the size in
// MiB, at most `most`.
struct Fill {
  double slope, most;
};
inline constexpr Fill kRingFill{0.6, 17};   // a pass, in one domain
inline constexpr Fill kRingNetFill{7, 63};  // a pass, over the network, with NICs of kFillNic
inline constexpr double kFillNic = 24.25;   // GB/s of payload: the 200 Gb/s of Azure
inline constexpr Fill kTreeNetFill{13, 100};
inline constexpr Fill kNvlsFill{9.5, 320};     // of eight ranks a domain
inline constexpr Fill kNvlsTreeFill{15, 150};  // … of two domains
inline constexpr Fill kPairwiseFill{4.5, 130};
inline constexpr Fill kPairwiseNetFill{15, 45};

inline constexpr double kLaunch = 3.5;     // starting the kernel, us
inline constexpr double kNetMeasured = 7;  // one way, beyond the tuner's latency of the network

}  // namespace heddle::placement::tuner
