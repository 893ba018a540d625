#include "nodeagent/health/ethtool_socket.h"

#include <linux/if.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace heddle::nodeagent {
namespace {

// False: no interface has so long a name.
bool Name(const std::string& netdev, ifreq& request) {
  if (netdev.size() >= sizeof request.ifr_name) return false;
  std::copy(netdev.begin(), netdev.end(), std::begin(request.ifr_name));
  return true;
}

}  // namespace

EthtoolSocket::~EthtoolSocket() {
  if (socket_ >= 0) ::close(socket_);
}

int EthtoolSocket::Open() {
  if (socket_ < 0) socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  return socket_ < 0 ? errno : 0;
}

int EthtoolSocket::Ask(const std::string& netdev, void* command) {
  if (const int error = Open(); error != 0) return error;
  ifreq request{};
  if (!Name(netdev, request)) return ENODEV;
  request.ifr_data = static_cast<char*>(command);
  return ::ioctl(socket_, SIOCETHTOOL, &request) == 0 ? 0 : errno;
}

int EthtoolSocket::IndexOf(const std::string& netdev, int& index) {
  if (const int error = Open(); error != 0) return error;
  ifreq request{};
  if (!Name(netdev, request)) return ENODEV;
  if (::ioctl(socket_, SIOCGIFINDEX, &request) != 0) return errno;
  index = request.ifr_ifindex;
  return 0;
}

}  // namespace heddle::nodeagent
