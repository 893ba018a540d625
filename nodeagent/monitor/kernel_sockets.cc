#include <fmt/format.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/netlink.h"
#include "base/poll.h"
#include "nodeagent/monitor/kernel_events.h"
#include "nodeagent/monitor/verbs_events.h"

namespace heddle::nodeagent {
namespace {

constexpr int kBufferBytes = 1 << 20;  // a burst of 500 interface messages; the default holds a fifth of that
constexpr int kMaxDatagrams = 4'096;   // of one Take: a storm must not keep us from saying so
constexpr int kRetrySeconds = 60;

std::string Say(int error) {
  return std::error_code(error, std::generic_category()).message();
}

// One netlink socket that listens to one multicast group.
class Netlink {
 public:
  Netlink(int protocol, std::uint32_t group) : protocol_(protocol), group_(group) {}
  Netlink(const Netlink&) = delete;
  Netlink& operator=(const Netlink&) = delete;
  ~Netlink() { Close(); }

  int descriptor() const { return socket_; }
  // Empty, or why it cannot be opened.
  std::string Open() {
    if (socket_ >= 0) return {};
    socket_ = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol_);
    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    address.nl_groups = group_;
    if (socket_ < 0) return fmt::format("the socket cannot be opened ({})", Say(errno));
    // Forcing it is the network administrator's right; the rest take what the limit gives.
    if (::setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &kBufferBytes, sizeof(kBufferBytes)) != 0)
      (void)::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &kBufferBytes, sizeof(kBufferBytes));
    if (::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return {};
    std::string why = fmt::format("its group cannot be joined ({})", Say(errno));
    Close();
    return why;
  }
  void Close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  bool Receive(std::string& datagram, bool& lost) { return base::ReceiveFromKernel(socket_, datagram, lost); }
  bool AskForLinks() {
    struct {
      nlmsghdr header;
      ifinfomsg body;
    } question{};
    question.header.nlmsg_len = sizeof(question);
    question.header.nlmsg_type = RTM_GETLINK;
    question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    return ::send(socket_, &question, sizeof(question), 0) == ssize_t(sizeof(question));
  }

 private:
  const int protocol_;
  const std::uint32_t group_;
  int socket_ = -1;
};

class LiveKernelEvents final : public KernelEvents {
 public:
  explicit LiveKernelEvents(std::function<bool(std::string_view driver)> opens)
      : verbs_(std::move(opens)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
    const itimerspec each{{kRetrySeconds, 0}, {kRetrySeconds, 0}};
    (void)::timerfd_settime(timer_, 0, &each, nullptr);
    OpenAll();
  }
  ~LiveKernelEvents() override {
    if (wake_ >= 0) ::close(wake_);
    if (timer_ >= 0) ::close(timer_);
  }

  std::vector<KernelEvent> Wait(std::stop_token stop) override;
  std::vector<KernelSourceState> States() const override {
    const std::lock_guard lock(mutex_);
    return states_;
  }
  void Watch(const std::set<std::string>& rdma_devices) override {
    {
      const std::lock_guard lock(mutex_);
      wanted_ = rdma_devices;
    }
    const std::uint64_t one = 1;
    (void)!::write(wake_, &one, sizeof(one));
  }

 private:
  void OpenAll();
  void TakeLinks(std::vector<KernelEvent>& events);
  void TakeUevents(std::vector<KernelEvent>& events);
  static bool Drain(int descriptor);
  static KernelEvent Lost(std::string_view source) {
    return {KernelEvent::Kind::kLost, "", fmt::format("{} said more than could be taken", source), true};
  }

  mutable std::mutex mutex_;  // guards states_ and wanted_; the rest is Wait's thread's
  std::vector<KernelSourceState> states_;
  std::set<std::string> wanted_;
  Netlink links_{NETLINK_ROUTE, RTMGRP_LINK};
  Netlink uevents_{NETLINK_KOBJECT_UEVENT, 1};  // group 1 is the kernel's, 2 is udev's
  VerbsDevices verbs_;
  LinkTable table_;
  bool dumping_ = false;
  std::string datagram_;
  int wake_;
  int timer_;
};

