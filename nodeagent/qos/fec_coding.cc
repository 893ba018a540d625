#include "nodeagent/qos/fec_coding.h"

#include <linux/ethtool.h>

namespace heddle::nodeagent {

std::optional<lossless::Fec> EthtoolFec::Read(const std::string& netdev) {
  ethtool_fecparam parameters{};
  parameters.cmd = ETHTOOL_GFECPARAM;
  if (socket_.Ask(netdev, &parameters) != 0) return std::nullopt;
  return FecOf(parameters.active_fec);
}

std::optional<lossless::Fec> FecOf(std::uint32_t active) {
  if (active == ETHTOOL_FEC_OFF) return lossless::Fec::kNone;
  if (active == ETHTOOL_FEC_RS) return lossless::Fec::kReedSolomon;
  if (active == ETHTOOL_FEC_BASER) return lossless::Fec::kFireCode;
  return std::nullopt;
}

}  // namespace heddle::nodeagent
