#include "placement/collective.h"

#include <algorithm>
#include <array>

#include "placement/constants.h"

namespace heddle::placement {
namespace {

constexpr std::array<std::string_view, 5> kCollectives{"all_reduce", "reduce_scatter", "all_gather",
                                                       "alltoall", "sendrecv"};
constexpr std::array<std::string_view, 7> kAlgorithms{"Ring",          "Tree",         "NVLS",    "NVLSTree",
                                                      "CollNetDirect", "CollNetChain", "Pairwise"};
constexpr std::array<std::string_view, 3> kProtocols{"LL", "LL128", "Simple"};

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

// The ring alone, protocol Simple, until the other algorithms stand here.
Prediction Predict(Collective collective, const GroupShape& shape, double bytes) {
  if (shape.ranks < 2 || bytes <= 0) return {};
  const double domain =
      shape.net_domain_gbs > 0 ? shape.net_domain_gbs : shape.ranks_per_domain * shape.net_gbs;
  const double inside = shape.nvlink_gbs > 0 ? shape.nvlink_gbs : shape.pcie_gbs;
  const double bus = std::max(1e-6, shape.domains > 1 ? std::min(domain, inside) : inside);
  const int passes = collective == Collective::kAllReduce ? 2 : 1;
  const double step = shape.nvlink_gbs > 0 ? kNvlinkStepTenths / 10.0 : kPcieStepTenths / 10.0;
  const double latency = kRingBaseTenths / 10.0 +
                         passes * ((shape.ranks - shape.domains) * step +
                                   (shape.domains - 1) * (kNetStepTenths / 10.0 + shape.extra_latency_us));
  return {latency + bytes * BusFactor(collective, shape.ranks) / (bus * 1000), Algorithm::kRing,
          Protocol::kSimple};
}

}  // namespace heddle::placement
