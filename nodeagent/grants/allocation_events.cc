#include "nodeagent/grants/allocation_events.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>

namespace heddle::nodeagent {
namespace {

constexpr std::string_view kCheckpoint = "kubelet_internal_checkpoint";
constexpr std::uint32_t kWrites = IN_MOVED_TO | IN_CLOSE_WRITE;  // it comes by a rename
constexpr auto kLookAgain = std::chrono::minutes(1);

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  const int number_;
};

enum class Heard : std::uint8_t { kNothing, kWritten, kGone };

Heard ReadEvents(int inotify) {
  alignas(inotify_event) std::array<char, 8192> buffer;
  const ssize_t size = ::read(inotify, buffer.data(), buffer.size());
  Heard heard = Heard::kNothing;
  for (ssize_t at = 0; at + ssize_t(sizeof(inotify_event)) <= size;) {
    const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
    if ((event->mask & (IN_IGNORED | IN_UNMOUNT)) != 0) return Heard::kGone;
    // After an overflow anything may have happened.
    const bool lost = (event->mask & IN_Q_OVERFLOW) != 0;
    if (lost || (event->len > 0 && kCheckpoint == event->name)) heard = Heard::kWritten;
    at += ssize_t(sizeof(inotify_event)) + event->len;
  }
  return heard;
}

}  // namespace

void AllocationEvents::Run(const std::function<void()>& on_event, std::stop_token stop) {
  while (!stop.stop_requested()) {
    // Made anew under us: what was given in between was not heard.
    if (Listen(on_event, stop)) on_event();
    if (!clock_.SleepFor(kLookAgain, stop)) return;
  }
}

bool AllocationEvents::Listen(const std::function<void()>& on_event, const std::stop_token& stop) {
  const Descriptor inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  const Descriptor ended(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (inotify.number() < 0 || ended.number() < 0) return false;
  if (::inotify_add_watch(inotify.number(), folder_.c_str(), kWrites | IN_ONLYDIR) < 0) return false;
  const std::stop_callback end(stop, [&ended] {
    const std::uint64_t one = 1;
    (void)!::write(ended.number(), &one, sizeof(one));
  });
  while (!stop.stop_requested()) {
    std::array<pollfd, 2> ready{{{inotify.number(), POLLIN, 0}, {ended.number(), POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) return true;
    if (ready[0].revents == 0) continue;
    const Heard heard = ReadEvents(inotify.number());
    if (heard == Heard::kGone) return true;
    if (heard == Heard::kWritten) on_event();
  }
  return true;
}

}  // namespace heddle::nodeagent
