#include "placement/collective.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "placement/collective_constants.h"

namespace heddle::placement {
namespace {

using namespace tuner;

constexpr std::array<std::string_view, 5> kCollectives{"all_reduce", "reduce_scatter", "all_gather",
                                                       "alltoall", "sendrecv"};
constexpr std::array<std::string_view, 7> kAlgorithms{"Ring",          "Tree",         "NVLS",    "NVLSTree",
                                                      "CollNetDirect", "CollNetChain", "Pairwise"};
constexpr std::array<std::string_view, 3> kProtocols{"LL", "LL128", "Simple"};

constexpr double kMiB = 1 << 20;
constexpr double kLeastGbs = 0.001;  // a byte a microsecond
constexpr double kBoundless = 1e9;

// What the formulas need of a shape, worked out once.
struct Terms {
  Collective collective;
  double bytes, root_mib;
  int ranks, domains, local;  // local: ranks of the fullest domain
  int channels;               // NCCL's, of a ring or tree over the network
  bool nvlink, net, nvls, sharp, ll128;
  std::size_t generation;   // 0 A100 and older, 1 H100, 2 Blackwell
  double inside, own, all;  // GB/s of one GPU inside, of its own way out, of a domain's ways together
  double extra;             // us one way beyond what InfiniBand takes to the next domain
  bool turns;               // the bytes change rails through a peer
  double depth;             // log2 of the domains
  double passes;            // over the array: two for an all-reduce
  double bus_factor;
  Prediction best{std::numeric_limits<double>::infinity(), Algorithm::kRing, Protocol::kSimple};

