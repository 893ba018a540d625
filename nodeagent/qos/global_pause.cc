#include "nodeagent/qos/global_pause.h"

#include <linux/ethtool.h>

#include <string_view>

#include "nodeagent/qos/netlink_exchange.h"

namespace heddle::nodeagent {
namespace {

using lossless::GlobalPause;

constexpr std::string_view kWhat = "global pause";

base::Status Ask(EthtoolSocket& socket, const std::string& netdev, ethtool_pauseparam& pause) {
  const int error = socket.Ask(netdev, &pause);
  return error == 0 ? base::Status() : base::Fail(KernelError(error, kWhat, netdev));
}

}  // namespace

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
