#include "nodeagent/qos/netlink_exchange.h"

#include <fmt/format.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "base/netlink.h"
#include "base/poll.h"

namespace heddle::nodeagent {
namespace {

constexpr int kInternalUnsupported =
    524;  // ENOTSUPP: for the kernel alone, and drivers return it all the same

std::string Say(int error) {
  return std::error_code(error, std::generic_category()).message();
}

}  // namespace

base::Error KernelError(int error, std::string_view what, std::string_view subject) {
  const auto fail = [&](base::Code code, std::string_view why) {
    return base::Error{code, fmt::format("{} of {}: {}", what, subject, why), std::nullopt};
  };
  switch (error) {
    case EOPNOTSUPP:
    case kInternalUnsupported:
      return fail(base::Code::kUnimplemented, "its driver does not offer this");
    case ENODEV:
    case ENXIO:
      return fail(base::Code::kUnavailable, "the device is gone");
    case EPERM:
    case EACCES:
      return fail(base::Code::kForbidden, fmt::format("{}; it takes CAP_NET_ADMIN", Say(error)));
    case EBUSY:
    case EAGAIN:
    case EINTR:
    case ENOMEM:
    case ENOBUFS:
    case EIO:
      return fail(base::Code::kUnavailable, Say(error));
    case ETIMEDOUT:
      return fail(base::Code::kTimeout, Say(error));
    case EINVAL:
    case ERANGE:
    case E2BIG:
      return fail(
          base::Code::kInvalid,
          fmt::format("{}: the driver does not take this value; the kernel's log may say why", Say(error)));
    case ENOENT:
    case ESRCH:
      return fail(base::Code::kNotFound, Say(error));
    default:
      return fail(base::Code::kInternal, Say(error));
  }
}

NetlinkExchange::~NetlinkExchange() {
  Close();
}

void NetlinkExchange::Close() {
  if (socket_ != nullptr) mnl_socket_close(socket_);
  socket_ = nullptr;
}

base::Status NetlinkExchange::Open() {
  if (socket_ != nullptr) return {};
  socket_ = mnl_socket_open2(bus_, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket_ != nullptr && mnl_socket_bind(socket_, 0, MNL_SOCKET_AUTOPID) == 0) return {};
  const int error = errno;
  Close();
  return base::Fail(base::Code::kUnavailable, fmt::format("no netlink socket ({})", Say(error)));
}

base::Status NetlinkExchange::Ask(const std::string& question,
                                  const std::function<base::Result<bool>(std::string_view)>& take) {
  TRY(Open());
  base::Status done;
  if (mnl_socket_sendto(socket_, question.data(), question.size()) != ssize_t(question.size())) {
    done = base::Fail(base::Code::kUnavailable, fmt::format("netlink takes no question ({})", Say(errno)));
  } else {
    done = Receive(take);
  }
  // What may still come of this answer must not be taken for the next.
  if (!done) Close();
  return done;
}

base::Status NetlinkExchange::Receive(const std::function<base::Result<bool>(std::string_view)>& take) {
  const int timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  struct Closed {
    int descriptor;
    ~Closed() {
      if (descriptor >= 0) ::close(descriptor);
    }
  } const closed{timer};
  if (timer < 0 || !base::Arm(timer, limit_)) {
    return base::Fail(base::Code::kUnavailable, fmt::format("no timer ({})", Say(errno)));
  }
  std::string datagram;
  for (;;) {
    std::array<pollfd, 2> ready{{{mnl_socket_get_fd(socket_), POLLIN, 0}, {timer, POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), -1) < 0) continue;  // EINTR
    if (ready[0].revents == 0) return base::Fail(base::Code::kTimeout, "the kernel did not answer");
    bool lost = false;
    while (base::ReceiveFromKernel(mnl_socket_get_fd(socket_), datagram, lost)) {
      ASSIGN_OR_RETURN(const bool whole, take(datagram));
      if (whole) return {};
    }
    if (lost) return base::Fail(base::Code::kUnavailable, "a part of the kernel's answer was lost");
  }
}

}  // namespace heddle::nodeagent
