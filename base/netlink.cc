#include "base/netlink.h"

#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>

namespace heddle::base {
namespace {

constexpr std::size_t kMaxDatagram = 32'768;  // the kernel's own bound on one datagram of a dump

}  // namespace

bool ReceiveFromKernel(int socket, std::string& datagram, bool& lost) {
  for (;;) {
    datagram.resize(kMaxDatagram);
    sockaddr_nl from{};
    iovec into{datagram.data(), datagram.size()};
    msghdr message{};
    message.msg_name = &from;
    message.msg_namelen = sizeof from;
    message.msg_iov = &into;
    message.msg_iovlen = 1;
    const ssize_t count = ::recvmsg(socket, &message, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == ENOBUFS) {
      lost = true;
      continue;
    }
    if (count < 0) return false;
    // Any process with the right to may send to our port; only the kernel's is 0.
    if (from.nl_pid != 0) continue;
    if ((message.msg_flags & MSG_TRUNC) != 0) {
      lost = true;
      continue;
    }
    datagram.resize(std::size_t(count));
    return true;
  }
}

}  // namespace heddle::base
