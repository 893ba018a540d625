#include "nodeagent/qos/pfc_watchdog.h"

#include <linux/ethtool.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "nodeagent/qos/netlink_exchange.h"

namespace heddle::nodeagent {
namespace {

constexpr std::string_view kWhat = "the PFC watchdog (pfc-prevention-tout)";

}  // namespace

base::Status EthtoolWatchdog::Ask(const std::string& netdev, unsigned command, std::uint16_t& value) {
  // The kernel's structure ends in an array of no length, which holds the value.
  std::array<std::uint64_t, sizeof(ethtool_tunable) / sizeof(std::uint64_t) + 1> buffer{};
  auto* tunable = reinterpret_cast<ethtool_tunable*>(buffer.data());
  tunable->cmd = command;
  tunable->id = ETHTOOL_PFC_PREVENTION_TOUT;
  tunable->type_id = ETHTOOL_TUNABLE_U16;
  tunable->len = sizeof value;
  char* place = reinterpret_cast<char*>(buffer.data()) + sizeof(ethtool_tunable);
  std::memcpy(place, &value, sizeof value);
  if (const int error = socket_.Ask(netdev, tunable); error != 0)
    return base::Fail(KernelError(error, kWhat, netdev));
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
