#include "nodeagent/qos/qos_events.h"

#include <fmt/format.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "base/netlink.h"
#include "base/poll.h"
#include "nodeagent/qos/dcb_message.h"

namespace heddle::nodeagent {
namespace {

constexpr int kMaxDatagrams = 4'096;  // of one Wait: a storm must not keep us from saying so

class LiveQosEvents final : public QosEvents {
 public:
  LiveQosEvents() {
    socket_ = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int group = RTNLGRP_DCB;
    if (socket_ != nullptr && mnl_socket_bind(socket_, 0, MNL_SOCKET_AUTOPID) == 0 &&
        mnl_socket_setsockopt(socket_, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) == 0)
      return;
    closed_ = fmt::format("changes of DCB are not heard ({})",
                          std::error_code(errno, std::generic_category()).message());
    if (socket_ != nullptr) mnl_socket_close(socket_);
    socket_ = nullptr;
  }
  ~LiveQosEvents() override {
    if (socket_ != nullptr) mnl_socket_close(socket_);
  }

  Changed Wait(std::stop_token stop) override {
    const base::StopEvent stopped(stop);
    while (!stop.stop_requested()) {
      // poll passes over a descriptor of -1.
      std::array<pollfd, 2> ready{
          {{stopped.get(), POLLIN, 0}, {socket_ == nullptr ? -1 : mnl_socket_get_fd(socket_), POLLIN, 0}}};
      if (::poll(ready.data(), ready.size(), -1) < 0) continue;  // EINTR
      if (ready[1].revents == 0) continue;
      Changed changed = Take();
      if (changed.lost || !changed.netdevs.empty()) return changed;
    }
    return {};
  }
  std::string closed() const override { return closed_; }

 private:
  Changed Take() {
    Changed changed;
    for (int taken = 0; taken < kMaxDatagrams; ++taken) {
      if (!base::ReceiveFromKernel(mnl_socket_get_fd(socket_), datagram_, changed.lost)) break;
      const std::vector<std::string> netdevs = ChangedByDcb(datagram_);
      changed.netdevs.insert(netdevs.begin(), netdevs.end());
    }
    return changed;
  }

  mnl_socket* socket_ = nullptr;
  std::string closed_, datagram_;
};

}  // namespace

std::unique_ptr<QosEvents> OpenQosEvents() {
  return std::make_unique<LiveQosEvents>();
}

}  // namespace heddle::nodeagent