void LiveKernelEvents::OpenAll() {
  std::set<std::string> wanted;
  {
    const std::lock_guard lock(mutex_);
    wanted = wanted_;
  }
  std::vector<KernelSourceState> states;
  const bool fresh = links_.descriptor() < 0;
  states.push_back({"rtnetlink", links_.Open()});
  if (fresh && links_.descriptor() >= 0) dumping_ = links_.AskForLinks();
  states.push_back({"uevent", uevents_.Open()});
  states.push_back({"verbs", verbs_.Open(wanted)});
  const std::lock_guard lock(mutex_);
  states_ = std::move(states);
}

bool LiveKernelEvents::Drain(int descriptor) {
  std::uint64_t count = 0;
  return ::read(descriptor, &count, sizeof(count)) == ssize_t(sizeof(count));
}

void LiveKernelEvents::TakeLinks(std::vector<KernelEvent>& events) {
  bool lost = false;
  int taken = 0;
  while (taken < kMaxDatagrams && links_.Receive(datagram_, lost)) {
    ++taken;
    const LinkMessages messages = ParseLinkMessages(datagram_);
    for (const LinkMessage& link : messages.links) {
      if (auto event = table_.Apply(link)) events.push_back(*std::move(event));
    }
    if (dumping_ && (messages.done || messages.error != 0)) {
      dumping_ = false;
      table_.EndDump();
    }
  }
  if (!lost) return;
  events.push_back(Lost("rtnetlink"));
  // What was missed is found by asking for all: the table then says what differs.
  if (!dumping_) dumping_ = links_.AskForLinks();
}

void LiveKernelEvents::TakeUevents(std::vector<KernelEvent>& events) {
  bool lost = false;
  int taken = 0;
  while (taken < kMaxDatagrams && uevents_.Receive(datagram_, lost)) {
    ++taken;
    if (auto event = ParseUevent(datagram_)) events.push_back(*std::move(event));
  }
  if (lost) events.push_back(Lost("uevent"));
}

std::vector<KernelEvent> LiveKernelEvents::Wait(std::stop_token stop) {
  const base::StopEvent stopped(stop);
  while (!stop.stop_requested()) {
    std::vector<pollfd> ready{{stopped.get(), POLLIN, 0},
                              {wake_, POLLIN, 0},
                              {timer_, POLLIN, 0},
                              {links_.descriptor(), POLLIN, 0},
                              {uevents_.descriptor(), POLLIN, 0}};
    constexpr std::size_t kVerbs = 5;
    for (const int descriptor : verbs_.descriptors()) ready.push_back({descriptor, POLLIN, 0});
    if (::poll(ready.data(), ready.size(), -1) < 0) continue;  // EINTR
    std::vector<KernelEvent> events;
    const bool woken = ready[1].revents != 0 && Drain(wake_);
    const bool due = ready[2].revents != 0 && Drain(timer_);
    if (ready[3].revents != 0) TakeLinks(events);
    if (ready[4].revents != 0) TakeUevents(events);
    for (std::size_t i = kVerbs; i < ready.size(); ++i) {
      if (ready[i].revents != 0) verbs_.Take(ready[i].fd, events);
    }
    if (woken || due) OpenAll();
    if (!events.empty()) return Coalesce(std::move(events));
  }
  return {};
}

}  // namespace

std::unique_ptr<KernelEvents> OpenKernelEvents() {
  return OpenKernelEvents(LetsGoOfOpen);
}

std::unique_ptr<KernelEvents> OpenKernelEvents(std::function<bool(std::string_view driver)> opens) {
  return std::make_unique<LiveKernelEvents>(std::move(opens));
}

}  // namespace heddle::nodeagent