  void Offer(Algorithm algorithm, Protocol protocol, double latency, double algorithm_gbs) {
    const double micros = kLaunch + latency + bytes / (1000 * algorithm_gbs);
    if (micros < best.micros) best = {micros, algorithm, protocol};
  }
  double Filled(const Fill& fill, double slope_scale, double most_scale) const {
    return std::min(fill.most * most_scale, fill.slope * slope_scale * root_mib);
  }
};

Terms TermsOf(Collective collective, const GroupShape& shape, double bytes) {
  Terms t{};
  t.collective = collective;
  t.bytes = bytes;
  t.root_mib = std::sqrt(bytes / kMiB);
  t.ranks = shape.ranks;
  t.domains = std::clamp(shape.domains, 1, shape.ranks);
  t.local = std::clamp(shape.ranks_per_domain, 1, shape.ranks);
  t.nvlink = shape.nvlink_gbs > 0;
  t.net = t.domains > 1;
  t.generation = std::size_t(std::clamp(shape.nvlink_generation, 3, 5) - 3);
  t.nvls = t.nvlink && shape.nvswitch && shape.nvlink_generation >= 4 && t.local > 1;
  t.sharp = shape.sharp;
  t.channels = std::min(kMostChannels, shape.net_devices > 0 ? shape.net_devices : t.local);
  if (t.generation > 0 && t.channels <= kFewChannels) t.channels *= 2;
  // Its stores of 128 bytes arrive whole over NVLink, and over the network from GPUs that have it.
  t.ll128 = t.nvlink || (t.local == 1 && shape.nvlink_generation > 0);
  // A rank alone in its domain meets nobody inside.
  t.inside =
      t.local == 1 && t.net ? kBoundless : std::max(kLeastGbs, t.nvlink ? shape.nvlink_gbs : shape.pcie_gbs);
  t.own = std::max(kLeastGbs, shape.net_gbs);
  t.all = shape.net_domain_gbs > 0 ? std::max(kLeastGbs, shape.net_domain_gbs) : t.local * t.own;
  t.extra = std::max(0.0, shape.extra_latency_us);
  t.turns = t.net && shape.crosses_rails;
  t.depth = t.net ? std::log2(double(t.domains)) : 0;
  t.passes = collective == Collective::kAllReduce ? 2 : 1;
  t.bus_factor = BusFactor(collective, shape.ranks);
  return t;
}

// One way over the network with a ring's or a tree's constant of it: Simple also waits for the flush.
double NetLatency(const Terms& t, double constant, std::size_t p) {
  const double turn = t.turns ? (t.nvlink ? kRingNvlink : kRingPcie)[p] : 0;
  return constant + turn + (kNetMeasured + t.extra) * (p == 2 ? 2 : 1);
}

double RingLatency(const Terms& t, std::size_t p) {
  const double post = t.net ? kNetPost * (p == 2 ? 3 : 1) : 0;
  const double inside = std::max(t.nvlink ? kRingNvlink[p] : kRingPcie[p], post);
  // With one rank a domain nothing hides the network's latency: the tree's then.
  const double net = NetLatency(t, (t.local == 1 ? kTreeNet : kRingNet)[p], p);
  const int crossings = t.net ? t.domains - 1 : 0;
  double latency = kRingBase[p] + t.passes * ((t.ranks - 1 - crossings) * inside + crossings * net);
  if (t.net && p == 2 && t.passes == 2 && t.bytes / (kChannels * t.ranks) >= kRingPlateauBytes) {
    latency *= kRingPlateau;
  }
  return latency;
}

void OfferRing(Terms& t) {
  double inside = t.inside * (t.nvlink ? (t.net ? kRingShareNet : kRingShare)[t.generation] : kPcieShare);
  // Every ring leaves the domain by another rank, which spares that rank's NVLink.
  if (t.net && t.nvlink && t.local > 1) inside *= double(t.local) / (t.local - 1);
  // Every way carries the same share of a ring, so the slowest holds up all of them.
  const double way = std::min(t.all / t.local, t.own);
  const double bus = t.net ? std::min(inside, way * t.local * kRingNetShare) : inside;
  const double most_ll = !t.net ? kLlMax[t.generation] : t.domains == 2 ? kLlMaxTwo : kLlMaxMore;
  // The network's share of it is bytes on their way: a NIC half as fast takes twice as long.
  const double fill =
      t.passes * (t.net ? t.Filled(kRingNetFill, kFillNic / way, kFillNic / way) : t.Filled(kRingFill, 1, 1));
  t.Offer(Algorithm::kRing, Protocol::kSimple, RingLatency(t, 2) + fill, bus / t.bus_factor);
  t.Offer(Algorithm::kRing, Protocol::kLl, RingLatency(t, 0) + fill,
          std::min(most_ll, bus * kRingLlShare) / t.bus_factor);
  if (!t.ll128) return;
  t.Offer(Algorithm::kRing, Protocol::kLl128, RingLatency(t, 1) + fill, bus * kRingLl128Share / t.bus_factor);
}

// Between the table's powers of two by the logarithm, so that more bytes are never faster.
double TreeCorrection(std::size_t p, double bytes) {
  const double place = std::log2(std::max(64.0, bytes) / 64);
  const auto below = std::size_t(place);
  const auto& row = kTreeCorrection[p];
  if (below + 1 >= row.size()) return row.back();
  return row[below] + (row[below + 1] - row[below]) * (place - double(below));
}

// The bytes that a domain's ways carry per byte reduced: with two domains each half of a double tree sends half up
// and half down; with more, the domain that is inside one tree serves two children.
double TreeNet(const Terms& t) {
  return t.all * kTreeNetShare / (t.domains == 2 ? 1 : 2);
}

double NvlsTreeRate(const Terms& t) {
  return t.inside * kNvlsShare[t.generation] * (t.domains == 2 ? kNvlsTreeTwo : kNvlsTreeMore)[t.generation];
}

// What NCCL takes a tree's channels to carry over the network, bytes reduced.
double TreeChannels(const Terms& t, std::size_t p) {
  if (!t.net || !t.nvlink) return kBoundless;
  const auto& two = p == 1 ? kTreeLl128ChannelTwo : kTreeChannelTwo;
  const auto& more = p == 1 ? kTreeLl128ChannelMore : kTreeChannelMore;
  return t.channels * (t.domains == 2 ? two : more)[t.generation] / 2;
}

void OfferTree(Terms& t) {
  // Inside a domain every channel is a chain, up and down: a ring's bytes.
  const double gpu = t.inside * (t.nvlink ? kTreeShare : kPcieShare) / t.bus_factor;
  for (const std::size_t p : {0U, 1U, 2U}) {
    if (p == 1 && !t.ll128) continue;
    double share = 1;
    if (p == 0) share = kTreeLlShare;
    if (p == 1) share = t.net ? kTreeLl128More : kTreeLl128One;
    double rate = std::min(gpu, TreeChannels(t, 2)) * share;
    if (p == 1) rate = std::min(rate, TreeChannels(t, 1));
    if (t.net && t.nvls) {  // NCCL ranks it below the NVLSTree, by these
      const auto& under = t.domains == 2 ? kTreeOfNvlsTreeTwo : kTreeOfNvlsTreeMore;
      rate = std::min(rate, NvlsTreeRate(t) * under[t.generation] * share);
    }
    if (t.net) rate = std::min(rate, TreeNet(t) * kTreeShare * share);
    if (p == 0)
      rate = std::min(rate, (!t.net ? kLlMax[t.generation] : t.domains == 2 ? kLlMaxTwo : kLlMaxMore) / 2);
    const double inside = t.nvlink ? kTreeNvlink[p] : kTreePcie[p];
    const double net = NetLatency(t, kTreeNet[p], p);
    const double fill = t.net ? t.Filled(kTreeNetFill, 1, 1) : 2 * t.Filled(kRingFill, 1, 1);
    const double latency = kTreeBase[p] + fill + 2 * ((t.local - 1) * inside + t.depth * net);
    t.Offer(Algorithm::kTree, Protocol(p), latency, rate * TreeCorrection(p, t.bytes));
  }
}

void OfferNvls(Terms& t) {
  if (!t.nvls) return;
  const double rate = t.inside * kNvlsShare[t.generation];
  const double eights = std::max(1.0, t.local / 8.0);
  if (!t.net) {
    t.Offer(Algorithm::kNvls, Protocol::kSimple, kNvlsNvlink + t.Filled(kNvlsFill, std::sqrt(eights), eights),
            rate);
    return;
  }
  const double latency =
      kNvlsNvlink + 2 * t.depth * (kNvlsTreeNet + 2 * t.extra + (t.turns ? kRingNvlink[2] : 0)) +
      t.Filled(kNvlsTreeFill, std::sqrt(eights) * (1 + t.depth) / 2, eights * (1 + t.depth) / 2);
  t.Offer(Algorithm::kNvlsTree, Protocol::kSimple, latency, std::min(NvlsTreeRate(t), TreeNet(t)));
}

void OfferCollNet(Terms& t) {
  if (!t.sharp || !t.net) return;
  // The switches add: every byte goes up once and comes down once.
  const double net = t.all * kRingNetShare;
  const double gpu = t.inside * (t.nvlink ? kRingShare[t.generation] : kPcieShare) / 2;
  t.Offer(Algorithm::kCollNetChain, Protocol::kSimple,
          2.0 * (t.local - 1) * kCollNetChainNvlink + kCollNetChainNet + 2 * t.extra, std::min(gpu, net));
  if (!t.nvls) return;
  t.Offer(Algorithm::kCollNetDirect, Protocol::kSimple,
          2 * (kCollNetDirectNvlink + (t.local - 1) * kArity) + kCollNetDirectNet + 2 * t.extra,
          std::min(t.inside * kNvlsShare[t.generation] * kNvlsTreeTwo[t.generation], net));
}

// Of the network, for each peer: as many as a NIC's rate asks for, as long as all peers find one at once. A way that
// others share is no slower NIC, so none counts for less than one of 400 Gb/s.
int PeerChannels(const Terms& t, int asked) {
  if (asked > 0) return asked;
  int channels = kLeastPeerChannels;
  while (channels < kMostChannels && channels * kPeerChannelNic < t.own) channels *= 2;
  const int rounds = (t.ranks - 1) / kPeersAtOnce + 1;
  while (channels > 1 && std::int64_t(channels) * rounds > 2 * t.channels) channels /= 2;
  return channels;
}

// Every rank sends its part to every other: what stays in the domain and what leaves it go side by side.
void OfferPairwise(Terms& t, int peer_channels) {
  const bool send = t.collective == Collective::kSendRecv;
  const int peers = send ? 1 : t.ranks - 1;
  const int near = send ? (t.net ? 0 : 1) : std::min(t.local - 1, peers);
  const double part = send ? 1 : 1.0 / t.ranks;
  const double inside = t.inside * (t.nvlink ? kPairwiseShare : kPcieShare);
  // Without NVLink what leaves the domain crosses the GPU's PCIe as well.
  double micros = t.bytes * part * (t.nvlink ? near : peers) / (1000 * inside);
  // A lone send starts as quickly as LL does, and overlaps nothing that it would have to wait for.
  const std::size_t p = send ? 0 : 2;
  double latency = kRingBase[p] + near * kArity;
  if (near > 0 || !send) latency += t.Filled(kPairwiseFill, 1, 1);
  if (t.net) {
    const double channels = PeerChannels(t, peer_channels) * (send ? kSendChannelGbs : kAllToAllChannelGbs);
    const double rate = std::min(t.own * kPairwiseNetShare, channels);
    micros = std::max(micros, t.bytes * part * (peers - near) / (1000 * rate));
    latency += NetLatency(t, kRingNet[p], p) + (peers - near) * kNetPost;
    if (!send) latency += t.Filled(kPairwiseNetFill, 1, 1) - kNetMeasured;
  }
  t.best = {latency + micros, Algorithm::kPairwise, Protocol::kSimple};
}

}  // namespace

std::string_view CollectiveName(Collective collective) {
  return kCollectives[std::size_t(collective)];
}

std::string_view AlgorithmName(Algorithm algorithm) {
  return kAlgorithms[std::size_t(algorithm)];
}

std::string_view ProtocolName(Protocol protocol) {
  return kProtocols[std::size_t(protocol)];
}

double BusFactor(Collective collective, int ranks) {
  switch (collective) {
    case Collective::kAllReduce:
      return 2.0 * (ranks - 1) / ranks;
    case Collective::kReduceScatter:
    case Collective::kAllGather:
    case Collective::kAllToAll:
      return double(ranks - 1) / ranks;
    case Collective::kSendRecv:
      break;
  }
  return 1;
}

double BusBandwidth(Collective collective, int ranks, double bytes, double micros) {
  return bytes / (micros * 1000) * BusFactor(collective, ranks);
}

Prediction Predict(Collective collective, const GroupShape& shape, double bytes) {
  if (shape.ranks < 2 || !(bytes > 0)) return {};
  Terms t = TermsOf(collective, shape, bytes);
  if (collective == Collective::kAllToAll || collective == Collective::kSendRecv) {
    OfferPairwise(t, shape.peer_channels);
    return t.best;
  }
  OfferRing(t);
  if (collective == Collective::kAllReduce && !shape.ring_only) {
    OfferTree(t);
    OfferNvls(t);
    OfferCollNet(t);
  }
  return t.best;
}

}  // namespace heddle::placement
