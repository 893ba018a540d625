#include "nodeagent/qos/fec_coding.h"

#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace heddle::nodeagent {

EthtoolFec::~EthtoolFec() {
  if (socket_ >= 0) ::close(socket_);
}

std::optional<lossless::Fec> EthtoolFec::Read(const std::string& netdev) {
  if (socket_ < 0) socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  if (socket_ < 0 || netdev.size() >= sizeof request.ifr_name) return std::nullopt;
  std::copy(netdev.begin(), netdev.end(), std::begin(request.ifr_name));
  ethtool_fecparam parameters{};
  parameters.cmd = ETHTOOL_GFECPARAM;
  request.ifr_data = reinterpret_cast<char*>(&parameters);
  if (::ioctl(socket_, SIOCETHTOOL, &request) != 0) return std::nullopt;
  return FecOf(parameters.active_fec);
}

std::optional<lossless::Fec> FecOf(std::uint32_t active) {
  if (active == ETHTOOL_FEC_OFF) return lossless::Fec::kNone;
  if (active == ETHTOOL_FEC_RS) return lossless::Fec::kReedSolomon;
  if (active == ETHTOOL_FEC_BASER) return lossless::Fec::kFireCode;
  return std::nullopt;
}

}  // namespace heddle::nodeagent
