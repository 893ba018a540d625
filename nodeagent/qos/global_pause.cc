#include "nodeagent/qos/global_pause.h"

#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string_view>

#include "nodeagent/qos/netlink_exchange.h"

namespace heddle::nodeagent {
namespace {

using lossless::GlobalPause;

constexpr std::string_view kWhat = "global pause";

base::Status Ask(int& socket, const std::string& netdev, ethtool_pauseparam& pause) {
  if (socket < 0) socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return base::Fail(KernelError(errno, kWhat, netdev));
  ifreq request{};
  if (netdev.size() >= sizeof request.ifr_name) return base::Fail(KernelError(ENODEV, kWhat, netdev));
  std::copy(netdev.begin(), netdev.end(), std::begin(request.ifr_name));
  request.ifr_data = reinterpret_cast<char*>(&pause);
  if (::ioctl(socket, SIOCETHTOOL, &request) != 0) return base::Fail(KernelError(errno, kWhat, netdev));
  return {};
}

}  // namespace

EthtoolPause::~EthtoolPause() {
  if (socket_ >= 0) ::close(socket_);
}

base::Result<GlobalPause> EthtoolPause::Read(const std::string& netdev) {
  ethtool_pauseparam pause{};
  pause.cmd = ETHTOOL_GPAUSEPARAM;
  TRY(Ask(socket_, netdev, pause));
  if (pause.rx_pause != 0 && pause.tx_pause != 0) return GlobalPause::kBoth;
  if (pause.rx_pause != 0) return GlobalPause::kReceive;
  return pause.tx_pause != 0 ? GlobalPause::kSend : GlobalPause::kNone;
}

base::Status EthtoolPause::Write(const std::string& netdev, GlobalPause want) {
  ethtool_pauseparam pause{};
  pause.cmd = ETHTOOL_GPAUSEPARAM;
  TRY(Ask(socket_, netdev, pause));
  pause.cmd = ETHTOOL_SPAUSEPARAM;
  pause.rx_pause = want == GlobalPause::kReceive || want == GlobalPause::kBoth ? 1 : 0;
  pause.tx_pause = want == GlobalPause::kSend || want == GlobalPause::kBoth ? 1 : 0;
  return Ask(socket_, netdev, pause);
}

}  // namespace heddle::nodeagent
