#include "nodeagent/qos/pfc_watchdog.h"

#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "nodeagent/qos/netlink_exchange.h"

namespace heddle::nodeagent {
namespace {

constexpr std::string_view kWhat = "the PFC watchdog (pfc-prevention-tout)";

}  // namespace

EthtoolWatchdog::~EthtoolWatchdog() {
  if (socket_ >= 0) ::close(socket_);
}

base::Status EthtoolWatchdog::Ask(const std::string& netdev, unsigned command, std::uint16_t& value) {
  if (socket_ < 0) socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0) return base::Fail(KernelError(errno, kWhat, netdev));
  ifreq request{};
  if (netdev.size() >= sizeof request.ifr_name) return base::Fail(KernelError(ENODEV, kWhat, netdev));
  // The kernel's structure ends in an array of no length, which holds the value.
  std::array<std::uint64_t, sizeof(ethtool_tunable) / sizeof(std::uint64_t) + 1> buffer{};
  auto* tunable = reinterpret_cast<ethtool_tunable*>(buffer.data());
  tunable->cmd = command;
  tunable->id = ETHTOOL_PFC_PREVENTION_TOUT;
  tunable->type_id = ETHTOOL_TUNABLE_U16;
  tunable->len = sizeof value;
  char* place = reinterpret_cast<char*>(buffer.data()) + sizeof(ethtool_tunable);
  std::memcpy(place, &value, sizeof value);
  std::copy(netdev.begin(), netdev.end(), std::begin(request.ifr_name));
  request.ifr_data = reinterpret_cast<char*>(buffer.data());
  if (::ioctl(socket_, SIOCETHTOOL, &request) != 0) return base::Fail(KernelError(errno, kWhat, netdev));
  std::memcpy(&value, place, sizeof value);
  return {};
}

base::Result<int> EthtoolWatchdog::Read(const std::string& netdev) {
  std::uint16_t value = 0;
  TRY(Ask(netdev, ETHTOOL_GTUNABLE, value));
  return int(value);
}

base::Status EthtoolWatchdog::Write(const std::string& netdev, int milliseconds) {
  auto value = std::uint16_t(milliseconds);
  return Ask(netdev, ETHTOOL_STUNABLE, value);
}

}  // namespace heddle::nodeagent
